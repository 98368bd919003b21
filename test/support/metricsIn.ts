// The names of metrics that an expression of Prometheus reads, a histogram's by its own name.
export const metricsIn = (expr: string): ReadonlyArray<string> => [
  ...new Set([...expr.matchAll(/\b(?:tollkeeper|process)_[a-z_]+/g)].map(([name]) => name.replace(/_bucket$/, "")))
]
