// What a process loads before it begins, as Node loads it: a program that stays must not hold what it never uses. The
// help of a command is printed when everything is loaded that every run of it loads.
import { execFile } from "node:child_process"
import { join } from "node:path"
import { promisify } from "node:util"
import { expect, it } from "vitest"
import { root } from "../../runtime/bootstrap.mjs"

const recorder = `data:text/javascript,${encodeURIComponent(`
  import { registerHooks } from "node:module"
  const seen = new Set()
  registerHooks({
    resolve(specifier, context, next) {
      const found = next(specifier, context)
      if (!seen.has(found.url)) console.error("loads " + found.url)
      seen.add(found.url)
      return found
    }
  })
`)}`

/** The files that a command loads, relative to the project. */
const loadedBy = async (command: string): Promise<ReadonlyArray<string>> => {
  const words = ["--disable-warning=ExperimentalWarning", "--import", recorder, "runtime/cli.mjs", command, "--help"]
  const { stderr } = await promisify(execFile)(process.execPath, words, { cwd: root, maxBuffer: 2 ** 25 })
  const loaded = [...stderr.matchAll(/^loads file:\/\/(.*)$/gm)].map(([, path]) => decodeURI(path ?? ""))
  return loaded.filter((path) => path.startsWith(root)).map((path) => path.slice(join(root, "/").length))
}

// Deno loads by itself, and has no such hooks.
const isNode = !("Deno" in globalThis)

it.runIf(isNode)(
  "a facilitator loads nothing of what its profile does not name, and no command",
  { timeout: 120_000 },
  async () => {
    const loaded = await loadedBy("start")
    expect(loaded).toContain("runtime/serve.ts")
    expect(loaded).toContain("kernel/settlement/reconcileSettlements.ts")
    expect(loaded).toContain("node_modules/effect/dist/Effect.js")
    const later = [
      /^plugins\/ledger-local\/(node\/(?!parseFault)|rpc\/|engine\/(?!xdr\/)|openLocalLedger|serve|startLedger)/,
      /^plugins\/mcp-tools-pay\/(call|payer|policy\/(?!policySection)|seller)/,
      /^plugins\/mcp-tools\/serveTools/,
      /^plugins\/(x402-upto\/UptoScheme|x402-upto-local\/deploy|demo\/demonstrate)/,
      /^runtime\/(operators\.ts|commands\/(?!start|place|printConfig))/,
      // An index loads everything that its package has.
      /^node_modules\/effect\/dist\/((http|encoding|observability|reactivity|sql)\/)?index\.js$/,
      /^node_modules\/(@modelcontextprotocol|@opentelemetry|@effect\/opentelemetry)\//
    ]
    expect(loaded.filter((path) => later.some((pattern) => pattern.test(path)))).toEqual([])
  }
)
