// The dashboard and the alerts: equal to their source, only with existing metrics, in valid PromQL, each alert fired
// once and silenced once by promtool itself, and each with its runbook page for the operator on call.
import { execFileSync } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { describe, expect, it } from "vitest"
import { stringify } from "yaml"
import { operatorCommands } from "../../../runtime/operators.ts"
import { rulesFile } from "../../../runtime/deploy/observability/alertFiles.ts"
import { metricsIn } from "../../support/metricsIn.ts"
import { alerts } from "../../../runtime/deploy/observability/alerts.ts"
import { dashboard } from "../../../runtime/deploy/observability/dashboard.ts"
import { all } from "../../../runtime/deploy/observability/registry.ts"
import { files } from "../../../runtime/deploy/observability/write.ts"

const folder = fileURLToPath(new URL("../../../runtime/deploy/observability/", import.meta.url))
const runbook = readFileSync(new URL("../../../examples/guides/runbook.md", import.meta.url), "utf8")
const names = new Set(all.map(({ name }) => name))

const promtool = (...args: ReadonlyArray<string>): string =>
  execFileSync("promtool", args, { cwd: folder, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] })

const hasPromtool = (() => {
  try {
    promtool("--version")
    return true
  } catch {
    console.log("promtool is not installed here: rules and queries are not played (Debian: apt install prometheus)")
    return false
  }
})()

const queries = dashboard.panels.flatMap(({ targets }) =>
  ((targets ?? []) as ReadonlyArray<{ readonly expr: string }>).map(({ expr }) => expr)
)

/** The alert's section of the runbook, without its heading. */
const pageOf = (name: string): string | undefined =>
  runbook.split(/^#{2,3} /m).find((part) => part.startsWith(`${name}\n`))

describe("what an operator's monitoring is given", () => {
  it("is what its source makes: `npm run observability` writes it", () => {
    for (const [name, text] of Object.entries(files)) expect(readFileSync(join(folder, name), "utf8"), name).toBe(text)
  })

  it("uses registered metrics only, and shows every one of them", () => {
    for (const expr of [...queries, ...alerts.map((alert) => alert.expr)])
      for (const name of metricsIn(expr)) expect(names.has(name), `${name} in ${expr}`).toBe(true)
    const shown = new Set(queries.flatMap(metricsIn))
    expect([...names].filter((name) => !shown.has(name))).toEqual([])
    expect(new Set(dashboard.panels.map(({ id }) => id)).size).toBe(dashboard.panels.length)
  })

  it("pages a person: an Alertmanager is named, and each alert links its section", () => {
    expect(readFileSync(join(folder, "prometheus.yml"), "utf8")).toMatch(/^alerting:\n  alertmanagers:\n/m)
    for (const { rules } of rulesFile.groups)
      for (const { alert, annotations } of rules)
        expect(new URL(annotations.runbook_url).hash).toBe(`#${alert.toLowerCase()}`)
  })

  it("asks for labels that the metric has", () => {
    const labels = new Map(all.map((measure) => [measure.name, new Set<string>(measure.labels)]))
    for (const { expr } of alerts)
      for (const [, name = "", inner = ""] of expr.matchAll(/((?:tollkeeper|process)_[a-z_]+)\{([^}]*)\}/g))
        for (const [, label = ""] of inner.matchAll(/([a-z_]+)=/g))
          expect(labels.get(name.replace(/_bucket$/, ""))?.has(label), `${label} of ${name}`).toBe(true)
  })

  it("has a page per alert: meaning, where to check, what to do", () => {
    expect(new Set(alerts.map(({ name }) => name)).size).toBe(alerts.length)
    expect(alerts.length).toBeGreaterThan(20)
    for (const { name } of alerts) {
      const page = pageOf(name)
      expect(page, name).toBeDefined()
      for (const part of ["**Means.**", "**Check.**", "**Do.**"]) expect(page, name).toContain(part)
    }
  })

  it("names commands and metrics in those pages that there are", () => {
    const pages = alerts.map(({ name }) => pageOf(name) ?? "").join("\n")
    for (const name of metricsIn(pages)) expect(names.has(name), name).toBe(true)
    const known = new Map<string, ReadonlySet<string>>(
      operatorCommands.map(({ name, subcommands }) => [
        name,
        new Set(subcommands.flatMap(({ commands }) => commands.map((command) => command.name)))
      ])
    )
    const named = [...pages.matchAll(/`tollkeeper ([a-z-]+)(?: ([a-z][a-z-]+))?/g)]
    expect(named.length).toBeGreaterThan(15)
    for (const [text, family = "", command] of named) {
      const commands = known.get(family)
      expect(commands, text).toBeDefined()
      if (command !== undefined && commands!.size > 0) expect(commands!.has(command), text).toBe(true)
    }
  })

  it.skipIf(!hasPromtool)("fires each alert in its case and is silent in the other, by promtool", () => {
    expect(promtool("check", "rules", "alerts.yml")).toContain(`${alerts.length} rules found`)
    expect(promtool("test", "rules", "alerts.test.yml")).toContain("SUCCESS")
  })

  it.skipIf(!hasPromtool)("asks Prometheus nothing that it does not understand", () => {
    const scratch = mkdtempSync(join(tmpdir(), "tollkeeper-dashboard-"))
    const rules = queries.map((expr, index) => ({
      record: `query:${index}`,
      expr: expr.replaceAll("$__rate_interval", "5m").replaceAll("$instance", ".*")
    }))
    writeFileSync(join(scratch, "queries.yml"), stringify({ groups: [{ name: "dashboard", rules }] }))
    expect(promtool("check", "rules", join(scratch, "queries.yml"))).toContain(`${queries.length} rules found`)
    rmSync(scratch, { recursive: true })
  })
})
