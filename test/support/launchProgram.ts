// The program as a separate process, over the ledger of a facilitator in this one, for tests that kill it, restart it,
// or set its environment. It only pays by x402-exact and has an embedded database in its state folder.
import { Effect, type Scope } from "effect"
import { existsSync } from "node:fs"
import { join } from "node:path"
import process from "node:process"
import { fileURLToPath } from "node:url"
import { type Program, startProgram } from "../conformance/programs.ts"
import type { Facilitator } from "./facilitator.ts"
import { fillState } from "./migratedDumps.ts"
import { overLedger, setting } from "./rig/settings.ts"
import { isReady } from "./rig/until.ts"

const root = fileURLToPath(new URL("../..", import.meta.url))
/** A busy machine takes ten times as long as a quiet one. */
const readyMillisMax = 200_000

export interface LaunchOptions {
  readonly world: Facilitator
  readonly stateFolder: string
  readonly port: number
  readonly channels: number
  /** Further settings, each `path=value`. */
  readonly set?: ReadonlyArray<string>
  readonly env?: Readonly<Record<string, string>>
  /** How it ends with the Scope; default `kill`, without a graceful stop. */
  readonly end?: "kill" | "stop"
}

export interface Launched {
  readonly program: Program
  readonly url: string
  /** Time from its start until it was ready. */
  readonly millis: number
}

const launch = async (options: LaunchOptions): Promise<Launched> => {
  const { channels, env = {}, port, set = [], stateFolder, world } = options
  const { ledgerUrl } = world
  const settings = setting("plugins=[x402-exact]", ...overLedger({ rpcUrl: ledgerUrl, ledgerUrl, channels }), ...set)
  const url = `http://127.0.0.1:${port}`
  const startedAt = performance.now()
  const args = ["runtime/cli.ts", "start", "--state", stateFolder, "--port", String(port), ...settings]
  const program = startProgram(process.execPath, args, { cwd: root, env })
  while (!(await isReady(url))) {
    if (performance.now() - startedAt > readyMillisMax) throw new Error(`not ready\n${program.tail()}`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  return { program, url, millis: performance.now() - startedAt }
}

/** A first start finds its migrated database, which costs less than to create it. */
const fillOnce = ({ env = {}, stateFolder }: LaunchOptions) =>
  env["DATABASE_URL"] !== undefined || existsSync(join(stateFolder, "database"))
    ? Effect.void
    : Effect.orDie(fillState(stateFolder, ["x402-exact"]))

/** Starts it and waits until it is ready. */
export const launchProgram = (options: LaunchOptions): Effect.Effect<Launched, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.andThen(
      fillOnce(options),
      Effect.promise(() => launch(options))
    ),
    ({ program }) => Effect.promise(() => program[options.end ?? "kill"]())
  )
