// The ledger's side of the audit: every transaction of our accounts since a ledger, read page by page from one endpoint
// by code of its own, and the accounts as they are now.
import { xdr } from "@stellar/stellar-sdk/base"
import { Effect, Result, Schema } from "effect"
import { Base64 } from "effect/encoding"
import { accountText } from "../stellar/Address.ts"
import { bumpIn, hashesOf, hasSucceeded, networkIdOf, sourceOf, transactionIn } from "../stellar/Envelope.ts"
import { accountKey, readAccount } from "../stellar/LedgerEntry.ts"
import type { RpcHeader } from "../config/rpcHeaders.ts"
import { makeEndpoints } from "../ledger/JsonRpc.ts"
import { LedgerUnavailable } from "../ledger/LedgerUnavailable.ts"
import { contractEventsIn, readEvent, type TransferEvent } from "../stellar/TransferEvents.ts"
import { Crypto } from "../platform/Crypto.ts"

/** A transaction that one of our accounts made or paid for. */
export interface LedgerEntry {
  readonly ledger: number
  readonly innerHash: string
  readonly outerHash: string
  readonly source: string
  readonly feeSource: string
  readonly sequence: bigint
  readonly succeeded: boolean
  readonly feeChargedStroops: bigint
  readonly transfers: ReadonlyArray<TransferEvent>
}

export interface LedgerView {
  /** The first ledger that was read: older ones are beyond the endpoint's history. */
  readonly fromLedger: number
  readonly toLedger: number
  readonly entries: ReadonlyArray<LedgerEntry>
  /** Sequence numbers of accounts that exist. */
  readonly sequences: ReadonlyMap<string, bigint>
}

const Transactions = Schema.Struct({
  transactions: Schema.NullOr(
    Schema.Array(
      Schema.Struct({
        status: Schema.Literals(["SUCCESS", "FAILED"]),
        ledger: Schema.Natural,
        envelopeXdr: Schema.String,
        resultXdr: Schema.String,
        resultMetaXdr: Schema.String
      })
    )
  ),
  latestLedger: Schema.Natural,
  cursor: Schema.optionalKey(Schema.String)
})
const Health = Schema.Struct({ oldestLedger: Schema.Natural, latestLedger: Schema.Natural })
const Entries = Schema.Struct({
  latestLedger: Schema.Natural,
  entries: Schema.NullOr(Schema.Array(Schema.Struct({ xdr: Schema.String })))
})

/** Transactions on a page, and accounts in a question. */
const pageMax = 200

export interface ReadLedgerOptions {
  readonly url: string
  readonly headers?: ReadonlyArray<RpcHeader> | undefined
  readonly passphrase: string
  readonly timeout: import("effect").Duration.Duration
  /** Sponsors and channels. */
  readonly accounts: ReadonlySet<string>
  /** First ledger of interest; older ones beyond the endpoint's history are left out. */
  readonly sinceLedger: number
}

const bytesOf = (text: string): Uint8Array => Result.getOrThrow(Base64.decode(text))
const transfersIn = (meta: xdr.TransactionMetaWire): ReadonlyArray<TransferEvent> =>
  (contractEventsIn(meta) ?? []).flatMap((event) => {
    const read = readEvent(event)
    return read._tag === "Moved" ? [read.transfer] : []
  })

/** Reads the ledger's side of the books. */
export const readLedger = Effect.fn("audit.readLedger")(function* (options: ReadLedgerOptions) {
  const crypto = yield* Crypto
  const networkId = networkIdOf(crypto, options.passphrase)
  const { at } = yield* makeEndpoints({ urls: [options.url], timeout: options.timeout, headers: options.headers })
  const ask = <A>(method: string, params: unknown, answer: Schema.Codec<A, any>) =>
    at(options.url, method, params, answer)

  const entryOf = (
    transaction: NonNullable<(typeof Transactions.Type)["transactions"]>[number]
  ): LedgerEntry | undefined => {
    const envelope = xdr.TransactionEnvelope.schema.decode(bytesOf(transaction.envelopeXdr))
    const inner = transactionIn(envelope)
    if (inner === undefined) return undefined
    const source = sourceOf(inner)
    const bump = bumpIn(envelope)
    const feeSource = bump === undefined ? source : accountText(bump.feeSource)
    if (!options.accounts.has(source) && !options.accounts.has(feeSource)) return undefined
    const result = xdr.TransactionResult.schema.decode(bytesOf(transaction.resultXdr))
    return {
      ...hashesOf(crypto, networkId, envelope)!,
      ledger: transaction.ledger,
      source,
      feeSource,
      sequence: inner.seqNum,
      succeeded: hasSucceeded(result),
      feeChargedStroops: result.feeCharged,
      transfers: transfersIn(xdr.TransactionMeta.schema.decode(bytesOf(transaction.resultMetaXdr)))
    }
  }

  const health = yield* ask("getHealth", undefined, Health)
  const fromLedger = Math.max(options.sinceLedger, health.oldestLedger)
  const entries: Array<LedgerEntry> = []
  let cursor: string | undefined
  let toLedger = health.latestLedger
  while (fromLedger <= health.latestLedger) {
    const pagination = { limit: pageMax, ...(cursor === undefined ? {} : { cursor }) }
    const page = yield* ask(
      "getTransactions",
      cursor === undefined ? { startLedger: fromLedger, pagination } : { pagination },
      Transactions
    )
    const read = yield* Effect.try({
      try: () => (page.transactions ?? []).flatMap((transaction) => entryOf(transaction) ?? []),
      catch: () =>
        new LedgerUnavailable({ operation: "getTransactions", message: "a transaction that cannot be decoded" })
    })
    entries.push(...read)
    toLedger = Math.max(toLedger, page.latestLedger)
    if ((page.transactions ?? []).length === 0 || page.cursor === undefined || page.cursor === cursor) break
    cursor = page.cursor
  }

  const sequences = new Map<string, bigint>()
  const addresses = [...options.accounts]
  for (let from = 0; from < addresses.length; from += pageMax) {
    const keys = addresses.slice(from, from + pageMax).map(accountKey)
    const answer = yield* ask("getLedgerEntries", { keys }, Entries)
    for (const entry of answer.entries ?? []) {
      const account = readAccount(xdr.LedgerEntryData.schema.decode(bytesOf(entry.xdr)))
      if (account !== undefined) sequences.set(account.address, account.sequence)
    }
  }
  const view: LedgerView = { fromLedger, toLedger, entries, sequences }
  return view
})
