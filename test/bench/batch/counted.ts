// The RPC calls and SQL statements of vouchers, counted by proxies in front of ledger and database, minus those of an
// idle facilitator. The rest is the cost of the channels in use with each ledger; a voucher itself costs nothing.
import type { BatchChannel } from "../../support/batchBuyer.ts"
import { countRpc, countSql, type Counter } from "../rig/counting.ts"
import { pause } from "../rig/processes.ts"
import type { BatchWorld } from "./world.ts"

export interface VoucherCounts {
  readonly vouchers: number
  readonly ledgers: number
  /** Per voucher. */
  readonly rpcCalls: number
  readonly statements: number
}

const idleMillis = 5_000
const settledMillis = 1_000
const clients = 32

const sumOf = ({ counts }: Counter, what?: string): number =>
  [...counts()].reduce((sum, [name, count]) => sum + (what === undefined || name === what ? count : 0), 0)

/** The pool `vouchers` is sent to a separate facilitator, which has not cached any of its channels. */
export const countVouchers = async (
  { clients: process, ledgerUrl, rpc, startOurs }: BatchWorld,
  channels: ReadonlyArray<BatchChannel>,
  vouchers: number
): Promise<VoucherCounts> => {
  const counter = await countRpc(ledgerUrl)
  let sql: Counter | undefined
  const subject = await startOurs({
    name: "counted",
    rpcUrl: counter.url,
    throughSql: async (url) => (sql = await countSql(url)).url
  })
  const ledgerNow = async () => (await rpc("getLatestLedger")).sequence as number
  try {
    const send = (count: number) =>
      process.send({ pool: "vouchers", port: subject.port, path: "/verify", from: 0, count, load: { clients } })
    // The first voucher of each channel reads it; from here on the ledger is followed closely.
    await send(channels.length)
    await pause(settledMillis)
    const read = () => ({ at: performance.now(), rpc: sumOf(counter), sql: sumOf(sql!, "statement") })
    const first = read()
    await pause(idleMillis)
    const [idle, ledger] = [read(), await ledgerNow()]
    await send(vouchers)
    await pause(settledMillis)
    const last = read()
    const idleMore = (last.at - idle.at) / (idle.at - first.at)
    const each = (kind: "rpc" | "sql") =>
      Math.max(0, last[kind] - idle[kind] - (idle[kind] - first[kind]) * idleMore) / vouchers
    return { vouchers, ledgers: (await ledgerNow()) - ledger, rpcCalls: each("rpc"), statements: each("sql") }
  } finally {
    await subject.stop()
    await sql?.stop()
    await counter.stop()
  }
}
