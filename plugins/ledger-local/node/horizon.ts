// The one answer of Horizon that payment clients ask for: recent ledgers with their close times, in Horizon's own
// shape.
import { headerOf } from "./Header.ts"
import type { LedgerRecord } from "./History.ts"
import type { Ledger } from "./Ledger.ts"
import { codecs } from "../transaction/Wire.ts"
import { toBase64, toHex } from "./text.ts"
import { toid } from "../rpc/getTransaction.ts"

const LEDGERS_DEFAULT = 10
const LEDGERS_MAX = 200

const stroopsText = (stroops: bigint): string =>
  `${stroops / 10_000_000n}.${(stroops % 10_000_000n).toString().padStart(7, "0")}`

/**
 * Close times of `records`, seconds, at least one apart as on the real network. Ledgers that the friendbot makes share
 * a second; official clients divide by the mean distance of twenty ledgers and fail when it is zero.
 */
const spacedCloseTimes = (records: ReadonlyArray<LedgerRecord>): ReadonlyMap<number, number> => {
  const times = new Map<number, number>()
  let newer = Infinity
  for (const { closeTime, sequence } of [...records].sort((a, b) => b.sequence - a.sequence)) {
    newer = Math.min(Number(closeTime), newer - 1)
    times.set(sequence, newer)
  }
  return times
}

const item = (ledger: Ledger, origin: string, record: LedgerRecord, closeTimeSeconds: number) => {
  const header = headerOf(ledger.options.settings, record)
  const succeeded = record.transactions.filter((transaction) => transaction.succeeded).length
  return {
    _links: { self: { href: `${origin}/ledgers/${record.sequence}` } },
    id: toHex(record.hash),
    paging_token: toid(record.sequence, 0, 0).toString(),
    hash: toHex(record.hash),
    prev_hash: toHex(header.previousLedgerHash),
    sequence: record.sequence,
    successful_transaction_count: succeeded,
    failed_transaction_count: record.transactions.length - succeeded,
    operation_count: succeeded,
    tx_set_operation_count: record.transactions.length,
    closed_at: new Date(closeTimeSeconds * 1_000).toISOString().replace(".000Z", "Z"),
    total_coins: stroopsText(header.totalCoins),
    fee_pool: stroopsText(header.feePool),
    base_fee_in_stroops: header.baseFee,
    base_reserve_in_stroops: header.baseReserve,
    max_tx_set_size: header.maxTxSetSize,
    protocol_version: header.ledgerVersion,
    header_xdr: toBase64(codecs.LedgerHeader.encode(header))
  }
}

/** `GET /ledgers?limit=&order=&cursor=`; a text reports the bad parameter, for which Horizon returns 400. */
export const horizonLedgers = (ledger: Ledger, url: URL): object | string => {
  const limitText = url.searchParams.get("limit")
  const limit = limitText === null ? LEDGERS_DEFAULT : /^[0-9]{1,3}$/.test(limitText) ? Number(limitText) : 0
  const order = url.searchParams.get("order") ?? "asc"
  const cursor = url.searchParams.get("cursor") ?? ""
  if (limit < 1 || limit > LEDGERS_MAX) return `limit is a whole number from 1 to ${LEDGERS_MAX}`
  if (order !== "asc" && order !== "desc") return "order is asc or desc"
  if (cursor !== "" && cursor !== "now" && !/^[0-9]{1,19}$/.test(cursor))
    return "cursor is a paging_token of a ledger, or now"
  const { history } = ledger
  const at = cursor === "" ? undefined : cursor === "now" ? history.latest.sequence + 1 : Number(BigInt(cursor) >> 32n)
  const records: Array<LedgerRecord> = []
  const step = order === "asc" ? 1 : -1
  let sequence = at === undefined ? (order === "asc" ? history.oldest.sequence : history.latest.sequence) : at + step
  while (records.length < limit) {
    const record = history.ledger(sequence)
    if (record === undefined) break
    records.push(record)
    sequence += step
  }
  const cursorOf = (from: LedgerRecord | undefined): string =>
    from === undefined ? "" : toid(from.sequence, 0, 0).toString()
  const link = (from: LedgerRecord | undefined, direction: string): { readonly href: string } => ({
    href: `${url.origin}/ledgers?cursor=${cursorOf(from)}&limit=${limit}&order=${direction}`
  })
  const closeTimes = spacedCloseTimes(records)
  return {
    _links: {
      self: { href: url.href },
      next: link(records.at(-1), order),
      prev: link(records[0], order === "asc" ? "desc" : "asc")
    },
    _embedded: { records: records.map((record) => item(ledger, url.origin, record, closeTimes.get(record.sequence)!)) }
  }
}
