// The LedgerRpc port over JSON-RPC. Answers are verified here: a hash in an answer is compared with the requested one
// and recomputed from the envelope that comes with it; a status is read before anything that might not decode; a result
// code and the fee charged come from the result itself. An answer that contradicts itself is `LedgerUnavailable`, never
// a decision.
import { xdr } from "@stellar/stellar-sdk/base"
import { Duration, Effect, Layer, Option } from "effect"
import type { RpcHeader } from "../config/rpcHeaders.ts"
import { Crypto } from "../platform/Crypto.ts"
import type { HttpCalls } from "../platform/HttpCalls.ts"
import type { ExecutedTransaction } from "./Executed.ts"
import { hashesOf, hasSucceeded, isLegacy, networkIdOf } from "../stellar/Envelope.ts"
import { type Endpoints, makeEndpoints } from "./JsonRpc.ts"
import {
  contradiction,
  type EndpointReader,
  LedgerRpc,
  LedgerUnavailable,
  type ScanAnswer,
  type ScanRequest,
  type SnapshotQuery
} from "./LedgerRpc.ts"
import { decodeWith, readSnapshots, snapshotKeys } from "./ledgerEntries.ts"
import { makeSimulate } from "./makeSimulate.ts"
import * as Wire from "./LedgerWire.ts"
import { readContractEvents } from "./readContractEvents.ts"
import { readHoldings } from "./readHoldings.ts"
import { readRefusal } from "./readRefusal.ts"
import { type ContractEvent, contractEventsIn, entryChangesIn, readEvent } from "../stellar/TransferEvents.ts"
import {
  accountKey,
  instanceKey,
  type LedgerAccount,
  nonceKey,
  readAccount,
  readCodeHash,
  readContractData
} from "../stellar/LedgerEntry.ts"
import type { Value } from "../stellar/Value.ts"
import { withSpanIfSampled } from "../effect/withSpanIfSampled.ts"

/** The network's first ledgers: the second one follows the genesis, which contains no transactions. */
const firstLedgers = 2

const readHeader = (ask: Endpoints["ask"]) =>
  Effect.fnUntraced(function* (sequence: number) {
    const question = { startLedger: sequence, pagination: { limit: 1 } }
    const { ledgers } = yield* ask("getLedgers", question, Wire.GetLedgers)
    const ledger = ledgers?.[0]
    const entry = decodeWith(xdr.LedgerHeaderHistoryEntry.schema, ledger?.headerXdr)
    if (ledger?.sequence !== sequence || entry === undefined)
      return yield* new LedgerUnavailable({ operation: "getLedgers", message: "the answer is not for this ledger" })
    const isFirst = sequence <= firstLedgers || entry.header.previousLedgerHash.every((byte) => byte === 0)
    return { hash: ledger.hash, isFirst }
  })

export interface LedgerRpcOptions {
  /** At least one; the first is preferred. */
  readonly urls: ReadonlyArray<string>
  readonly passphrase: string
  readonly timeout: Duration.Duration
  readonly headers?: ReadonlyArray<RpcHeader> | undefined
}

/** Timeout for several endpoints when all are polled for their newest ledger. */
const surveyTimeout = Duration.seconds(2)

/** Transactions on one page of a scan, and pages of one scan: two full ledgers' worth. */
const scanPageMax = 100
const scanPagesMax = 20

interface HashInputs {
  readonly crypto: Crypto["Service"]
  readonly networkId: Uint8Array
}

/** The fields of an answer that describe an included transaction. */
type IncludedAnswer = Pick<
  typeof Wire.GetTransaction.Type,
  "createdAt" | "envelopeXdr" | "resultXdr" | "resultMetaXdr"
> & {
  readonly status: string
  readonly ledger?: number
}

/** The token movements among the events; None without events, or if one cannot be read. */
const transfersOf = (events: ReadonlyArray<ContractEvent> | undefined): ExecutedTransaction["transfers"] => {
  if (events === undefined) return Option.none()
  const read = events.map(readEvent)
  if (read.some(({ _tag }) => _tag === "Unreadable")) return Option.none()
  return Option.some(read.flatMap((event) => (event._tag === "Moved" ? [event.transfer] : [])))
}

/** The ledger's close time by the answer, or by the ledger header if an older node's answer lacks it. */
const closeTimeOf = ({ closeTime, headerXdr }: typeof Wire.GetLatestLedger.Type): number | undefined => {
  const seconds = Number(closeTime ?? decodeWith(xdr.LedgerHeader.schema, headerXdr)?.scpValue.closeTime ?? 0)
  return Number.isSafeInteger(seconds) && seconds > 0 ? seconds : undefined
}

const readLatest = Effect.fnUntraced(function* ({
  answer,
  endpoint
}: {
  readonly answer: typeof Wire.GetLatestLedger.Type
  readonly endpoint: number
}) {
  const closedAtSeconds = closeTimeOf(answer)
  // Without it, time bounds would be impossible.
  if (closedAtSeconds === undefined) return yield* contradiction("getLatestLedger", "a ledger without a close time")
  return { sequence: answer.sequence, closedAtSeconds, protocolVersion: answer.protocolVersion, endpoint }
})

const toStroops = (text: string): bigint => (/^[0-9]{1,15}$/.test(text) ? BigInt(text) : 0n)

/** The newest ledger and the fees, by one endpoint or by each. */
const makeLatest = ({ askWhich, ask, at, setUnfit }: Endpoints, options: LedgerRpcOptions) => ({
  latestLedger: Effect.flatMap(askWhich("getLatestLedger", undefined, Wire.GetLatestLedger), readLatest),
  latestLedgers: Effect.map(
    Effect.forEach(
      options.urls,
      (url, endpoint) =>
        at(url, "getLatestLedger", undefined, Wire.GetLatestLedger).pipe(
          Effect.flatMap((answer) => readLatest({ answer, endpoint })),
          // A slow endpoint must not delay the answers of the others.
          Effect.timeout(options.urls.length > 1 ? Duration.min(surveyTimeout, options.timeout) : options.timeout),
          Effect.option
        ),
      { concurrency: "unbounded" }
    ),
    (answers) => answers.flatMap((answer) => Option.toArray(answer))
  ),
  setUnfit: (endpoints: ReadonlySet<number>) => Effect.sync(() => setUnfit(endpoints)),
  feeStats: Effect.map(ask("getFeeStats", undefined, Wire.GetFeeStats), ({ sorobanInclusionFee: fee }) => ({
    p50: toStroops(fee.p50),
    p90: toStroops(fee.p90),
    p99: toStroops(fee.p99)
  }))
})

/** Submissions, sent once; any response is an answer. */
const makeSend = ({ once }: Endpoints) =>
  Effect.fnUntraced(
    function* (envelope: string, outerHash: string) {
      const answer = yield* once("sendTransaction", { transaction: envelope }, Wire.SendTransaction)
      if (answer.hash !== outerHash) return { _tag: "Lost", message: "the answer is for another transaction" } as const
      switch (answer.status) {
        case "PENDING":
          return { _tag: "Pending" } as const
        case "DUPLICATE":
          return { _tag: "Duplicate" } as const
        case "TRY_AGAIN_LATER":
          return { _tag: "TryAgainLater" } as const
        case "ERROR":
          return readRefusal(envelope, decodeWith(xdr.TransactionResult.schema, answer.errorResultXdr))
      }
    },
    Effect.catch((error) => Effect.succeed({ _tag: "Lost", message: error.message } as const))
  )

/** The content of an included transaction, or the reason why it is not credible. */
const readIncluded = (
  { crypto, networkId }: HashInputs,
  answer: IncludedAnswer,
  isAboutThem: (hashes: { readonly innerHash: string; readonly outerHash: string }) => boolean
) => {
  const envelope = decodeWith(xdr.TransactionEnvelope.schema, answer.envelopeXdr)
  // The envelope type older than fee bumps has another hash, calls no contract, and is skipped.
  if (envelope !== undefined && isLegacy(envelope)) return "of another kind" as const
  const hashes = envelope === undefined ? undefined : hashesOf(crypto, networkId, envelope)
  if (envelope === undefined || hashes === undefined || !isAboutThem(hashes))
    return "the answer is for another transaction"
  const result = decodeWith(xdr.TransactionResult.schema, answer.resultXdr)
  const succeeded = result !== undefined && hasSucceeded(result)
  if (result === undefined || succeeded !== (answer.status === "SUCCESS") || answer.ledger === undefined) {
    return "status and result contradict each other"
  }
  const meta = decodeWith(xdr.TransactionMeta.schema, answer.resultMetaXdr)
  const events = contractEventsIn(meta)
  const entryChanges = entryChangesIn(meta)
  const executed: ExecutedTransaction = {
    ledger: answer.ledger,
    closedAtSeconds: Number(answer.createdAt ?? 0),
    ...hashes,
    feeChargedStroops: result.feeCharged,
    succeeded,
    transfers: transfersOf(events),
    ...(events === undefined ? {} : { contractEvents: events }),
    ...(entryChanges === undefined ? {} : { entryChanges })
  }
  return { executed, envelope }
}

const makeTransactions = ({ askWhich }: Pick<Endpoints, "askWhich">, hashing: HashInputs) => {
  const transaction = Effect.fnUntraced(function* (hash: string) {
    const { answer, endpoint } = yield* askWhich("getTransaction", { hash }, Wire.GetTransaction)
    const { latestLedger, oldestLedger } = answer
    if (answer.status === "NOT_FOUND") return { _tag: "NotFound", latestLedger, oldestLedger } as const
    const included = readIncluded(
      hashing,
      answer,
      ({ innerHash, outerHash }) => innerHash === hash || outerHash === hash
    )
    if (typeof included === "string") return yield* contradiction("getTransaction", included)
    return { _tag: "Included", executed: { ...included.executed, endpoint }, latestLedger } as const
  })

  const scan = Effect.fnUntraced(function* ({ fromLedger, toLedger = Number.MAX_SAFE_INTEGER, matches }: ScanRequest) {
    const found: Array<ScanAnswer["found"][number]> = []
    let scannedTo = fromLedger - 1
    let oldestLedger = 0
    let cursor: string | undefined
    for (let page = 0; page < scanPagesMax; page++) {
      const { answer, endpoint } = yield* askWhich(
        "getTransactions",
        cursor === undefined
          ? { startLedger: fromLedger, pagination: { limit: scanPageMax } }
          : { pagination: { cursor, limit: scanPageMax } },
        Wire.GetTransactions
      )
      const transactions = answer.transactions ?? []
      oldestLedger = Math.max(oldestLedger, answer.oldestLedger)
      for (const one of transactions) {
        if (one.ledger > toLedger || !matches(one.txHash)) continue
        const included = readIncluded(hashing, one, ({ outerHash }) => outerHash === one.txHash)
        if (included === "of another kind") continue
        if (typeof included === "string") return yield* contradiction("getTransactions", included)
        found.push({ ...included, executed: { ...included.executed, endpoint } })
      }
      const last = transactions.at(-1)
      // A full page may end within a ledger. Any other page reaches to the newest ledger of its node only as far as is
      // certain: a node may scan no more ledgers at a time than a page has places.
      const isFull = transactions.length >= scanPageMax
      scannedTo = Math.max(
        scannedTo,
        isFull && last !== undefined ? last.ledger - 1 : Math.min(answer.latestLedger, scannedTo + scanPageMax)
      )
      if (!isFull || scannedTo >= toLedger || answer.cursor === undefined) break
      cursor = answer.cursor
    }
    return { scannedTo, oldestLedger, found }
  }, withSpanIfSampled("LedgerRpc.scan"))

  return { transaction, scan }
}

/** Entries of the ledger: accounts, holdings, and used nonces. */
const makeEntries = ({ ask, askWhich }: Pick<Endpoints, "ask" | "askWhich">) => {
  const accounts = Effect.fnUntraced(function* (addresses: ReadonlyArray<string>) {
    const answer = yield* ask("getLedgerEntries", { keys: addresses.map(accountKey) }, Wire.GetLedgerEntries)
    const byAddress = new Map<string, LedgerAccount>()
    for (const entry of answer.entries ?? []) {
      const data = decodeWith(xdr.LedgerEntryData.schema, entry.xdr)
      const account = data === undefined ? undefined : readAccount(data)
      if (account === undefined) return yield* contradiction("getLedgerEntries", "an entry that is not an account")
      byAddress.set(account.address, account)
    }
    return { latestLedger: answer.latestLedger, accounts: byAddress }
  })

  const snapshots = Effect.fnUntraced(function* (queries: ReadonlyArray<SnapshotQuery>) {
    const keys = snapshotKeys(queries)
    const { answer, endpoint } = yield* askWhich("getLedgerEntries", { keys }, Wire.GetLedgerEntries)
    const read = readSnapshots(queries, answer.entries ?? [])
    if (typeof read === "string") return yield* contradiction("getLedgerEntries", read)
    return { latestLedger: answer.latestLedger, snapshots: read, endpoint }
  })

  const nonceSpent = Effect.fnUntraced(function* (address: string, nonce: bigint) {
    const answer = yield* ask("getLedgerEntries", { keys: [nonceKey(address, nonce)] }, Wire.GetLedgerEntries)
    const [entry] = answer.entries ?? []
    return {
      latestLedger: answer.latestLedger,
      spent: entry !== undefined,
      inLedger: Option.fromUndefinedOr(entry?.lastModifiedLedgerSeq)
    }
  })

  const codeHash = Effect.fnUntraced(function* (contract: string) {
    const key = instanceKey(contract)
    const answer = yield* ask("getLedgerEntries", { keys: [key] }, Wire.GetLedgerEntries)
    const [entry] = answer.entries ?? []
    if (entry === undefined) return Option.none()
    const data = entry.key === key ? decodeWith(xdr.LedgerEntryData.schema, entry.xdr) : undefined
    if (data === undefined) return yield* contradiction("getLedgerEntries", "an entry that is not the contract")
    return Option.fromUndefinedOr(readCodeHash(data))
  })

  const contractData = Effect.fnUntraced(function* (keys: ReadonlyArray<string>) {
    const answer = yield* ask("getLedgerEntries", { keys }, Wire.GetLedgerEntries)
    const requestedKeys = new Set(keys)
    const values = new Map<string, Value>()
    for (const entry of answer.entries ?? []) {
      const data = requestedKeys.has(entry.key) ? decodeWith(xdr.LedgerEntryData.schema, entry.xdr) : undefined
      const value = data === undefined ? undefined : readContractData(data)
      // The entry itself contains its key: an answer with another key would be another channel's state.
      if (value?.key !== entry.key) return yield* contradiction("getLedgerEntries", "an entry that was not asked for")
      values.set(entry.key, value.value)
    }
    return { latestLedger: answer.latestLedger, values }
  })

  const holdings = readHoldings((keys) =>
    Effect.map(ask("getLedgerEntries", { keys }, Wire.GetLedgerEntries), ({ entries }) => entries ?? [])
  )

  return { accounts, snapshots, codeHash, contractData, holdings, nonceSpent }
}

const makeReaders = (
  { at }: Endpoints,
  { urls }: LedgerRpcOptions,
  hashing: HashInputs
): ReadonlyArray<EndpointReader> =>
  urls.map((url, endpoint) => {
    const askWhich: Endpoints["askWhich"] = (method, params, answer) =>
      Effect.map(at(url, method, params, answer), (said) => ({ answer: said, endpoint }))
    const { snapshots } = makeEntries({ askWhich, ask: (method, params, answer) => at(url, method, params, answer) })
    return { endpoint, snapshots, ...makeTransactions({ askWhich }, hashing) }
  })

const make = Effect.fnUntraced(function* (options: LedgerRpcOptions) {
  const crypto = yield* Crypto
  const endpoints = yield* makeEndpoints(options)
  const hashing = { crypto, networkId: networkIdOf(crypto, options.passphrase) }
  const readers = makeReaders(endpoints, options, hashing)
  return LedgerRpc.of({
    header: readHeader(endpoints.ask),
    others: (but) =>
      readers.length === 1
        ? Effect.succeed([])
        : Effect.map(endpoints.order, (positions) =>
            positions.flatMap((position) => (position === but ? [] : readers[position]!))
          ),
    ...{ distrust: endpoints.distrust, distrusted: endpoints.distrusted },
    ...makeLatest(endpoints, options),
    ...makeTransactions(endpoints, hashing),
    ...makeEntries(endpoints),
    contractEvents: readContractEvents(endpoints.ask),
    simulate: makeSimulate(endpoints),
    send: makeSend(endpoints)
  })
})

/** The port over the given endpoints. */
export const layer = (options: LedgerRpcOptions): Layer.Layer<LedgerRpc, never, Crypto | HttpCalls> =>
  Layer.effect(LedgerRpc, make(options))

/** Reads each endpoint's network and returns the endpoints that serve another one (rules 2: checked at startup). */
export const checkEndpoints = Effect.fnUntraced(function* (options: LedgerRpcOptions) {
  const { at } = yield* makeEndpoints({ urls: options.urls, timeout: options.timeout, headers: options.headers })
  return yield* Effect.forEach(
    options.urls,
    (url, index) =>
      at(url, "getNetwork", undefined, Wire.GetNetwork).pipe(
        Effect.map(
          ({ passphrase }) =>
            ({ endpoint: index, state: passphrase === options.passphrase ? "right" : "wrong network" }) as const
        ),
        Effect.catch((error) =>
          Effect.succeed({ endpoint: index, state: "unreachable", message: error.message } as const)
        )
      ),
    { concurrency: "unbounded" }
  )
}, withSpanIfSampled("LedgerRpc.checkEndpoints"))
