// Asks a second endpoint before an outcome is stored: for the transaction of a settled one, since a payer may sign
// another authorization with the same nonce. Any other outcome rests on whether a ledger used the nonce, so all of one
// moment are confirmed by one batched read of their nonces; if the nonce shows nothing, because the scheme has none or
// its entry has expired, we ask for the transaction too. When endpoints contradict each other and no third one decides,
// the settlement stays open, and the endpoint that showed the outcome is distrusted. With one endpoint, or when no
// other answers within two seconds, the outcome rests on one endpoint and carries `confirmations: 1`.
import { Duration, Effect, Option } from "effect"
import { BoundedMap } from "../../cache/BoundedMap.ts"
import { batched } from "../../database/batched.ts"
import { type EndpointReader, LedgerRpc, type SnapshotAnswer, type TransactionAnswer } from "../../ledger/LedgerRpc.ts"
import { monotonicMillis } from "../../time/monotonicMillis.ts"
import { withSpanIfSampled } from "../../effect/withSpanIfSampled.ts"
import { Authorizations, type PromisedPayment } from "../Authorizations.ts"
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

/** True if the outcome implies that another transaction used the authorization. */
const isSpent = ({ reason }: ShownOutcome): boolean => reason === "settle_ledger_authorization_spent"

const ledgerOf = ({ channel, ledger: included, state }: ShownOutcome): number =>
  (state === "settled" ? included : (channel?.ledger ?? included)) ?? 0

/** Compares an outcome with a nonce at another endpoint. `Unknown` needs the transaction. Pure. */
export const verdictByNonce = (
  { authorizationExpiresLedger, outcome }: Pick<OutcomeClaim, "authorizationExpiresLedger" | "outcome">,
  { nonce }: Pick<SnapshotAnswer, "nonce">,
  latestLedger: number
): Verdict => {
  const asOf = ledgerOf(outcome)
  if (typeof nonce === "number" && nonce <= authorizationExpiresLedger) {
    if (outcome.state === "settled") return nonce === outcome.ledger ? "Unknown" : "Contradicts"
    if (isSpent(outcome)) return "Agrees"
    // Used after the outcome's ledger: the outcome was right, but is outdated now. The next turn sees the use.
    return nonce <= asOf ? "Contradicts" : "Behind"
  }
  if (nonce === "unknown" || latestLedger > authorizationExpiresLedger) return "Unknown"
  if (latestLedger < asOf) return "Behind"
  return isSpent(outcome) || outcome.state === "settled" ? "Contradicts" : "Agrees"
}

/** Compares the outcome with its transaction at another endpoint. Pure. */
export const verdictByTransaction = (
  { innerHash, outcome }: Pick<OutcomeClaim, "innerHash" | "outcome">,
  answer: TransactionAnswer
): Verdict => {
  const asOf = ledgerOf(outcome)
  const isSettled = outcome.state === "settled"
  if (answer._tag === "Included") {
    if (isSettled) return answer.executed.succeeded && answer.executed.ledger === asOf ? "Agrees" : "Contradicts"
    // A no-op of ours that took the payment's number succeeds, and the payment has failed by it.
    const isCancel = outcome.transaction !== undefined && outcome.transaction !== innerHash
    return answer.executed.succeeded && !isCancel ? "Contradicts" : "Agrees"
  }
  // A node's transaction index may be behind the rest of its answer, so a missing success is not yet a contradiction.
  if (answer.latestLedger <= asOf + (isSettled ? nearLedgers : 0)) return "Behind"
  if (answer.oldestLedger > asOf) return "Unknown"
  return isSettled ? "Contradicts" : "Agrees"
}

/** The hash under which another endpoint may find the outcome; undefined if it names none of our transactions. */
const hashOf = ({ innerHash, outcome }: OutcomeClaim): string | undefined =>
  isSpent(outcome) ? undefined : (outcome.transaction ?? innerHash)

/** The endpoint that showed the evidence for an outcome: the transaction of a settled one, the nonce of any other. */
export const shownBy = (outcome: Outcome, { search, seen, snapshot }: Evidence): number | undefined => {
  const landed = seen._tag === "Included" ? seen.landed.executed : undefined
  const found = search?.spending?._tag === "Ours" ? search.spending.executed : undefined
  const numbered = typeof search?.numberUsedBy === "object" ? search.numberUsedBy.executed : undefined
  const executed = [landed, found, numbered].find((one) => one?.innerHash === outcome.transaction)
  return outcome.state === "settled" ? executed?.endpoint : (snapshot?.endpoint ?? landed?.endpoint)
}

/** A verdict, and the endpoint's latest ledger. */
interface Reading {
  readonly verdict: Verdict
  readonly latestLedger: number
}

/** One endpoint's present verdict on each claim; `isNear` if none is far behind a claim's ledger. */
const makeReadOnce = Effect.gen(function* () {
  const authorizations = yield* Authorizations

  const byTransaction = (reader: EndpointReader, claim: OutcomeClaim) => {
    const hash = hashOf(claim)
    return hash === undefined
      ? Effect.succeed<Reading>({ verdict: "Unknown", latestLedger: Infinity })
      : Effect.map(reader.transaction(hash), (answer): Reading => ({
          verdict: verdictByTransaction(claim, answer),
          latestLedger: answer.latestLedger
        }))
  }

  const byPage = Effect.fnUntraced(
    function* (reader: EndpointReader, claim: OutcomeClaim) {
      const [hash, ledger] = [hashOf(claim), ledgerOf(claim.outcome)]
      const { found, scannedTo } = yield* reader.scan({ fromLedger: ledger, toLedger: ledger, matches: () => true })
      const executed = found.find(({ executed }) => executed.innerHash === hash)?.executed
      if (executed === undefined) return undefined
      const answer = { _tag: "Included", executed, latestLedger: scannedTo } as const
      return { verdict: verdictByTransaction(claim, answer), latestLedger: scannedTo } satisfies Reading
    },
    Effect.orElseSucceed(() => undefined)
  )

  /** By claim; without those whose scheme has no nonce. */
  const byNonces = Effect.fnUntraced(function* (reader: EndpointReader, claims: ReadonlyArray<OutcomeClaim>) {
    const readable = claims.flatMap((claim) => {
      const nonce = authorizations.nonceOf(claim.promised)
      return nonce === undefined || nonce === "none" ? [] : [{ claim, query: { channel: claim.channel, nonce } }]
    })
    if (readable.length === 0) return new Map<OutcomeClaim, Reading>()
    const { latestLedger, snapshots } = yield* reader.snapshots(readable.map(({ query }) => query))
    return new Map(
      readable.map(({ claim }, at): [OutcomeClaim, Reading] => [
        claim,
        { verdict: verdictByNonce(claim, snapshots[at]!, latestLedger), latestLedger }
      ])
    )
  })

  return Effect.fnUntraced(function* (reader: EndpointReader, claims: ReadonlyArray<OutcomeClaim>) {
    const isSettled = ({ outcome }: OutcomeClaim) => outcome.state === "settled"
    const read = (some: ReadonlyArray<OutcomeClaim>) =>
      Effect.map(
        Effect.forEach(some, (claim) => byTransaction(reader, claim), { concurrency }),
        (readings) => new Map(readings.map((reading, at) => [some[at]!, reading]))
      )
    const settled = yield* read(claims.filter(isSettled))
    // A nonce never confirms a success. It refutes one sooner than an index that may be behind.
    const undecided = claims.filter((claim) => !isSettled(claim) || settled.get(claim)!.verdict === "Behind")
    const shown = yield* byNonces(reader, undecided)
    // A node without an index of hashes may still have the ledger's page. If it has not, its first answer counts.
    for (const claim of undecided)
      if (isSettled(claim) && shown.get(claim)?.verdict === "Unknown")
        settled.set(claim, (yield* byPage(reader, claim)) ?? settled.get(claim)!)
    const others = yield* read(
      undecided.filter((claim) => !isSettled(claim) && (shown.get(claim)?.verdict ?? "Unknown") === "Unknown")
    )
    const readings = claims.map((claim) => {
      const [first, nonce] = [settled.get(claim) ?? others.get(claim), shown.get(claim)]
      return first === undefined || (isSettled(claim) && nonce?.verdict === "Contradicts") ? nonce! : first
    })
    const isFar = ({ latestLedger, verdict }: Reading, at: number) =>
      verdict === "Behind" && latestLedger < ledgerOf(claims[at]!.outcome) - nearLedgers
    return { verdicts: readings.map(({ verdict }) => verdict), isNear: !readings.some(isFar) }
  })
})

const makeReadVerdicts = Effect.gen(function* () {
  const readOnce = yield* makeReadOnce

  /** Asked again while the endpoint is about to reach the ledger; a distant one counts as silent. */
  return Effect.fnUntraced(function* (reader: EndpointReader, claims: ReadonlyArray<OutcomeClaim>, millis: number) {
    const until = (yield* monotonicMillis) + millis
    let pause = firstPauseMillis
    let lastVerdicts: ReadonlyArray<Verdict> | undefined
    while (true) {
      const left = until - (yield* monotonicMillis)
      const answer = Option.flatten(yield* Effect.timeoutOption(Effect.option(readOnce(reader, claims)), left))
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
