// The world of a conformance run: a facilitator with its embedded ledger, started as a user starts it (`tollkeeper
// start`) on free ports with its own state folder, or a running one from the command line. It provides funded accounts
// and reads balances from the ledger, never from the facilitator.
import { execFile } from "node:child_process"
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises"
import { connect } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import { Keypair } from "@stellar/stellar-sdk"
import { usdcBalance } from "../../runtime/redteam/balances.ts"
import { askFriendbot, type RpcCall, rpcCall } from "../../runtime/redteam/rpcCall.ts"
import { startProgram } from "./programs.ts"
import { freePort } from "../support/freePort.ts"
import { fillLocalState } from "../support/migratedDumps.ts"

const execute = promisify(execFile)

/** The folder of the project. */
export const root = new URL("../..", import.meta.url).pathname

export interface AuditAnswer {
  readonly settlements: number
  readonly transactions: number
  readonly mismatches: ReadonlyArray<{ readonly rule: string; readonly subject: string; readonly detail: string }>
}

export interface World {
  readonly facilitator: string
  /** Origin of the ledger's plain listener. */
  readonly ledger: string
  /** Origin of the ledger's HTTPS listener, which the official client requires. */
  readonly ledgerHttps: string
  /** File with the certificate of that listener. */
  readonly certificate: string
  readonly rpc: RpcCall
  /** A new account with XLM, a USDC trustline and `usdc` USDC. */
  readonly account: (usdc: number) => Promise<Keypair>
  /** Atomic USDC units of an account. */
  readonly balance: (address: string) => Promise<bigint>
  /** Milliseconds from the first start to ready; undefined for a facilitator that was already running. */
  readonly readyAfterMs: number | undefined
  /**
   * Kills the facilitator without a warning and restarts it on the same state, with additional variables; returns
   * milliseconds until it is ready again.
   */
  readonly crash: ((environment?: Record<string, string>) => Promise<number>) | undefined
  /** The answer of `tollkeeper audit --json` for a facilitator that was started here; undefined for any other. */
  readonly audit: (() => Promise<AuditAnswer>) | undefined
  /** The last lines the facilitator wrote, for a report. */
  readonly tail: () => string
  readonly stop: () => Promise<void>
}

export interface WorldOptions {
  readonly url?: string | undefined
  readonly ledger?: string | undefined
  readonly ledgerHttps?: string | undefined
  readonly certificate?: string | undefined
  /** Measures a first start: the state folder is empty. Otherwise its database is migrated in advance. */
  readonly isFirstStart?: boolean
  /** Settings that override those of the local profile, for a facilitator that is started here. */
  readonly set?: ReadonlyArray<string>
  /** Variables of the environment, for the same. */
  readonly environment?: Record<string, string>
}

export const startWorld = async (options: WorldOptions): Promise<World> => {
  if (options.url !== undefined) {
    const ledger = options.ledger ?? "http://127.0.0.1:8000"
    return {
      ...over(options.url, ledger),
      ledgerHttps: options.ledgerHttps ?? "https://127.0.0.1:8443",
      certificate: options.certificate ?? join(root, ".tollkeeper", "ledger", "ledger-cert.pem"),
      readyAfterMs: undefined,
      crash: undefined,
      audit: undefined,
      tail: () => "",
      stop: async () => {}
    }
  }
  const state = await mkdtemp(join(tmpdir(), "tollkeeper-conformance-"))
  if (options.isFirstStart !== true) await fillLocalState(state)
  const [port, ledgerPort, ledgerHttpsPort] = [await freePort(), await freePort(), await freePort()]
  const facilitator = `http://127.0.0.1:${port}`
  const launch = (environment: Record<string, string> = {}) =>
    startProgram(
      process.execPath,
      [
        "runtime/cli.ts",
        "start",
        ...["--state", state],
        ...["--port", String(port)],
        ...["--ledger-port", String(ledgerPort)],
        ...["--ledger-https-port", String(ledgerHttpsPort)],
        ...(options.set ?? []).flatMap((setting) => ["--set", setting])
      ],
      { cwd: root, env: { ...options.environment, ...environment } }
    )
  let program = launch()
  const untilReady = async (): Promise<number> => {
    const started = performance.now()
    // A busy machine takes ten times as long as a quiet one; the part `restart` measures.
    await ready(facilitator, 400_000, () => program.tail())
    return Math.round(performance.now() - started)
  }
  const stop = async () => {
    await program.stop()
    await rm(state, { recursive: true, force: true })
  }
  try {
    const readyAfterMs = await untilReady()
    const ledgerHttps = `https://127.0.0.1:${ledgerHttpsPort}`
    return {
      ...over(facilitator, `http://127.0.0.1:${ledgerPort}`),
      ledgerHttps,
      certificate: await findCertificate(state, ledgerHttps),
      readyAfterMs,
      crash: async (environment) => {
        await program.kill()
        program = launch(environment)
        return untilReady()
      },
      audit: () => auditOf(state, options.set ?? []),
      tail: () => program.tail(),
      stop
    }
  } catch (error) {
    await stop()
    throw error
  }
}

const over = (facilitator: string, ledger: string) => {
  const rpc = rpcCall(ledger)
  return {
    facilitator: facilitator.replace(/\/+$/, ""),
    ledger,
    rpc,
    account: async (usdc: number) => {
      const account = Keypair.random()
      await askFriendbot(ledger, account.publicKey(), usdc)
      return account
    },
    balance: (address: string) => usdcBalance(rpc, address)
  }
}

/** Runs the command while the facilitator runs, which executes it; with mismatches its exit code is 1. */
const auditOf = async (state: string, set: ReadonlyArray<string>): Promise<AuditAnswer> => {
  const settings = set.flatMap((setting) => ["--set", setting])
  const words = ["runtime/cli.ts", "audit", "--json", "--state", state, ...settings]
  const { stderr, stdout } = await execute(process.execPath, words, { cwd: root }).catch(
    (error: { readonly stdout?: string; readonly stderr?: string }) => ({ stdout: "", stderr: String(error), ...error })
  )
  const line = stdout.split("\n").find((one) => one.startsWith("{"))
  if (line === undefined) throw new Error(`the audit answered no JSON: ${stdout}${stderr}`)
  return JSON.parse(line) as AuditAnswer
}

/** Waits until `/health/ready` answers 200. */
const ready = async (facilitator: string, waitMs: number, tail: () => string): Promise<void> => {
  const until = performance.now() + waitMs
  for (;;) {
    const answer = await fetch(`${facilitator}/health/ready`).catch(() => undefined)
    if (answer?.status === 200) return
    if (performance.now() > until) throw new Error(`the facilitator was not ready within ${waitMs} ms\n${tail()}`)
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

/** The file below `folder` that holds the ledger's certificate; its HTTPS listener may open a little after the rest. */
const findCertificate = async (folder: string, ledgerHttps: string): Promise<string> => {
  const until = performance.now() + 20_000
  for (;;) {
    const certificate = await certificateIn(folder)
    if (certificate !== undefined && (await listens(ledgerHttps))) return certificate
    if (performance.now() > until)
      throw new Error(`no certificate of the ledger in ${folder}, or nothing at ${ledgerHttps}`)
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

const listens = (url: string): Promise<boolean> =>
  new Promise((resolve) => {
    const { hostname, port } = new URL(url)
    const socket = connect(Number(port), hostname, () => {
      socket.destroy()
      resolve(true)
    }).on("error", () => resolve(false))
  })

const certificateIn = async (folder: string): Promise<string | undefined> => {
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile() || !/\.(pem|crt|cert)$/.test(entry.name)) continue
    const path = join(entry.parentPath, entry.name)
    if ((await readFile(path, "utf8")).includes("BEGIN CERTIFICATE")) return path
  }
  return undefined
}
