// Adoption of our transactions with a lost record, identified by their effect. If the ledger shows that an
// authorization was used but we have no settlement for it, we search the ledger that used its nonce. The nonce entry of
// an expired authorization no longer exists, so we search every ledger of its life. If the transaction is ours, we
// store its settlement, only for its owner. Any other transaction is another party's. The user of a nonce does not
// change, so we cache results for a while, for every authorization of that nonce. The searches of one principal do not
// crowd out another's.
import { Effect, Option, Semaphore } from "effect"
import { BoundedMap } from "../../cache/BoundedMap.ts"
import { LruCache } from "../../cache/LruCache.ts"
import { accountText } from "../../stellar/Address.ts"
import {
  bumpIn,
  encodeEnvelope,
  ledgerMaxOf,
  resourceFeeOf,
  sourceOf,
  type Transaction
} from "../../stellar/Envelope.ts"
import type { ExecutedTransaction } from "../../ledger/Executed.ts"
import { LedgerRpc, LedgerUnavailable } from "../../ledger/LedgerRpc.ts"
import { Signer } from "../../signer/Signer.ts"
import { monotonicMillis } from "../../time/monotonicMillis.ts"
import { Authorizations, type Nonce, type PromisedPayment } from "../Authorizations.ts"
import { makeConfirmOutcomes } from "./confirmOutcomes.ts"
import { makeFindSpending, ofOurs, type OwnAccounts, readSpending, type Spending } from "./findSpending.ts"
import { OwnerTags } from "../OwnerTags.ts"
import type { SpentBy } from "../state/Settlement.ts"
import { type AdoptAnswer, type AdoptedSettlement, Settlements } from "../store/Settlements.ts"
import { whereUsed } from "./whereUsed.ts"
import { withSpanIfSampled } from "../../effect/withSpanIfSampled.ts"

/** A payment with a used authorization. */
export type AdoptionRequest = Pick<
  AdoptedSettlement,
  | "id"
  | "network"
  | "scheme"
  | "authorizationKey"
  | "fingerprint"
  | "principal"
  | "identifier"
  | "payer"
  | "payTo"
  | "asset"
  | "amount"
  | "resourceUrl"
>

/** Maximum number of nonces with a cached result. */
const cachedMax = 1_000
/** Concurrent searches of ledgers: a search is expensive, and a request for one is cheap. */
const pollsMax = 2
/** Concurrent searches of one principal. */
const pollsOfPrincipalMax = 4
/**
 * An expired authorization costs a stranger nothing, not even a signature, and the ledgers of its life have tens of
 * thousands of transactions. After a search of this length for a caller without a key, such searches rest for this many
 * times as long.
 */
const longMillis = 1_000
const restTimes = 4

const unshown =
  "found a payment on the ledger whose record was lost, and cannot show that the caller owns it: " +
  "assign it with `tollkeeper settlements give`"

const unknown = (message: string) => new LedgerUnavailable({ operation: "getTransactions", message })

/** The settlement that one of our transactions belongs to. */
const settlementOf = (
  request: AdoptionRequest,
  { envelope, executed }: Spending,
  inner: Transaction,
  moved: bigint
): AdoptedSettlement => {
  const resourceFeeStroops = resourceFeeOf(inner) ?? 0n
  const bump = bumpIn(envelope)
  return {
    ...request,
    authorizationExpiresLedger: (ledgerMaxOf(inner) ?? executed.ledger + 1) - 1,
    innerHash: executed.innerHash,
    outerHash: executed.outerHash,
    envelope: encodeEnvelope(envelope),
    sponsor: bump === undefined ? "" : accountText(bump.feeSource),
    channel: sourceOf(inner),
    channelSequence: BigInt(inner.seqNum),
    resourceFeeStroops,
    inclusionStroops: BigInt(bump?.fee ?? 0) - resourceFeeStroops,
    ledger: executed.ledger,
    closedAtSeconds: executed.closedAtSeconds,
    feeChargedStroops: executed.feeChargedStroops,
    amountTransferred: moved
  }
}

/** An authorization that is refused for its age, and the maximum life of one with its terms. */
interface ExpiredAuthorization {
  readonly expiresLedger: number
  readonly lifeLedgers: number
  /** As `UseQuestion.endedLedger`. */
  readonly endedLedger?: number | undefined
  /** It is refused because too little of its life remains: a later ledger may still use it. */
  readonly isAlive?: boolean
}

/** The use of an authorization without a record; `Forgotten`: older than the history of any node. */
type Use = Spending | "Unused" | "Forgotten"

/** `Alive`: not used yet, and a later ledger may still use it. */
type UseEvidence = Use | "Alive"

/** A hash that no transaction has: the answer shows how far back a node's history reaches. */
const noTransaction = "0".repeat(64)

const makePollUp = Effect.gen(function* () {
  const rpc = yield* LedgerRpc
  const findSpending = yield* makeFindSpending
  const oldestReadable = Effect.gen(function* () {
    const answer = yield* rpc.transaction(noTransaction)
    const oldestLedger = answer._tag === "NotFound" ? answer.oldestLedger : 1
    // The node of a young ledger may have its whole history.
    const header = yield* Effect.option(rpc.header(oldestLedger))
    return { oldestLedger, isFirstLedger: Option.exists(header, ({ isFirst }) => isFirst) }
  })

  /**
   * The use of a nonce, as the ledger shows it now. A missing answer is not a verdict. `begun`: the scanned range so
   * far.
   */
  return Effect.fnUntraced(function* (
    promised: PromisedPayment,
    {
      nonce,
      own,
      expired
    }: { readonly nonce: Nonce; readonly own: OwnAccounts; readonly expired: ExpiredAuthorization | undefined },
    begun: { scannedTo: number }
  ) {
    const { inLedger, latestLedger } = yield* rpc.nonceSpent(nonce.address, nonce.nonce)
    const where = whereUsed({
      expiresLedger: expired?.expiresLedger,
      endedLedger: expired?.endedLedger,
      lifeLedgers: expired?.lifeLedgers ?? 0,
      latestLedger,
      entryLedger: Option.getOrUndefined(inLedger),
      ...(expired === undefined ? { oldestLedger: 1 } : yield* oldestReadable)
    })
    if (where._tag === "Unknown" && expired?.isAlive === true) return "Alive" as UseEvidence
    // The node that refused it as spent had more ledgers than this one.
    if (where._tag === "Unknown") return yield* unknown("the node does not show yet where the authorization was used")
    if (where._tag !== "Search") return where._tag satisfies Use as UseEvidence
    const { fromLedger, isWhole, toLedger } = where
    let next = Math.max(fromLedger, begun.scannedTo + 1)
    while (next <= toLedger) {
      const { scannedTo, spending } = yield* findSpending({ promised, own, fromLedger: next, toLedger })
      if (spending !== undefined) return spending as UseEvidence
      if (scannedTo < next) break
      begun.scannedTo = scannedTo
      next = scannedTo + 1
    }
    // The nonce's entry names the ledger, so its transaction is in it.
    const isNamed = Option.isSome(inLedger) && inLedger.value === toLedger
    if (next <= toLedger || isNamed)
      return yield* unknown("the node does not show the transaction that used the authorization")
    return (isWhole ? "Unused" : "Forgotten") as UseEvidence
  }, withSpanIfSampled("settlement.findSpending"))
})

/** The use of a refused authorization; none if the scheme cannot read the nonce. */
export type AdoptionResult =
  /** One of our transactions paid it, and it belongs to the caller. */
  | { readonly _tag: "Ours" }
  /** It was ours, and we cannot show that the caller owns it: the operator has to assign it. Its inner hash. */
  | { readonly _tag: "Unclaimed"; readonly transaction: string }
  | ({ readonly _tag: "Elsewhere" } & SpentBy)
  | { readonly _tag: "Unused" }
  /** Not used yet, and a later ledger may still use it. */
  | { readonly _tag: "Alive" }
  | { readonly _tag: "Forgotten" }

/** Searches for the use of an authorization: bounded in total and for each principal, and cached. */
const makeSearch = Effect.fnUntraced(function* (own: () => OwnAccounts) {
  const authorizations = yield* Authorizations
  const pollUp = yield* makePollUp
  const polling = yield* Semaphore.make(pollsMax)
  const cached = new LruCache<string, Use>({ name: "spent-nonces", capacity: cachedMax })
  const begun = new BoundedMap<string, { scannedTo: number }>(cachedMax)
  const waiting = new Map<string, number>()
  let restsUntil = -Infinity

  /** Runs a search for a caller without a key, unless those rest; notes the rest after it. */
  const restingAfter = <A, E>(poll: Effect.Effect<A, E>) =>
    Effect.flatMap(monotonicMillis, (startedAt): Effect.Effect<A, E | LedgerUnavailable> => {
      if (startedAt < restsUntil)
        return Effect.fail(unknown("searches for expired authorizations of callers without a key rest"))
      const note = Effect.map(monotonicMillis, (now) => {
        const took = now - startedAt
        if (took >= longMillis) restsUntil = now + restTimes * took
      })
      return Effect.ensuring(poll, note)
    })

  const useOf = Effect.fnUntraced(function* (
    request: AdoptionRequest,
    nonce: Nonce,
    key: string,
    expired: ExpiredAuthorization | undefined
  ) {
    const { source: principal } = request.principal
    const mine = waiting.get(principal) ?? 0
    if (mine >= pollsOfPrincipalMax) return yield* unknown("too many concurrent searches for spent authorizations")
    waiting.set(principal, mine + 1)
    const poll = Effect.suspend(() => {
      const cachedUse = cached.peek(key)
      const progress = begun.get(key) ?? { scannedTo: 0 }
      begun.set(key, progress)
      return cachedUse === undefined
        ? pollUp(request, { nonce, own: own(), expired }, progress)
        : Effect.succeed<UseEvidence>(cachedUse)
    })
    const isFree = expired !== undefined && !request.principal.keyed
    return yield* polling
      .withPermits(1)(isFree ? restingAfter(poll) : poll)
      .pipe(
        Effect.tap((use) => Effect.sync(() => (use === "Alive" ? undefined : cached.set(key, use)))),
        Effect.ensuring(
          Effect.sync(() => {
            const left = (waiting.get(principal) ?? 1) - 1
            if (left === 0) waiting.delete(principal)
            else waiting.set(principal, left)
          })
        )
      )
  })

  return Effect.fnUntraced(function* (request: AdoptionRequest, expired: ExpiredAuthorization | undefined) {
    const nonce = authorizations.nonceOf(request)
    if (nonce === undefined || nonce === "none") return undefined
    // The user of a nonce is the same for all its authorizations, but an unused life of one does not decide about
    // another.
    const spent = `${request.network} ${nonce.address} ${nonce.nonce}`
    const key = expired === undefined ? spent : `${spent} ${expired.expiresLedger}`
    return cached.get(key) ?? (yield* useOf(request, nonce, key, expired))
  })
})

/** The amount that a transaction moved from the payer to the seller; none if it does not show the amount. */
const transferred = (
  { asset, payer, payTo }: AdoptionRequest,
  { transfers }: ExecutedTransaction
): bigint | undefined =>
  Option.getOrElse(transfers, () => []).find(
    ({ contract, from, to }) => contract === asset && from === payer && to === payTo
  )?.amount

/**
 * Stores the settlement only for a caller that we can show to be its owner: by the tag in the transaction, by the
 * journal, or by the operator.
 */
export const makeAdopter = Effect.gen(function* () {
  const confirmOutcome = yield* makeConfirmOutcomes
  const signer = yield* Signer
  const settlements = yield* Settlements
  const authorizations = yield* Authorizations
  const ownerTags = yield* OwnerTags
  const own = (): OwnAccounts => ({
    sponsors: new Set(signer.sponsors),
    channels: new Set([...signer.channels, ...signer.formerChannels])
  })
  const search = yield* makeSearch(own)

  const isOwner = ({ innerHash, fingerprint, network, principal }: AdoptedSettlement, inner: Transaction) =>
    ownerTags.isTaggedFor(inner, { network, owner: principal.owner, fingerprint })
      ? Effect.succeed(true)
      : settlements.wasOwner(innerHash, principal.owner)

  const verify = Effect.fnUntraced(function* (request: AdoptionRequest, found: Spending) {
    // Read again for each authorization: two of them may share a nonce, and at most one was used.
    const use = readSpending(authorizations, found, request, own())
    const inner = ofOurs(found.envelope, own())
    const by = { transaction: found.executed.innerHash, isOurs: inner !== undefined }
    if (use?.moved === undefined || inner === undefined)
      return { answer: { _tag: "Elsewhere", ...by } as AdoptionResult }
    const adopted = settlementOf(request, found, inner, use.moved)
    if (yield* isOwner(adopted, inner)) return { answer: { _tag: "Ours" } as AdoptionResult, adopted, by }
    yield* Effect.annotateLogs(Effect.logWarning(unshown), { transaction: by.transaction })
    return { answer: { _tag: "Unclaimed", transaction: by.transaction } as AdoptionResult }
  })

  const adopt = Effect.fnUntraced(function* (request: AdoptionRequest, expired?: ExpiredAuthorization) {
    const found = yield* search(request, expired)
    if (found === undefined || typeof found === "string") return found && ({ _tag: found } as AdoptionResult)
    const { adopted, answer, by } = yield* verify(request, found)
    if (adopted === undefined) return answer
    const { authorizationExpiresLedger, channel, innerHash } = adopted
    const confirmations = yield* confirmOutcome({
      ...{ promised: adopted, channel, innerHash, authorizationExpiresLedger },
      outcome: { ...adopted, state: "settled", transaction: adopted.innerHash, reason: undefined, channel: undefined },
      shownBy: found.executed.endpoint
    })
    if (typeof confirmations === "string")
      return yield* unknown("the endpoints do not agree that the authorization was used")
    const stored: AdoptAnswer = yield* settlements.adopt({ ...adopted, confirmations })
    if (stored === "Adopted") {
      yield* Effect.logWarning("a payment without a record was found on the ledger and stored").pipe(
        Effect.annotateLogs({ settlement: adopted.id, transaction: adopted.innerHash })
      )
    }
    return stored === "TransactionTaken" ? ({ _tag: "Elsewhere", ...by } as AdoptionResult) : answer
  }, withSpanIfSampled("settlement.adopt"))

  /**
   * The answer of `adopt`, without storing anything. A payment that is verified for a maximum may have been settled for
   * less: it is compared with the amount that its transaction moved, under the terms of that amount.
   */
  const find = Effect.fnUntraced(function* (
    request: AdoptionRequest,
    expired: ExpiredAuthorization | undefined,
    fingerprintFor: (amount: bigint) => string
  ) {
    const found = yield* search(request, expired)
    if (found === undefined || typeof found === "string") return found && ({ _tag: found } as AdoptionResult)
    const moved = transferred(request, found.executed) ?? request.amount
    const settled = moved < request.amount ? { ...request, amount: moved, fingerprint: fingerprintFor(moved) } : request
    return (yield* verify(settled, found)).answer
  }, withSpanIfSampled("settlement.findLost"))

  return { adopt, find }
})
