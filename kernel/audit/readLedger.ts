// The ledger's side of the audit: every transaction of our accounts since a ledger, and the accounts' current state.
// Separate code reads them page by page from one endpoint.
import { xdr } from "@stellar/stellar-sdk/base"
import { Effect, Result, Schema } from "effect"
import { Base64 } from "effect/encoding"
import { accountText, contractTextOf } from "../stellar/Address.ts"
import { bumpIn, hashesOf, hasSucceeded, networkIdOf, sourceOf, transactionIn } from "../stellar/Envelope.ts"
import { accountKey, readAccount } from "../stellar/LedgerEntry.ts"
import { makeEndpoints } from "../ledger/JsonRpc.ts"
import { LedgerUnavailable } from "../ledger/LedgerRpc.ts"
import { type ContractEvent, contractEventsIn, readEvent, type TransferEvent } from "../stellar/TransferEvents.ts"
import { Crypto } from "../platform/Crypto.ts"
import { type AuditEndpoint, readEntries } from "./readEntries.ts"

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

/** An event of a requested contract, in a transaction of any sender. */
interface SeenEvent {
  readonly ledger: number
  readonly innerHash: string
  readonly event: ContractEvent
}

export interface LedgerView {
  /** The first ledger that was read: older ones are beyond the endpoint's history. */
  readonly fromLedger: number
  readonly toLedger: number
  readonly entries: ReadonlyArray<LedgerEntry>
  /** In the ledger's order; only of successful transactions. */
  readonly contractEvents: ReadonlyArray<SeenEvent>
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

/** Transactions on a page. */
const pageMax = 200

interface ReadLedgerOptions extends AuditEndpoint {
  readonly passphrase: string
  /** Sponsors and channels. */
  readonly accounts: ReadonlySet<string>
  /** Contracts to read events of; default none. */
  readonly contracts?: ReadonlySet<string>
  /** First ledger of interest; older ones beyond the endpoint's history are left out. */
  readonly sinceLedger: number
}

const bytesOf = (text: string): Uint8Array => Result.getOrThrow(Base64.decode(text))
const transfersIn = (events: ReadonlyArray<ContractEvent>): ReadonlyArray<TransferEvent> =>
  events.flatMap((event) => {
    const read = readEvent(event)
    return read._tag === "Moved" ? [read.transfer] : []
  })

type ListedTransaction = NonNullable<(typeof Transactions.Type)["transactions"]>[number]

const eventsIn = ({ resultMetaXdr }: ListedTransaction): ReadonlyArray<ContractEvent> =>
  contractEventsIn(xdr.TransactionMeta.schema.decode(bytesOf(resultMetaXdr))) ?? []

/** Decodes transactions: those of the accounts, and the events of the contracts. */
const makeReader = (crypto: Crypto["Service"], { accounts, contracts, passphrase }: ReadLedgerOptions) => {
  const networkId = networkIdOf(crypto, passphrase)
  const isAskedFor = ({ contractId }: ContractEvent) =>
    contractId !== null && contracts?.has(contractTextOf(contractId as Uint8Array)) === true
  return {
    entryOf: (transaction: ListedTransaction): LedgerEntry | undefined => {
      const envelope = xdr.TransactionEnvelope.schema.decode(bytesOf(transaction.envelopeXdr))
      const inner = transactionIn(envelope)
      if (inner === undefined) return undefined
      const source = sourceOf(inner)
      const bump = bumpIn(envelope)
      const feeSource = bump === undefined ? source : accountText(bump.feeSource)
      if (!accounts.has(source) && !accounts.has(feeSource)) return undefined
      const result = xdr.TransactionResult.schema.decode(bytesOf(transaction.resultXdr))
      return {
        ...hashesOf(crypto, networkId, envelope)!,
        ledger: transaction.ledger,
        source,
        feeSource,
        sequence: inner.seqNum,
        succeeded: hasSucceeded(result),
        feeChargedStroops: result.feeCharged,
        transfers: transfersIn(eventsIn(transaction))
      }
    },
    eventsOf: (transaction: ListedTransaction): ReadonlyArray<SeenEvent> => {
      if (contracts === undefined || contracts.size === 0 || transaction.status !== "SUCCESS") return []
      const events = eventsIn(transaction).filter(isAskedFor)
      if (events.length === 0) return []
      const envelope = xdr.TransactionEnvelope.schema.decode(bytesOf(transaction.envelopeXdr))
      const innerHash = hashesOf(crypto, networkId, envelope)?.innerHash ?? ""
      return events.map((event) => ({ ledger: transaction.ledger, innerHash, event }))
    }
  }
}

export const readLedger = Effect.fn("audit.readLedger")(function* (options: ReadLedgerOptions) {
  const reader = makeReader(yield* Crypto, options)
  const { headers, timeout, url } = options
  const { at } = yield* makeEndpoints({ urls: [url], timeout, headers })
  const ask = <A>(method: string, params: unknown, answer: Schema.Codec<A, any>) => at(url, method, params, answer)

  const health = yield* ask("getHealth", undefined, Health)
  const fromLedger = Math.max(options.sinceLedger, health.oldestLedger)
  const entries: Array<LedgerEntry> = []
  const contractEvents: Array<SeenEvent> = []
  let cursor: string | undefined
  let toLedger = health.latestLedger
  while (fromLedger <= health.latestLedger) {
    const pagination = { limit: pageMax, ...(cursor === undefined ? {} : { cursor }) }
    const page = yield* ask(
      "getTransactions",
      cursor === undefined ? { startLedger: fromLedger, pagination } : { pagination },
      Transactions
    )
    const transactions = page.transactions ?? []
    const read = yield* Effect.try({
      try: () => ({
        entries: transactions.flatMap((transaction) => reader.entryOf(transaction) ?? []),
        events: transactions.flatMap(reader.eventsOf)
      }),
      catch: () =>
        new LedgerUnavailable({ operation: "getTransactions", message: "a transaction that cannot be decoded" })
    })
    entries.push(...read.entries)
    contractEvents.push(...read.events)
    toLedger = Math.max(toLedger, page.latestLedger)
    if (transactions.length === 0 || page.cursor === undefined || page.cursor === cursor) break
    cursor = page.cursor
  }

  const sequences = new Map<string, bigint>()
  for (const { data } of (yield* readEntries(
    { url, timeout, headers },
    [...options.accounts].map(accountKey)
  )).values()) {
    const account = readAccount(data)
    if (account !== undefined) sequences.set(account.address, account.sequence)
  }
  const view: LedgerView = { fromLedger, toLedger, entries, contractEvents, sequences }
  return view
})
