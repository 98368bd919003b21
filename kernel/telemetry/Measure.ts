// A metric as data beside the metric itself: name, kind, unit, labels and help, so that the dashboard, the alert rules
// and the documentation are made from what the program really says. Labels come from a closed or bounded set: never an
// address, a hash or the text of a caller.
import { Effect, Metric } from "effect"

export type Unit = "count" | "seconds" | "stroops" | "bytes" | "ledger" | "yes or no"

export interface Measure<Label extends string = string> {
  readonly name: string
  readonly kind: "gauge" | "counter" | "histogram"
  readonly unit: Unit
  readonly labels: ReadonlyArray<Label>
  readonly help: string
  readonly metric: Metric.Metric<number, unknown>
}

interface Described<Label extends string> {
  readonly unit: Unit
  readonly help: string
  readonly labels?: ReadonlyArray<Label>
}

/** What stands at some level now. */
export const gauge = <const Label extends string = never>(
  name: string,
  { help, labels = [], unit }: Described<Label>
): Measure<Label> => ({ name, kind: "gauge", unit, labels, help, metric: Metric.gauge(name, { description: help }) })

/** What only grows while the process lives. */
export const counter = <const Label extends string = never>(
  name: string,
  { help, labels = [], unit }: Described<Label>
): Measure<Label> => ({
  name,
  kind: "counter",
  unit,
  labels,
  help,
  metric: Metric.counter(name, { description: help, incremental: true })
})

/** How values are spread over `boundaries`. */
export const histogram = <const Label extends string = never>(
  name: string,
  { boundaries, help, labels = [], unit }: Described<Label> & { readonly boundaries: ReadonlyArray<number> }
): Measure<Label> => ({
  name,
  kind: "histogram",
  unit,
  labels,
  help,
  metric: Metric.histogram(name, { description: help, boundaries })
})

type Labelled<Label extends string> = [Label] extends [never] ? [] : [labels: Readonly<Record<Label, string>>]

/** Sets a gauge, adds to a counter, or notes a value in a histogram. */
export const measure = <Label extends string>(
  { metric }: Measure<Label>,
  value: number,
  ...[labels]: Labelled<Label>
): Effect.Effect<void> => Metric.update(labels === undefined ? metric : Metric.withAttributes(metric, labels), value)
