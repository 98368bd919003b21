// Allowed imports: the kernel imports only layers below and never a plugin, a plugin imports the kernel and itself, and
// only `runtime/` imports a platform. Checks the table of `kernel/README.md` against every import.
import { posix } from "node:path"
import { describe, expect, it } from "vitest"
import { parts } from "../../runtime/loading.mjs"
import { isPage, parseSource, readText, type Source, sources, sourcesIn } from "./sources.ts"

const platform = /^(node:|bun:|jsr:|@effect\/platform-|@effect\/sql-pglite|@electric-sql\/|https?:)/

/** Higher may import lower; the same only itself. `root` means the files of the kernel's own folder, its mechanism. */
const levels: Readonly<Record<string, number>> = {
  platform: 0,
  telemetry: 0,
  cache: 0,
  effect: 0,
  time: 0,
  contract: 1,
  actor: 2,
  config: 3,
  database: 4,
  facts: 5,
  root: 6,
  http: 7,
  plugin: 8,
  stellar: 8,
  health: 9,
  ledger: 10,
  accounts: 11,
  signer: 11,
  budget: 11,
  settlement: 12,
  payment: 13,
  audit: 13,
  drivers: 14
}

const unitOf = (path: string): string => {
  const [, folder, file] = path.split("/")
  if (file !== undefined) return folder ?? ""
  return folder === "drivers.ts" ? "drivers" : "root"
}

const kernelIssue = (path: string, target: string): string | undefined => {
  if (!target.startsWith("kernel/")) return "the kernel imports only the kernel"
  const [from, to] = [unitOf(path), unitOf(target)]
  if (levels[from] === undefined || levels[to] === undefined) return "a folder of the kernel that has no level yet"
  if (from === to || levels[from] > levels[to]) return undefined
  return "the kernel imports downwards only"
}

/** A page's module is served unbundled, so it imports only modules served with it and the page's libraries. */
const pageLibraries = new Set(["preact", "preact/hooks", "uplot"])

const pluginIssue = (path: string, target: string): string | undefined => {
  if (isPage(path) !== isPage(target)) return "a page imports only page modules, and only pages import them"
  const [own, other] = [path.split("/")[1], target.split("/")[1]]
  if (target.startsWith("kernel/"))
    return target.endsWith("Wire.ts") ? "a plugin leaves the kernel's wire alone" : undefined
  if (!target.startsWith("plugins/")) return "a plugin imports the kernel and plugins only"
  return own === other || target.endsWith("/contract.ts")
    ? undefined
    : "of another plugin only its contract is imported"
}

const runtimeIssue = (path: string, target: string): string | undefined => {
  if (target.startsWith("kernel/") || target.startsWith("runtime/")) return undefined
  // The standalone ledger is a separate program, so its command starts more than a plugin.
  if (path === "runtime/runLedger.ts" && target === "plugins/ledger-local/standalone.ts") return undefined
  // These examples are commands too, for users without a checkout.
  const commands = { pay: "pay", checkSeller: "checkSeller", watch: "watchtower" }
  for (const [name, example] of Object.entries(commands))
    if (path === `runtime/commands/${name}.ts` && target === `examples/${example}.ts`) return undefined
  // Only the published scripts check receipts.
  if (
    /^runtime\/(?:verifyReceipt|fetchReceipts|auditLog|compareHeads)\.ts$/.test(path) &&
    target.startsWith("examples/receipts/")
  )
    return undefined
  return /^plugins\/[a-z0-9-]+\/plugin\.ts$/.test(target)
    ? undefined
    : "the runtime imports of a plugin its plugin.ts only"
}

const ruleOf: Readonly<Record<string, (path: string, target: string) => string | undefined>> = {
  kernel: kernelIssue,
  plugins: pluginIssue,
  runtime: runtimeIssue,
  examples: (_, target) =>
    /^(examples|kernel)\/|\/contract\.ts$/.test(target) ? undefined : "an example imports public modules only"
}

/** Violations in one source's imports. */
const importIssues = (source: Source): ReadonlyArray<string> => {
  const folder = source.path.split("/")[0] ?? ""
  return source.imports.flatMap((specifier) => {
    const said = (why: string | undefined) => (why === undefined ? [] : [`${source.path} → ${specifier}: ${why}`])
    if (specifier.startsWith(".")) {
      const target = posix.join(posix.dirname(source.path), specifier)
      if (!/\.(ts|mjs|mts|json)$/.test(target)) return said("a file is imported by its whole name")
      if (target.startsWith("test/") && folder !== "test") return said("only tests import tests")
      // A page runs published scripts unchanged.
      if (isPage(source.path) && /^examples\/receipts\/(?:check|verify)\.mjs$/.test(target)) return []
      // Types of the answers; nothing of them is served.
      if (source.path === "plugins/dashboard/web/reports.ts" && target === "examples/client/types.ts") return []
      return said(ruleOf[folder]?.(source.path, target))
    }
    if (isPage(source.path))
      return said(pageLibraries.has(specifier) ? undefined : "a page has the libraries of the page alone")
    if (!["kernel", "plugins", "migrations"].includes(folder)) return []
    return said(platform.test(specifier) ? "only the runtime folder knows a platform" : undefined)
  })
}

const packageOf = (specifier: string): string =>
  specifier
    .split("/")
    .slice(0, specifier.startsWith("@") ? 2 : 1)
    .join("/")

const manifest = JSON.parse(readText("package.json")) as Record<
  "dependencies" | "devDependencies",
  Record<string, string>
>

/**
 * The program's own files, which do not depend on particular plugins. `App.ts` lists plugins; a command may be about
 * one.
 */
const programs = ["runtime/cli.mjs", "runtime/commandLine.ts", "runtime/greeting.ts", "runtime/serve.ts"]

/**
 * The sources that a program reaches by relative imports, without `but` and the sources that only they reach; with each
 * one's imports.
 */
const reachedFrom = (program: string, but: ReadonlyArray<string> = []): ReadonlyMap<string, ReadonlyArray<string>> => {
  const reached = new Map<string, ReadonlyArray<string>>()
  const follow = (path: string): void => {
    if (reached.has(path) || but.includes(path)) return
    const imports = sources.find((source) => source.path === path)?.imports ?? []
    reached.set(path, imports)
    for (const specifier of imports) if (specifier.startsWith(".")) follow(posix.join(posix.dirname(path), specifier))
  }
  follow(program)
  return reached
}

describe("the program", () => {
  it("names no plugin but in its list", () => {
    const ids = new Set(sourcesIn("plugins").map(({ path }) => path.split("/")[1] ?? ""))
    expect(ids.size).toBeGreaterThan(5)
    const named = sources
      .filter(({ path }) => programs.includes(path))
      .flatMap(({ path, text }) => [...ids].filter((id) => text.includes(`"${id}"`)).map((id) => `${path}: ${id}`))
    expect(named).toEqual([])
  })
})

describe("imports", () => {
  it(
    "go downwards in the kernel, from plugins to the kernel, and to a platform from the " + "runtime only [S336, S338]",
    () => {
      expect(sources.flatMap(importIssues)).toEqual([])
    }
  )

  it.each([
    ["kernel/facts/Facts.ts", "../plugins/catalog/contract.ts"],
    ["kernel/ledger/JsonRpc.ts", "node:http"],
    ["kernel/ledger/JsonRpc.ts", "../payment/Wire.ts"],
    ["kernel/database/Database.ts", "../http/Keys.ts"],
    ["kernel/facts/Facts.ts", "../settlement/state/Settlement.ts"],
    ["kernel/facts/Facts.ts", "./Health"],
    ["plugins/catalog/Catalog.ts", "../x402-exact/checks.ts"],
    ["plugins/catalog/Catalog.ts", "../../kernel/payment/wire/Wire.ts"],
    ["plugins/catalog/Catalog.ts", "../../runtime/App.ts"],
    ["plugins/catalog/Catalog.ts", "@effect/platform-node"],
    ["runtime/App.ts", "../plugins/catalog/Catalog.ts"],
    ["runtime/App.ts", "../test/support/buyer.ts"],
    ["plugins/dashboard/web/parts.ts", "../Assets.ts"],
    ["plugins/dashboard/web/parts.ts", "effect"],
    ["plugins/dashboard/plugin.ts", "./web/format.ts"]
  ])("would catch %s importing %s", (path, specifier) => {
    expect(importIssues(parseSource(path, `import { x } from "${specifier}"\nx()`))).toHaveLength(1)
    expect(importIssues(parseSource(path, `import type { X } from "${specifier}"\nexport type { X }`))).toHaveLength(1)
    expect(importIssues(parseSource(path, `export const x = () => import("${specifier}")`))).toHaveLength(1)
  })

  it("of the product load parts of packages, which keeps the start fast", () => {
    // Each of these loads some hundred files that nothing here uses: a client of Redis, and an older SDK of MCP.
    const whole = /^(@effect\/platform-node|@effect\/opentelemetry|@modelcontextprotocol\/sdk\/.*)$/
    const loading = sourcesIn("kernel", "plugins", "runtime").flatMap(({ imports, path }) =>
      imports.filter((specifier) => whole.test(specifier)).map((specifier) => `${path}: ${specifier}`)
    )
    expect(loading).toEqual([])
  })

  it("of the standalone ledger reach nothing of the facilitator", () => {
    const reached = reachedFrom("runtime/ledgerLine.ts")
    const others = [...reached.keys()].filter(
      (path) =>
        /^plugins\/(?!ledger-local\/)/.test(path) || /^kernel\/(drivers|payment|settlement|signer|budget)/.test(path)
    )
    expect(reached.size).toBeGreaterThan(100)
    expect(others).toEqual([])
  })

  it("of the standalone ledger load no large unused package at start", () => {
    // Each costs two to ten megabytes: builders of transactions, codecs of archives, exporters of telemetry.
    const large =
      /^(@stellar\/stellar-sdk(\/base)?|effect\/(encoding|http|http-api|observability|sql)|@effect\/opentelemetry.*)$/
    // The one is loaded only where telemetry is collected, of the other only types are used.
    const others = ["runtime/platform/telemetrySent.ts", "kernel/plugin/Plugin.ts"]
    const loading = [...reachedFrom("runtime/ledgerLine.ts", others)].flatMap(([path, imports]) =>
      imports.filter((one) => large.test(one)).map((one) => `${path}: ${one}`)
    )
    expect(loading).toEqual([])
    expect(readText("runtime/platform/telemetry.ts")).toContain('await import("./telemetrySent.ts")')
  })

  it("of the plugins' list load the MCP SDK only when enabled", () => {
    const sdk = [...reachedFrom("runtime/App.ts", ["plugins/mcp-tools/serveTools.ts"])].flatMap(([path, imports]) =>
      imports.filter((one) => one.startsWith("@modelcontextprotocol/")).map((one) => `${path}: ${one}`)
    )
    expect(sdk).toEqual([])
    expect(readText("plugins/mcp-tools/plugin.ts")).toContain('loaded(() => import("./serveTools.ts"))')
  })

  it("of a package's index are of used modules only", () => {
    const named = (specifier: string) =>
      new Set(
        sourcesIn("kernel", "plugins", "runtime")
          .flatMap(({ program }) => program["body"] as ReadonlyArray<any>)
          .filter(
            ({ importKind, source, type }) =>
              type === "ImportDeclaration" && importKind !== "type" && source.value === specifier
          )
          .flatMap(({ specifiers }) => specifiers as ReadonlyArray<any>)
          .filter(({ importKind }) => importKind !== "type")
          .map(({ imported, type }) => (type === "ImportSpecifier" ? (imported.name as string) : "everything"))
      )
    for (const [specifier, names] of Object.entries(parts))
      expect([...named(specifier)].toSorted(), specifier).toEqual([...names].toSorted())
    expect(named("effect").size).toBeGreaterThan(25)
  })

  it("of the product name only packages that are installed with it", () => {
    const bare = sourcesIn("kernel", "plugins", "runtime").flatMap(({ imports, path }) =>
      imports
        .filter((specifier) => !specifier.startsWith(".") && !specifier.startsWith("node:"))
        .map((specifier) => ({ path, specifier }))
    )
    const missing = bare.filter(({ specifier }) => manifest.dependencies[packageOf(specifier)] === undefined)
    expect(missing).toEqual([])
    expect(bare.filter(({ specifier }) => packageOf(specifier).startsWith("@x402/"))).toEqual([])
  })
})
