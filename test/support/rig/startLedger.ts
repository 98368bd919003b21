// The embedded ledger as a separate process, which the facilitators of a scenario share and which outlives them.
import { join } from "node:path"
import process from "node:process"
import { root } from "../../../runtime/bootstrap.mjs"
import { type Program, startProgram } from "../../conformance/programs.ts"
import { freePort } from "../freePort.ts"
import { type RpcCall, rpcCall } from "../../../runtime/redteam/rpcCall.ts"
import { until } from "./until.ts"

/** Limit for a start on a busy machine. */
const healthyMillisMax = 120_000

export interface LedgerProcess {
  readonly url: string
  readonly rpc: RpcCall
  readonly program: Program
}

/** Returns when it answers; `close` is the time between two ledgers, in the command line's format. */
export const startLedger = async (close: string): Promise<LedgerProcess> => {
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const args = [join(root, "runtime/cli.ts"), "ledger", "--port", String(port), "--close", close]
  const program = startProgram(process.execPath, args, { cwd: root })
  const rpc = rpcCall(url)
  const isHealthy = async () => (await rpc("getHealth")).status === "healthy"
  await until("the ledger answers", isHealthy, healthyMillisMax, program.tail)
  return { url, rpc, program }
}
