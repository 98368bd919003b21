// Gathers the ledger's evidence for open settlements, cheapest first. First the transactions' hashes. If hashes do not
// decide, channel and nonce in one answer, many settlements per call, and the hashes once more afterwards. Finally a
// scan of ledgers for the use of a nonce.
import { Effect } from "effect"
import type { ExecutedTransaction } from "../../ledger/Executed.ts"
import { LedgerClock } from "../../ledger/LedgerClock.ts"
import { LedgerRpc } from "../../ledger/LedgerRpc.ts"
import { isReached, withinLedgerBound } from "../../ledger/withinLedgerBound.ts"
import { Signer } from "../../signer/Signer.ts"
import { Authorizations, type Nonce } from "../Authorizations.ts"
import { makeFindSpending, type Spending } from "./findSpending.ts"
import type { Decision, Landed, Search, Seen, SettlementSnapshot } from "../state/Settlement.ts"
import type { OpenRecord } from "../store/Settlements.ts"
import { withSpanIfSampled } from "../../effect/withSpanIfSampled.ts"

const snapshotsMax = 100
/** Maximum number of kept scans; the next turn resumes each where the last one ended. */
const searchesMax = 200
/** Ledgers after which a scan without a result is repeated. */
const searchAgainLedgers = 12

/** The content of one of the settlement's attempts on the ledger. */
export const makeLandedOf = Effect.map(
  Authorizations,
  (authorizations) =>
    (record: OpenRecord, kind: "payment" | "cancel", executed: ExecutedTransaction): Landed => {
      const isPaid = kind === "payment" && executed.succeeded
      const movement = isPaid ? authorizations.movementIn(record, executed) : undefined
      return { kind, executed, amountTransferred: movement?.amount, amountSold: movement?.sold }
    }
)

/** Reads the payment by its hash, and the no-op by its own hash if it exists. */
export const makeAskHash = Effect.gen(function* () {
  const clock = yield* LedgerClock
  const rpc = yield* LedgerRpc
  const landedOf = yield* makeLandedOf

  return Effect.fnUntraced(function* (
    record: OpenRecord
  ): Effect.fn.Return<Seen, Effect.Error<ReturnType<LedgerRpc["Service"]["transaction"]>>> {
    const payment = yield* rpc.transaction(record.innerHash)
    const latestLedger = yield* withinLedgerBound(clock, payment.latestLedger)
    if (payment._tag === "Included") {
      return { _tag: "Included", landed: landedOf(record, "payment", payment.executed), latestLedger }
    }
    const cancel = record.attempts.find(({ kind }) => kind === "cancel")
    if (cancel === undefined) return { _tag: "Absent", latestLedger }
    const answer = yield* rpc.transaction(cancel.innerHash)
    return answer._tag === "Included"
      ? { _tag: "Included", landed: landedOf(record, "cancel", answer.executed), latestLedger }
      : // Both are absent only up to the lower of both answers: they may come from different nodes.
        { _tag: "Absent", latestLedger: Math.min(latestLedger, answer.latestLedger) }
  })
})

/** A settlement that its hashes do not decide, and the nonce of its authorization. */
interface Doubtful {
  readonly record: OpenRecord
  readonly nonce: Nonce | "none" | undefined
}

/** Channel and nonce of each settlement, by its id; unreadable ones are left out. */
export const makeReadSnapshots = Effect.gen(function* () {
  const clock = yield* LedgerClock
  const rpc = yield* LedgerRpc

  return Effect.fnUntraced(function* (doubtful: ReadonlyArray<Doubtful>) {
    const snapshots = new Map<string, SettlementSnapshot>()
    for (let at = 0; at < doubtful.length; at += snapshotsMax) {
      const some = doubtful.slice(at, at + snapshotsMax)
      const answer = yield* rpc.snapshots(
        some.map(({ nonce, record }) => ({ channel: record.channel, nonce: nonce === "none" ? undefined : nonce }))
      )
      // A ledger that no follower has seen yet proves nothing, in either direction.
      if (!(yield* isReached(clock, answer.latestLedger))) continue
      for (const [index, { nonce, record }] of some.entries()) {
        const one = answer.snapshots[index]
        if (one === undefined) continue
        const shown = nonce === "none" ? { ...one, nonce } : one
        snapshots.set(record.id, { ...shown, ledger: answer.latestLedger, endpoint: answer.endpoint })
      }
    }
    return snapshots as ReadonlyMap<string, SettlementSnapshot>
  })
})

interface Begun {
  readonly search: Search
  /** The newest ledger at the last scan. */
  readonly atLedger: number
}

/**
 * A scan of ledgers, which may take several turns. Its result is kept until it reaches the last ledger requested. Some
 * ledgers later it starts over: another node may show the use, or the same node later.
 */
export const makeSearcher = Effect.gen(function* () {
  const signer = yield* Signer
  const clock = yield* LedgerClock
  const findSpending = yield* makeFindSpending
  const userOfNumber = yield* makeUserOfNumber
  const begun = new Map<string, Begun>()

  const keep = (key: string, one: Begun) => {
    const [oldest] = begun.keys()
    if (begun.size >= searchesMax && oldest !== undefined) begun.delete(oldest)
    begun.set(key, one)
  }

  return Effect.fnUntraced(function* (
    record: OpenRecord,
    range: Omit<Extract<Decision, { readonly _tag: "Search" }>, "_tag">
  ) {
    const { sequence } = yield* clock.now
    // A rebuilt settlement has another channel and number.
    const key = `${record.innerHash} ${range.fromLedger}`
    const begunSearch = begun.get(key)
    const isWhole = begunSearch !== undefined && begunSearch.search.toLedger >= range.toLedger
    if (isWhole && sequence - begunSearch.atLedger < searchAgainLedgers) return begunSearch.search
    const isBegun = !isWhole && begunSearch !== undefined
    const before = isBegun ? begunSearch.search : nothingFound(range.fromLedger)
    const pollFrom = (fromLedger: number) =>
      findSpending({
        promised: record,
        // Includes transactions from before a rotation: on former channels, and in the name of a former sponsor.
        own: {
          sponsors: new Set([...signer.sponsors, record.sponsor]),
          channels: new Set([...signer.channels, ...signer.formerChannels, record.channel])
        },
        fromLedger,
        toLedger: range.toLedger,
        number: { channel: record.channel, sequence: record.channelSequence }
      })
    const nextLedger = before.toLedger + 1
    const earlier = isBegun ? 0 : Math.min(range.before, nextLedger - 1)
    // A node may have the requested ledgers, but no earlier ones.
    const poll =
      earlier === 0
        ? pollFrom(nextLedger)
        : Effect.catchTag(pollFrom(nextLedger - earlier), "LedgerUnavailable", () => pollFrom(nextLedger))
    const scanned = yield* poll.pipe(
      // A failed scan has no result; other evidence may still decide.
      Effect.catchTag("LedgerUnavailable", (error) =>
        Effect.as(Effect.logInfo("ledgers could not be scanned for an authorization", error), undefined)
      )
    )
    if (scanned === undefined) return before
    const search: Search = {
      fromLedger: range.fromLedger,
      toLedger: Math.max(before.toLedger, scanned.scannedTo),
      spending: before.spending?._tag === "Ours" ? before.spending : (spendingOf(scanned.spending) ?? before.spending),
      numberUsedBy: before.numberUsedBy ?? userOfNumber(record, scanned.withNumber)
    }
    keep(key, { search, atLedger: sequence })
    return search
  }, withSpanIfSampled("settlement.search"))
})

const nothingFound = (fromLedger: number): Search => ({
  fromLedger,
  toLedger: fromLedger - 1,
  spending: undefined,
  numberUsedBy: undefined
})

const spendingOf = (spending: Spending | undefined): Search["spending"] => {
  if (spending === undefined) return undefined
  const { executed, isOurs, moved } = spending
  return moved === undefined
    ? { _tag: "Elsewhere", ledger: executed.ledger, transaction: executed.innerHash, isOurs }
    : { _tag: "Ours", executed, amountTransferred: moved }
}

/** Decides whether the transaction with the settlement's number is the settlement's own. */
const makeUserOfNumber = Effect.map(
  makeLandedOf,
  (landedOf) => (record: OpenRecord, executed: ExecutedTransaction | undefined) => {
    if (executed === undefined) return undefined
    const attempt = record.attempts.find(({ innerHash }) => innerHash === executed.innerHash)
    return attempt === undefined ? ("elsewhere" as const) : landedOf(record, attempt.kind, executed)
  }
)
