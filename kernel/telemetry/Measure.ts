// A metric as data, next to the metric itself: name, kind, unit, labels and help. The dashboard, the alert rules and
// the documentation are generated from these declarations. Labels come from a closed or bounded set: never an address,
// a hash or the text of a caller. Each set of labels has one object, made when it is first measured.
import { Effect, type Fiber, Metric } from "effect"

export type Unit = "count" | "seconds" | "stroops" | "bytes" | "ledger" | "yes or no"

export interface Measure<Label extends string = string> {
  readonly name: string
  readonly kind: "gauge" | "counter" | "histogram"
  readonly unit: Unit
  readonly labels: ReadonlyArray<Label>
  readonly help: string
  readonly metric: Metric.Metric<number, unknown>
  /** The metric under these labels. */
  readonly labelled: (labels: Readonly<Record<Label, string>>) => Metric.Metric<number, unknown>
}

/** Nothing is allocated per measurement, because a metric's key is long. */
const perLabels = <Label extends string>(
  labels: ReadonlyArray<Label>,
  make: (attributes?: Readonly<Record<string, string>>) => Metric.Metric<number, unknown>
): Pick<Measure<Label>, "metric" | "labelled"> => {
  const made = new Map<string, Metric.Metric<number, unknown>>()
  return {
    metric: make(),
    labelled: (values) => {
      const key = labels.length === 1 ? values[labels[0]!] : labels.map((label) => values[label]).join("\n")
      const existing = made.get(key)
      if (existing !== undefined) return existing
      const one = make(values)
      made.set(key, one)
      return one
    }
  }
}

interface MetricDescription<Label extends string> {
  readonly unit: Unit
  readonly help: string
  readonly labels?: ReadonlyArray<Label>
}

export const gauge = <const Label extends string = never>(
  name: string,
  { help, labels = [], unit }: MetricDescription<Label>
): Measure<Label> => ({
  name,
  kind: "gauge",
  unit,
  labels,
  help,
  ...perLabels(labels, (attributes) => Metric.gauge(name, { description: help, attributes }))
})

/** A counter: it only grows while the process lives. */
export const counter = <const Label extends string = never>(
  name: string,
  { help, labels = [], unit }: MetricDescription<Label>
): Measure<Label> => ({
  name,
  kind: "counter",
  unit,
  labels,
  help,
  ...perLabels(labels, (attributes) => Metric.counter(name, { description: help, incremental: true, attributes }))
})

/** A histogram: the distribution of values over `boundaries`. */
export const histogram = <const Label extends string = never>(
  name: string,
  { boundaries, help, labels = [], unit }: MetricDescription<Label> & { readonly boundaries: ReadonlyArray<number> }
): Measure<Label> => ({
  name,
  kind: "histogram",
  unit,
  labels,
  help,
  ...perLabels(labels, (attributes) => Metric.histogram(name, { description: help, boundaries, attributes }))
})

type Labelled<Label extends string> = [Label] extends [never] ? [] : [labels: Readonly<Record<Label, string>>]

/** Sets a gauge, adds to a counter, or records a value in a histogram, in the given fiber. */
export const measureUnsafe = <Label extends string>(
  fiber: Fiber.Fiber<unknown, unknown>,
  { labelled, metric }: Measure<Label>,
  value: number,
  ...[labels]: Labelled<Label>
): void => (labels === undefined ? metric : labelled(labels)).updateUnsafe(value, fiber.context)

/** The same, as an effect. */
export const measure = <Label extends string>(
  of: Measure<Label>,
  value: number,
  ...labels: Labelled<Label>
): Effect.Effect<void> =>
  Effect.withFiber((fiber) => {
    measureUnsafe(fiber, of, value, ...labels)
    return Effect.void
  })
