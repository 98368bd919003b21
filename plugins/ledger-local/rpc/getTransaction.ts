// getTransaction and getTransactions: results by either hash or by range. They find only transactions that the history
// still holds; the range in every response shows how far back it goes.
import { codec } from "../engine/xdr/Xdr.ts"
import type { TransactionRecord } from "../node/History.ts"
import { toBase64 } from "../node/text.ts"
import { codecs } from "../transaction/Wire.ts"
import { checkFormat, count, page, type Params, text } from "./params.ts"
import { invalidParams, invalidRequest } from "./RpcError.ts"
import { rangeFields, type View } from "./View.ts"

// The total order of everything that happens on the ledger in one number: ledger, transaction and operation packed into
// 64 bits. Cursors and event ids are made of it. Transaction 0 sorts before all transactions, the greatest after all.

export const TRANSACTION_MAX = (1 << 20) - 1

export const toid = (ledger: number, transaction: number, operation: number): bigint =>
  (BigInt(ledger) << 32n) | (BigInt(transaction) << 12n) | BigInt(operation)

export const ledgerOf = (id: bigint): number => Number(id >> 32n)
const transactionOf = (id: bigint): number => Number((id >> 12n) & 0xfffffn)

const TRANSACTIONS_DEFAULT = 50
const TRANSACTIONS_MAX = 200

/** The fields of a transaction that was applied. */
const appliedFields = (record: TransactionRecord) => {
  const meta = codecs.TransactionMeta.decode(record.meta)
  const v4 = meta.v === 4 ? meta.v4 : undefined
  const diagnostics = (v4?.diagnosticEvents ?? []).map((event) => toBase64(codec.DiagnosticEvent.encode(event)))
  return {
    status: record.succeeded ? "SUCCESS" : "FAILED",
    applicationOrder: record.order,
    feeBump: record.isFeeBump,
    envelopeXdr: toBase64(record.envelope),
    resultXdr: toBase64(record.result),
    resultMetaXdr: toBase64(record.meta),
    ...(diagnostics.length === 0 ? {} : { diagnosticEventsXdr: diagnostics }),
    events: {
      transactionEventsXdr: (v4?.events ?? []).map((event) => toBase64(codec.TransactionEvent.encode(event))),
      contractEventsXdr: (v4?.operations ?? []).map(({ events }) =>
        events.map((event) => toBase64(codec.ContractEvent.encode(event)))
      )
    },
    ledger: record.ledger
  }
}

export const getTransaction = (view: View, params: Params) => {
  checkFormat(params)
  const hash = text(params, "hash")
  if (hash.length !== 64) throw invalidParams(`unexpected hash length (${hash.length})`)
  if (!/^[0-9a-fA-F]+$/.test(hash)) throw invalidParams(`incorrect hash: ${hash}`)
  const record = view.ledger.history.transaction(hash.toLowerCase())
  const range = rangeFields(view)
  if (record === undefined || record.ledger > view.latest.sequence) {
    return {
      status: "NOT_FOUND",
      ...range,
      txHash: hash,
      applicationOrder: 0,
      feeBump: false,
      events: {},
      ledger: 0,
      createdAt: "0"
    }
  }
  return { ...range, ...appliedFields(record), txHash: hash, createdAt: record.closeTime.toString() }
}

export const getTransactions = ({ ledger, latest }: View, params: Params) => {
  checkFormat(params)
  const startLedger = count(params, "startLedger")
  const { cursor, limit } = page(params, TRANSACTIONS_DEFAULT, TRANSACTIONS_MAX)
  const oldest = ledger.history.oldest
  if (cursor !== "" && startLedger !== 0) throw invalidParams("startLedger and cursor cannot both be set")
  if (cursor !== "" && !/^[0-9]{1,19}$/.test(cursor)) throw invalidParams(`parsing cursor: ${cursor}`)
  if (cursor === "" && (startLedger < oldest.sequence || startLedger > latest.sequence)) {
    const range = `oldest ledger: ${oldest.sequence} and the latest ledger: ${latest.sequence}`
    throw invalidRequest(`start ledger must be between the ${range} for this rpc instance`)
  }
  const after = cursor === "" ? toid(startLedger, 0, 0) : BigInt(cursor)
  const transactions: Array<unknown> = []
  let last = after
  for (const record of ledger.history.from(ledgerOf(after))) {
    if (record.sequence > latest.sequence || transactions.length >= limit) break
    for (const transaction of record.transactions) {
      if (record.sequence === ledgerOf(after) && transaction.order <= transactionOf(after)) continue
      if (transactions.length >= limit) break
      transactions.push({
        ...appliedFields(transaction),
        txHash: transaction.hash,
        createdAt: Number(transaction.closeTime)
      })
      last = toid(record.sequence, transaction.order, 1)
    }
  }
  return {
    transactions,
    latestLedger: latest.sequence,
    latestLedgerCloseTimestamp: Number(latest.closeTime),
    oldestLedger: oldest.sequence,
    oldestLedgerCloseTimestamp: Number(oldest.closeTime),
    cursor: last.toString()
  }
}
