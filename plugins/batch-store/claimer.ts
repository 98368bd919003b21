// The claimer: claims and settles channels by their sellers' policies, and always before a started withdrawal ends. A
// turn watches withdrawals, records due claims and submits recorded claims through the facilitator's settle. The
// claimer keeps no state in memory: after a crash the next turn, on any replica, continues from the records. It only
// claims channels that have the store's key for the seller as their receiver's authorizer. A seller with its own key
// claims by itself.
import { Clock, Duration, Effect, Option } from "effect"
import { reconciler } from "../../kernel/actor/Actor.ts"
import { Network } from "../../kernel/config/Network.ts"
import { Health } from "../../kernel/health/Health.ts"
import { Facilitator } from "../../kernel/payment/Facilitator.ts"
import { Schemes } from "../../kernel/payment/Scheme.ts"
import { Crypto } from "../../kernel/platform/Crypto.ts"
import { Leases } from "../../kernel/settlement/Leases.ts"
import { monotonicMillis } from "../../kernel/time/monotonicMillis.ts"
import { measure } from "../../kernel/telemetry/Measure.ts"
import { KnownChannels } from "../x402-batch/contract.ts"
import { Authorizer } from "./Authorizer.ts"
import { claimPayment, claimPrincipal } from "./claimPayment.ts"
import { Claims, claimsOf, type Due, type Lost, type OpenClaim, type Unpaid, type Withdrawals } from "./Claims.ts"
import { Config } from "./Config.ts"
import { metrics } from "./metrics.ts"
import { watchWithdrawals } from "./watchWithdrawals.ts"

const lease = Duration.seconds(30)
/** Claims submitted at one time: each holds a channel account until its outcome. */
const submitsConcurrentMax = 4

/** An earlier turn settled the same authorization, but its response was lost. */
const settledBefore = new Set(["settle_ledger_already_settled"])
/** All of it was claimed or paid out already. */
const nothingLeft = /_nothing_to_(claim|settle)$/
/** The simulation reports that this number of channels exceeds one transaction or its maximum fee. */
const tooLarge = /_(too_many_claims|fee_exceeds_maximum)$/

const makeSubmit = Effect.gen(function* () {
  const claims = yield* Claims
  const crypto = yield* Crypto
  const facilitator = yield* Facilitator
  const network = yield* Network
  const schemes = yield* Schemes
  const authorizer = yield* Authorizer

  /** True if the settlement needs an operator: its response stays pending until an operator resolves it. */
  const isUnresolved = (principal: string, identifier: string) =>
    Effect.map(facilitator.lookup(claimPrincipal(principal), { identifier }), (found) =>
      Option.exists(found, (records) => records.some(({ state }) => state === "unresolved"))
    )
  const count = (claim: OpenClaim, outcome: string) => measure(metrics.claims, 1, { kind: claim.kind, outcome })

  return Effect.fn("BatchClaimer.submit")(function* (claim: OpenClaim) {
    const identifier = `batch-store-claim-${claim.id}`
    if (!authorizer.signs(claim.principal))
      return yield* Effect.logWarning(`claim ${claim.id} waits: no authorizer's key, or no contract`)
    yield* claims.attempted(claim)
    // Unsigned, so that it is the same each time: the scheme signs it for the seller's key, for as long as it needs.
    const answer = yield* facilitator.settle(claimPayment(crypto, { ...claim, network: network.id, identifier }))
    switch (answer._tag) {
      case "Pending":
        if (!(yield* isUnresolved(claim.principal, identifier))) return
        // The channels are claimed again. If the first claim landed, the contract does not count it twice.
        yield* claims.failed(claim, "unresolved")
        return yield* count(claim, "failed")
      case "Settled":
        yield* claims.settled(claim, answer.transaction)
        return yield* count(claim, "settled")
      case "Failed": {
        const { reason } = answer.refusal
        if (settledBefore.has(reason) || nothingLeft.test(reason)) {
          yield* claims.settled(
            claim,
            Option.getOrElse(answer.transaction, () => "")
          )
          return yield* count(claim, "settled")
        }
        // Transient failures retry the same claim unchanged.
        if (schemes.statusOf(reason) >= 500) return
        if (tooLarge.test(reason) && claimsOf(claim.payload).length > 1) {
          yield* claims.halved(claim, reason)
          return yield* count(claim, "halved")
        }
        yield* claims.failed(claim, reason)
        yield* count(claim, "failed")
        return yield* Effect.logWarning(`the claimer's ${claim.kind} ${claim.id} failed: ${reason}`)
      }
    }
  })
})

/** Charges of a seller without a policy are claimed after this time. */
const claimedAfterSeconds = 3_600

/** Channels claimed by one transaction at most; fewer if the ledger's limits require it. */
const claimsMax = 40

const makeRecordDue = Effect.gen(function* () {
  const claims = yield* Claims
  const network = yield* Network

  return Effect.gen(function* () {
    const due: Due = { network: network.id, claimEverySeconds: claimedAfterSeconds }
    for (const group of yield* claims.due(due)) {
      while ((yield* claims.record(due, group, claimsMax)) > 0);
    }
  })
})

interface Owed extends Unpaid {
  /** Atomic units. */
  readonly amount: bigint
}

/** Receivers that could not be paid. The amounts are on the ledger, and are read again at the pace of the watch. */
const makeReadUnpaid = Effect.gen(function* () {
  const claims = yield* Claims
  const { watchMillis } = yield* Config
  const known = yield* KnownChannels
  const network = yield* Network
  const symbolOf = (token: string) => network.assets.get(token)?.symbol ?? "other"
  let [unpaid, readAt]: [ReadonlyArray<Owed>, number] = [[], -Infinity]

  return Effect.gen(function* () {
    const now = yield* monotonicMillis
    const found = yield* claims.unpaid(network.id)
    if (now - readAt < watchMillis && found.length === unpaid.length) return unpaid
    unpaid = yield* Effect.forEach(found, (one) =>
      Effect.map(known.owed(one.receiver, one.token), (amount) => ({ ...one, amount }))
    )
    readAt = now
    for (const symbol of new Set([...[...network.assets.keys()].map(symbolOf), "other"])) {
      const amounts = unpaid.filter(({ token }) => symbolOf(token) === symbol).map(({ amount }) => Number(amount))
      const sum = amounts.reduce((total, one) => total + one, 0)
      yield* measure(metrics.unpaid, sum, { asset: symbol })
    }
    return unpaid
  }).pipe(
    Effect.catchTag("LedgerUnavailable", (error) =>
      Effect.as(Effect.logDebug("the unpaid amounts were not read", error), unpaid)
    )
  )
})

/**
 * Operators must see an unanswered withdrawal, because only the rest of its delay is left to act. For one day they also
 * see the amount lost to a withdrawal that ended.
 */
const reportOf = ({ firstEndsAt, unanswered }: Withdrawals, lost: ReadonlyArray<Lost>, unpaid: ReadonlyArray<Owed>) => {
  const endsAt = new Date((firstEndsAt ?? 0) * 1_000).toISOString()
  const withdrawn =
    unanswered === 0 ? [] : [`${unanswered} started withdrawals with unclaimed charges; the first may end at ${endsAt}`]
  const recent = lost.filter(({ isRecent }) => isRecent)
  const details = [
    ...withdrawn,
    ...(recent.length === 0 ? [] : ["payers have withdrawn charged amounts"]),
    ...(unpaid.length === 0 ? [] : [`claimed amounts of ${unpaid.length} receivers are not paid out`])
  ]
  const operatorDetails = [
    ...withdrawn,
    ...recent.map(
      ({ amount, channels, token }) => `payers have withdrawn ${amount} of ${token}, charged in ${channels} channels`
    ),
    ...unpaid.map(
      ({ amount, principal, reason, receiver, token }) =>
        `${amount} of ${token}, claimed for ${receiver} of ${principal}, is not paid out: ${reason}`
    )
  ]
  const figures = {
    withdrawalsUnanswered: unanswered,
    channelsLost: lost.reduce((sum, { channels }) => sum + channels, 0),
    receiversUnpaid: unpaid.length
  }
  return details.length === 0
    ? { state: "ready" as const, figures }
    : {
        state: "degraded" as const,
        detail: details.join("; "),
        operatorDetail: operatorDetails.join("; "),
        figures
      }
}

export const startClaimer = Effect.gen(function* () {
  const claims = yield* Claims
  const { keepMillis, pollSeconds, watchMillis } = yield* Config
  const health = yield* Health
  const leases = yield* Leases
  const network = yield* Network
  const submit = yield* makeSubmit
  const recordDue = yield* makeRecordDue
  const readUnpaid = yield* makeReadUnpaid
  const watch = yield* watchWithdrawals
  let withdrawals: Withdrawals = { unanswered: 0, firstEndsAt: null }
  let lost: ReadonlyArray<Lost> = []
  let unpaid: ReadonlyArray<Owed> = []
  let watchedAt = -Infinity

  const watchWhenDue = Effect.gen(function* () {
    const now = yield* monotonicMillis
    if (now - watchedAt < watchMillis) return
    yield* watch
    watchedAt = now
  })

  const report = Effect.gen(function* () {
    unpaid = yield* readUnpaid
    withdrawals = yield* claims.withdrawals(network.id)
    lost = yield* claims.lost(network.id)
    for (const { amount, token } of lost)
      yield* measure(metrics.lost, Number(amount), { asset: network.assets.get(token)?.symbol ?? "other" })
    const now = (yield* Clock.currentTimeMillis) / 1_000
    yield* measure(metrics.unanswered, withdrawals.unanswered)
    yield* measure(metrics.overdue, Math.max(0, (withdrawals.firstEndsAt ?? now) - now))
  })

  yield* reconciler({
    id: "batch-store-claimer",
    every: Duration.seconds(pollSeconds),
    turn: Effect.gen(function* () {
      if (!(yield* leases.hold("batch-store-claimer", lease))) return yield* report
      yield* watchWhenDue
      yield* recordDue
      yield* Effect.forEach(yield* claims.open(network.id), submit, {
        concurrency: submitsConcurrentMax,
        discard: true
      })
      yield* report
    })
  })
  yield* reconciler({ id: "batch-store-forget", every: "1 hour", turn: claims.forget(keepMillis) })
  yield* health.register(
    "batch-store",
    Effect.sync(() => reportOf(withdrawals, lost, unpaid))
  )
})
