// Asks a second endpoint before an outcome is stored. An outcome rests on whether the authorization's nonce was used by
// a ledger, so all outcomes of one moment are confirmed by one batched read of their nonces at another endpoint. If
// the nonce shows nothing, because the scheme has none or its entry has expired, we ask the second endpoint for the
// transaction. When endpoints contradict each other and no third one decides, the settlement stays open, and the
// endpoint that showed the outcome is distrusted. With one endpoint, or when no other answers within two seconds, the
// outcome rests on one endpoint and carries `confirmations: 1`.
import { Duration, Effect, Option } from "effect"
import { BoundedMap } from "../../cache/BoundedMap.ts"
import { batched } from "../../database/batched.ts"
import { type EndpointReader, LedgerRpc, type SnapshotAnswer, type TransactionAnswer } from "../../ledger/LedgerRpc.ts"
import { monotonicMillis } from "../../time/monotonicMillis.ts"
import { withSpanIfSampled } from "../../effect/withSpanIfSampled.ts"
import { Authorizations, type Nonce, type PromisedPayment } from "../Authorizations.ts"
import type { Evidence, Outcome } from "../state/Settlement.ts"

/** Maximum outcomes of one read: two keys each. */
const claimsMax = 100
/** Total time for other endpoints, milliseconds. */
const patienceMillis = 2_000
/** Pause before an endpoint that has not reached the outcome's ledger is asked again; doubles each time. */
const firstPauseMillis = 250
/** Ledgers that an endpoint may be behind and still decide soon; beyond that it counts as silent. */
const nearLedgers = 12
const concurrency = 16
/** Maximum number of settlements with a contradiction that was already logged. */
const reportedMax = 1_000

/** The part of an outcome that we ask about. */
type ShownOutcome = Pick<Outcome, "state" | "transaction" | "ledger" | "reason" | "channel">

/** The part of an outcome that another endpoint can confirm. */
export interface OutcomeClaim {
  readonly promised: PromisedPayment
  readonly channel: string
  readonly innerHash: string
  readonly authorizationExpiresLedger: number
  readonly outcome: ShownOutcome
  /** The endpoint that showed it, by position; undefined if unknown. */
  readonly shownBy: number | undefined
}

/** The number of endpoints that show the outcome, or the reason why it may not be stored now. */
type Confirmation = 1 | 2 | "Contradicted" | "NotReached"

type Verdict = "Agrees" | "Contradicts" | "Behind" | "Unknown"

/** True if the outcome implies that the authorization was used. */
const isUsed = ({ reason, state }: ShownOutcome): boolean =>
  state === "settled" || reason === "settle_ledger_authorization_spent"

/** The ledger for which the outcome holds. */
const ledgerOf = ({ channel, ledger: included, state }: ShownOutcome): number =>
  (state === "settled" ? included : (channel?.ledger ?? included)) ?? 0

/** Compares the outcome with a nonce at another endpoint. `Unknown` needs the transaction. Pure. */
export const verdictByNonce = (
  { authorizationExpiresLedger, outcome }: Pick<OutcomeClaim, "authorizationExpiresLedger" | "outcome">,
  nonce: SnapshotAnswer["nonce"],
  latestLedger: number
): Verdict => {
  const asOf = ledgerOf(outcome)
  if (typeof nonce === "number" && nonce <= authorizationExpiresLedger) {
    if (outcome.state === "settled") return nonce === outcome.ledger ? "Agrees" : "Contradicts"
    if (isUsed(outcome)) return "Agrees"
    // Used after the outcome's ledger: the outcome was right, but is outdated now. The next turn sees the use.
    return nonce <= asOf ? "Contradicts" : "Behind"
  }
  if (nonce === "unknown" || latestLedger > authorizationExpiresLedger) return "Unknown"
  if (latestLedger < asOf) return "Behind"
  return isUsed(outcome) ? "Contradicts" : "Agrees"
}

/** Compares the outcome with its transaction at another endpoint. Pure. */
export const verdictByTransaction = (
  { outcome }: Pick<OutcomeClaim, "outcome">,
  answer: TransactionAnswer
): Verdict => {
  const asOf = ledgerOf(outcome)
  const isSettled = outcome.state === "settled"
  if (answer._tag === "Included") {
    if (isSettled) return answer.executed.succeeded && answer.executed.ledger === asOf ? "Agrees" : "Contradicts"
    return answer.executed.succeeded ? "Contradicts" : "Agrees"
  }
  // A node's transaction index may be a ledger behind the rest of its answer.
  if (answer.latestLedger <= asOf) return "Behind"
  if (answer.oldestLedger > asOf) return "Unknown"
  return isSettled ? "Contradicts" : "Agrees"
}

/** The hash under which another endpoint may find the outcome; undefined if it names none of our transactions. */
const hashOf = ({ innerHash, outcome }: OutcomeClaim): string | undefined =>
  outcome.reason === "settle_ledger_authorization_spent" ? undefined : (outcome.transaction ?? innerHash)

/** The endpoint that showed the evidence for an outcome: the transaction of a settled one, the nonce of any other. */
export const shownBy = (outcome: Outcome, { search, seen, snapshot }: Evidence): number | undefined => {
  const landed = seen._tag === "Included" ? seen.landed.executed : undefined
  const found = search?.spending?._tag === "Ours" ? search.spending.executed : undefined
  const numbered = typeof search?.numberUsedBy === "object" ? search.numberUsedBy.executed : undefined
  const executed = [landed, found, numbered].find((one) => one?.innerHash === outcome.transaction)
  return outcome.state === "settled" ? executed?.endpoint : (snapshot?.endpoint ?? landed?.endpoint)
}

/** One endpoint's verdict on each claim. */
const makeReadVerdicts = Effect.gen(function* () {
  const authorizations = yield* Authorizations

  const once = Effect.fnUntraced(function* (reader: EndpointReader, claims: ReadonlyArray<OutcomeClaim>) {
    const claimsWithNonce = claims.map((claim) => {
      const nonce = authorizations.nonceOf(claim.promised)
      return { claim, nonce: nonce === "none" ? undefined : nonce }
    })
    const queries = claimsWithNonce.flatMap(({ claim: { channel }, nonce }) =>
      nonce === undefined ? [] : [{ channel, nonce }]
    )
    const answer = queries.length === 0 ? undefined : yield* reader.snapshots(queries)
    const shown = new Map<Nonce, SnapshotAnswer["nonce"]>(
      queries.map(({ nonce }, at) => [nonce, answer!.snapshots[at]!.nonce])
    )
    let isNear = true
    const verdicts = yield* Effect.forEach(
      claimsWithNonce,
      ({ claim, nonce }): Effect.Effect<Verdict, Effect.Error<ReturnType<EndpointReader["transaction"]>>> => {
        const note = (verdict: Verdict, latestLedger: number) => {
          if (verdict === "Behind" && latestLedger < ledgerOf(claim.outcome) - nearLedgers) isNear = false
          return verdict
        }
        const byNonce =
          nonce === undefined
            ? "Unknown"
            : note(verdictByNonce(claim, shown.get(nonce)!, answer!.latestLedger), answer!.latestLedger)
        const hash = hashOf(claim)
        return byNonce !== "Unknown" || hash === undefined
          ? Effect.succeed(byNonce)
          : Effect.map(reader.transaction(hash), (said) => note(verdictByTransaction(claim, said), said.latestLedger))
      },
      { concurrency }
    )
    return { verdicts, isNear }
  })

  /** Asked again while the endpoint is about to reach the ledger; a distant one counts as silent. */
  return Effect.fnUntraced(function* (reader: EndpointReader, claims: ReadonlyArray<OutcomeClaim>, millis: number) {
    const until = (yield* monotonicMillis) + millis
    let pause = firstPauseMillis
    let lastVerdicts: ReadonlyArray<Verdict> | undefined
    while (true) {
      const left = until - (yield* monotonicMillis)
      const answer = Option.flatten(yield* Effect.timeoutOption(Effect.option(once(reader, claims)), left))
      if (Option.isNone(answer)) return lastVerdicts
      const { isNear, verdicts } = answer.value
      if (!isNear) return verdicts.map((one) => (one === "Behind" ? "Unknown" : one))
      lastVerdicts = verdicts
      if (!verdicts.includes("Behind") || (yield* monotonicMillis) + pause >= until) return lastVerdicts
      yield* Effect.sleep(Duration.millis(pause))
      pause *= 2
    }
  })
})

/** The state of one claim while endpoints are asked in turn. */
interface Poll {
  readonly claim: OutcomeClaim
  isAgreed: boolean
  isBehind: boolean
  contradictedBy: number | undefined
}

const confirmationOf = ({ contradictedBy, isAgreed, isBehind }: Poll): Confirmation =>
  isAgreed ? 2 : contradictedBy !== undefined ? "Contradicted" : isBehind ? "NotReached" : 1

const makeReport = Effect.map(LedgerRpc, (rpc) => {
  /** A contradiction may last for many ledgers: it is logged once for each settlement. */
  const reported = new BoundedMap<string, true>(reportedMax)
  return Effect.fnUntraced(function* (polls: ReadonlyArray<Poll>) {
    for (const { claim, contradictedBy, isAgreed } of polls) {
      if (contradictedBy === undefined) continue
      const { innerHash, outcome, shownBy } = claim
      const liar = isAgreed ? contradictedBy : shownBy
      if (liar !== undefined) yield* rpc.distrust(liar)
      if (reported.get(innerHash) === true) continue
      reported.set(innerHash, true)
      yield* Effect.logError(
        isAgreed
          ? "an endpoint contradicted two others about a settlement and is called last for an hour"
          : "two endpoints contradict each other about a settlement; it stays open until they agree: check rpc_urls"
      ).pipe(
        Effect.annotateLogs({
          transaction: outcome.transaction ?? innerHash,
          outcome: outcome.state,
          shownBy: shownBy === undefined ? "unknown" : shownBy + 1,
          contradictedBy: contradictedBy + 1
        })
      )
    }
  })
})

/** Confirms outcomes; the claims of one moment share one read. Its batches end with the Scope. */
export const makeConfirmOutcomes = Effect.gen(function* () {
  const rpc = yield* LedgerRpc
  const readVerdicts = yield* makeReadVerdicts
  const report = yield* makeReport

  const confirmShownBy = Effect.fnUntraced(function* (
    endpoint: number | undefined,
    claims: ReadonlyArray<OutcomeClaim>
  ) {
    const polls = claims.map((claim): Poll => ({ claim, isAgreed: false, isBehind: false, contradictedBy: undefined }))
    const others = yield* rpc.others(endpoint)
    for (const reader of others) {
      const undecided = polls.filter(({ isAgreed }) => !isAgreed)
      if (undecided.length === 0) break
      const verdicts = yield* readVerdicts(
        reader,
        undecided.map(({ claim }) => claim),
        patienceMillis / others.length
      )
      for (const [at, poll] of undecided.entries()) {
        const verdict = verdicts?.[at]
        if (verdict === "Agrees") poll.isAgreed = true
        if (verdict === "Behind") poll.isBehind = true
        if (verdict === "Contradicts") poll.contradictedBy ??= reader.endpoint
      }
    }
    yield* report(polls)
    return polls.map(confirmationOf)
  })

  const confirming = yield* batched({
    maxBatchSize: claimsMax,
    runBatch: Effect.fnUntraced(function* (claims: ReadonlyArray<OutcomeClaim>) {
      const answers = new Map<OutcomeClaim, Confirmation>()
      for (const [endpoint, some] of Map.groupBy(claims, (claim) => claim.shownBy)) {
        const confirmed = yield* confirmShownBy(endpoint, some)
        for (const [at, claim] of some.entries()) answers.set(claim, confirmed[at]!)
      }
      return claims.map((claim) => answers.get(claim)!)
    })
  })

  return Effect.fnUntraced(function* (claim: OutcomeClaim) {
    const others = yield* rpc.others(claim.shownBy)
    return others.length === 0 ? (1 as Confirmation) : yield* confirming(claim)
  }, withSpanIfSampled("settlement.confirm"))
})
