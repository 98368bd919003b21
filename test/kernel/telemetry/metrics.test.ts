// The register of metrics: one place for each name, with a unit in the name, and no metric made elsewhere.
import { describe, expect, it } from "vitest"
import { metrics } from "../../../kernel/telemetry/metrics.ts"
import { all } from "../../../runtime/deploy/observability/registry.ts"
import { sourcesIn } from "../../architecture/sources.ts"

const endings = {
  seconds: /_seconds(_total|_left)?$/,
  stroops: /_stroops$/,
  bytes: /_bytes$/,
  count:
    /_(total|left|waiting|open|unresolved|ready|free|usable|max|in_use|generation|behind|entries|unanswered|units)$/,
  ledger: /_sequence$/,
  "yes or no": /(_available|_stalled|_info|_current|_writable|_failing)$/
} as const

describe("the register of metrics", () => {
  it("each metric has a unique name with unit and a help sentence", () => {
    expect(metrics.length).toBeGreaterThan(30)
    const names = all.map(({ name }) => name)
    expect(new Set(names).size).toBe(names.length)
    for (const { help, kind, name, unit } of all) {
      expect(name).toMatch(/^(tollkeeper|process)(_[a-z]+)+$/)
      expect(name, unit).toMatch(endings[unit])
      expect(name.endsWith("_total"), name).toBe(kind === "counter")
      expect(help, name).toMatch(/\.$/)
    }
  })

  it("no metric label takes caller-supplied text", () => {
    const labels = new Set(all.flatMap(({ labels }) => labels))
    expect([...labels].sort()).toEqual(
      [
        "cache",
        "actor",
        // Symbols of the configured assets.
        "asset",
        "consumer",
        "decision",
        "endpoint",
        "kind",
        "method",
        "operation",
        "outcome",
        "principal",
        "reason",
        "result",
        "route",
        "runtime",
        "runtime_version",
        "scheme",
        "scope",
        "status",
        "version"
      ].sort()
    )
  })

  it("every metric is declared in the register", () => {
    const made = sourcesIn("kernel", "plugins", "runtime")
      .filter(({ path }) => path !== "kernel/telemetry/Measure.ts")
      .filter(({ text }) => /Metric\.(gauge|counter|histogram|frequency|summary|timer)\(/.test(text))
      .map(({ path }) => path)
    expect(made).toEqual([])
  })
})
