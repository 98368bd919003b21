// The register of metrics: one place for each name, with a unit in the name, and no metric made elsewhere.
import { describe, expect, it } from "vitest"
import { metrics } from "../../../kernel/telemetry/metrics.ts"
import { all } from "../../../runtime/deploy/observability/registry.ts"
import { sourcesIn } from "../../architecture/sources.ts"

const endings = {
  seconds: /_seconds(_total)?$/,
  stroops: /_stroops$/,
  bytes: /_bytes$/,
  count: /(_total|_left|_waiting|_open|_unresolved|_ready|_free|_usable|_max|_in_use|_generation|_behind)$/,
  ledger: /_sequence$/,
  "yes or no": /(_available|_stalled|_info|_current|_writable)$/
} as const

describe("the register of metrics", () => {
  it("has each name once, with its unit at the end and help that is a sentence", () => {
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

  it("has no label that a caller could fill with words of its own", () => {
    const labels = new Set(all.flatMap(({ labels }) => labels))
    expect([...labels].sort()).toEqual(
      [
        "consumer",
        "decision",
        "endpoint",
        "method",
        "operation",
        "outcome",
        "principal",
        "reason",
        "route",
        "runtime",
        "runtime_version",
        "scheme",
        "scope",
        "status",
        "version",
        "word"
      ].sort()
    )
  })

  it("is where every metric of the product is made", () => {
    const made = sourcesIn("kernel", "plugins", "runtime")
      .filter(({ path }) => path !== "kernel/telemetry/Measure.ts")
      .filter(({ text }) => /Metric\.(gauge|counter|histogram|frequency|summary|timer)\(/.test(text))
      .map(({ path }) => path)
    expect(made).toEqual([])
  })
})
