// The type of an alert: its rule, a case that fires it, and a case that does not. Also an expression that several rules
// share.

/** Samples of one series, a minute apart, as promtool writes them: `value`, or `start+step`, and how often. */
export type Series = readonly [series: string, values: string]

export interface Alert {
  readonly name: string
  readonly severity: "critical" | "warning"
  /** PromQL that only uses metrics of the registry. */
  readonly expr: string
  /** How long the condition holds before the alert fires. */
  readonly for: string
  readonly summary: string
  readonly fires: { readonly series: ReadonlyArray<Series>; readonly labels: Readonly<Record<string, string>> }
  readonly calm: ReadonlyArray<Series>
}

/**
 * Counters that grew within a window. `increase` needs two samples of a series, so a series that appeared within the
 * window counts too: it may have appeared because of its first event.
 */
export const grew = (series: string, window: string, by = "instance") =>
  `sum by (${by}) ((increase(${series}[${window}]) > 0) or (${series} > 0 unless ${series} offset ${window}))`

/** Cases of one series: it fires with the first values, and not with the second. The alert has the series' labels. */
export const onSeries = (series: string, fires: string, calm: string): Pick<Alert, "fires" | "calm"> => ({
  fires: {
    series: [[series, fires]],
    labels: Object.fromEntries([...series.matchAll(/(\w+)="([^"]*)"/g)].map(([, name, value]) => [name!, value!]))
  },
  calm: [[series, calm]]
})
