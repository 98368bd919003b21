// The modules that a process loads before it begins, as Node loads them: a long-running program must not hold modules
// that it never uses. A command's help is printed after loading everything that every run of it loads.
import { Effect } from "effect"
import { execFile } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { createServer } from "node:http"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import { expect, it } from "vitest"
import { root } from "../../runtime/bootstrap.mjs"
import { announce } from "../../runtime/state.ts"

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

/** The files that a command line loads, relative to the project, and its output. */
const run = async (...words: ReadonlyArray<string>) => {
  const args = ["--disable-warning=ExperimentalWarning", "--import", recorder, "runtime/cli.mjs", ...words]
  const { stderr, stdout } = await promisify(execFile)(process.execPath, args, { cwd: root, maxBuffer: 2 ** 25 })
  const all = [...stderr.matchAll(/^loads file:\/\/(.*)$/gm)].map(([, path]) => decodeURI(path ?? ""))
  const loaded = all.filter((path) => path.startsWith(root)).map((path) => path.slice(join(root, "/").length))
  return { loaded, stdout }
}

// Deno loads modules itself, without such hooks.
const isNode = !("Deno" in globalThis)

it.runIf(isNode)(
  "a facilitator loads nothing of what its profile does not name, and no command",
  { timeout: 120_000 },
  async () => {
    const { loaded } = await run("start", "--help")
    expect(loaded).toContain("runtime/serve.ts")
    expect(loaded).toContain("kernel/settlement/follower/reconcileSettlements.ts")
    expect(loaded).toContain("node_modules/effect/dist/Effect.js")
    const later = [
      /^plugins\/ledger-local\/(node\/(?!parseFault)|rpc\/|engine\/(?!xdr\/)|openLocalLedger|serve|startLedger)/,
      /^plugins\/mcp-tools-pay\/(call|payer|policy\/(?!policySection)|seller)/,
      /^plugins\/mcp-tools\/serveTools/,
      /^plugins\/(x402-upto\/UptoScheme|x402-(upto|batch)-local\/deploy|demo\/demonstrate)/,
      /^runtime\/(operators\.ts|commands\/(?!start|CommandTarget|printConfig))/,
      // An index loads everything that its package has.
      /^node_modules\/effect\/dist\/((http|encoding|observability|reactivity|sql)\/)?index\.js$/,
      /^node_modules\/(@modelcontextprotocol|@opentelemetry|@effect\/opentelemetry)\//
    ]
    expect(loaded.filter((path) => later.some((pattern) => pattern.test(path)))).toEqual([])
  }
)

/** A stand-in for a facilitator over a separate state folder, which answers every operator's command. */
const running = Effect.gen(function* () {
  const state = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "tollkeeper-loads-"))),
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
  )
  const server = yield* Effect.acquireRelease(
    Effect.promise(async () => {
      const answer = JSON.stringify({ status: 0, out: "carried out", err: "" })
      const server = createServer((_request, response) => void response.end(answer))
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
      return server
    }),
    (server) => Effect.sync(() => server.close())
  )
  const { port } = server.address() as { readonly port: number }
  const operators = { url: `http://127.0.0.1:${port}`, key: "key", families: ["settlements"] }
  yield* announce(state, { profile: "local", isAlone: true, database: "embedded", operators })
  return state
})

it.runIf(isNode)(
  "an operator's command that a running process carries out loads no command, and one that none does loads them",
  { timeout: 120_000 },
  () =>
    Effect.runPromise(
      Effect.scoped(
        Effect.gen(function* () {
          const state = yield* running
          const commands = (loaded: ReadonlyArray<string>) =>
            loaded.filter((path) => /^(runtime\/(commands\/|operators\.ts)|kernel\/settlement\/|plugins\/)/.test(path))
          const answered = yield* Effect.promise(() => run("settlements", "list", "--state", state))
          expect(answered.stdout).toBe("carried out\n")
          expect(commands(answered.loaded)).toEqual([])
          const reported = yield* Effect.promise(() => run("settlements", "list", "--help"))
          expect(commands(reported.loaded)).toContain("runtime/commands/settlements.ts")
        })
      )
    )
)
