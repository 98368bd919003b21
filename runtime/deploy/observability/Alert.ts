// The shape of an alert: its rule, and a case in which it fires and one in which it must not.

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
