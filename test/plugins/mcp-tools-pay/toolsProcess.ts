// A tool server in a separate process that pays for agents, and can be killed.
import { Effect, type Scope } from "effect"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import process from "node:process"
import { startProgram } from "../../conformance/programs.ts"
import { freePort } from "../../support/freePort.ts"
import { payingSet, PayWorld } from "./payWorld.ts"

const root = new URL("../../../", import.meta.url).pathname
export const processKey = "0123456789abcdef"
export const readyMillisMax = 120_000

export interface Server {
  readonly url: string
  /** Kills it immediately, as a power loss does. */
  readonly kill: Effect.Effect<void>
}

export const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "tollkeeper-restart-"))),
  (state) => Effect.sync(() => rmSync(state, { recursive: true, force: true }))
)

const ready = (url: string, tail: () => string) =>
  Effect.promise(async () => {
    const until = performance.now() + readyMillisMax
    const isReady = () =>
      fetch(`${url}/readyz`).then(
        ({ ok }) => ok,
        () => false
      )
    while (!(await isReady())) {
      if (performance.now() > until) throw new Error(`the tool server was not ready\n${tail()}`)
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  })

/** A tool server in a separate process; its budget is in the database if given, otherwise in the folder. */
export const start = Effect.fnUntraced(function* (
  keystore: { readonly file: string; readonly key: string },
  state: string,
  database?: string,
  more: ReadonlyArray<string> = []
): Effect.fn.Return<Server, unknown, Scope.Scope | PayWorld> {
  const { facilitator } = yield* PayWorld
  const port = yield* Effect.promise(freePort)
  const set = [
    ...payingSet(facilitator),
    "transport=http",
    `http.port=${port}`,
    "http.host=127.0.0.1",
    "http_payments.enabled=true",
    `facilitator.base_url=${facilitator.url}`,
    "signer.mode=encrypted-key",
    `signer.keystore_file=${keystore.file}`,
    `budget.store=${database === undefined ? "file" : "postgres"}`,
    ...more
  ]
  const program = yield* Effect.acquireRelease(
    Effect.sync(() =>
      startProgram(
        process.execPath,
        ["runtime/cli.ts", "tools", "--state", state, ...set.flatMap((one) => ["--set", one])],
        {
          cwd: root,
          env: {
            TOOLS_KEYSTORE_KEY: keystore.key,
            TOOLS_API_KEYS: `agent:${processKey}`,
            ...(database === undefined ? {} : { DATABASE_URL: database })
          }
        }
      )
    ),
    (program) => Effect.promise(() => program.stop())
  )
  const url = `http://127.0.0.1:${port}`
  yield* ready(url, program.tail)
  return { url, kill: Effect.promise(() => program.kill()) }
})
