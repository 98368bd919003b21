// The shape of an alert: its rule, and a case in which it fires and one in which it must not; and a rule of several.

/** Samples of one series, a minute apart, as promtool writes them: `value`, or `start+step`, and how often. */
export type Series = readonly [series: string, values: string]

export interface Alert {
  readonly name: string
  readonly severity: "critical" | "warning"
  /** PromQL over metrics of the registry alone. */
  readonly expr: string
  /** How long the condition holds before the alert fires. */
  readonly for: string
  readonly summary: string
  readonly fires: { readonly series: ReadonlyArray<Series>; readonly labels: Readonly<Record<string, string>> }
  readonly calm: ReadonlyArray<Series>
}

/**
 * Counters that grew within a window. `increase` needs two samples of a series, so one that appeared within the window
 * counts too: its first event may be why it appeared.
 */
export const grew = (series: string, window: string, by = "instance") =>
  `sum by (${by}) ((increase(${series}[${window}]) > 0) or (${series} > 0 unless ${series} offset ${window}))`
