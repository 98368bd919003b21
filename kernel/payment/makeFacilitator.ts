// Verify and settle. Settling first looks for what is already known of the payment, then verifies it again, then hands
// it to a fiber that the kernel owns: lease, prepare, sign, record, submit. The request only waits, so a client that
// hangs up changes nothing. One caller is given the success of a payment; concurrent twins hear pending or busy; later,
// the stored success is read again only with a payment identifier (decisions 2 and 3).
import { Clock, Deferred, Duration, Effect, FiberSet, Layer, Option } from "effect"
import { Hex } from "effect/encoding"
import type { SqlError } from "effect/sql"
import { Budget } from "../budget/Budget.ts"
import { Limits } from "../config/Limits.ts"
import { Network } from "../config/Network.ts"
import { settlementTransaction } from "../ledger/Envelope.ts"
import { LedgerClock } from "../ledger/LedgerClock.ts"
import { LedgerUnavailable } from "../ledger/LedgerUnavailable.ts"
import { Crypto } from "../platform/Crypto.ts"
import { ChannelPool } from "../settlement/channels/ChannelPool.ts"
import type { ChannelLease } from "../settlement/channels/ChannelStore.ts"
import { reached } from "../settlement/CrashPoints.ts"
import { Outcomes } from "../settlement/Outcomes.ts"
import { type FollowerOptions, startFollower } from "../settlement/reconcileSettlements.ts"
import { Settlements } from "../settlement/Settlements.ts"
import { submitAttempt } from "../settlement/submitAttempt.ts"
import { Signer } from "../signer/Signer.ts"
import { makeAdoptSpent } from "./adoptSpent.ts"
import { firstBid } from "../settlement/rebid.ts"
import { answerFinal, busy, conflict, known, noScheme, overBudget, refuse, spentElsewhere } from "./answers.ts"
import { Facilitator, type SettleAnswer, type VerifyAnswer } from "./Facilitator.ts"
import type { Payment } from "./Payment.ts"
import { isRefusal, type Refusal, refusal } from "./Refusal.ts"
import { type Scheme, Schemes, type Verified } from "./Scheme.ts"

/** What the work fiber reports as soon as it is decided whether a settlement exists. */
type Started =
  | { readonly _tag: "Recorded"; readonly id: string; readonly innerHash: string }
  | { readonly _tag: "Answer"; readonly answer: SettleAnswer }
  /** Somebody else recorded it first: look again. */
  | { readonly _tag: "Known" }

/** Time for the net behind the ledger bound: far beyond any close interval. */
const timeNetSecondsPerLedger = 60

export const layer = Layer.effect(
  Facilitator,
  Effect.gen(function* () {
    const schemes = yield* Schemes
    const settlements = yield* Settlements
    const channels = yield* ChannelPool
    const budget = yield* Budget
    const signer = yield* Signer
    const clock = yield* LedgerClock
    const outcomes = yield* Outcomes
    const network = yield* Network
    const limits = yield* Limits
    const crypto = yield* Crypto
    const services = yield* Effect.context<never>()
    // Work in flight is owned here: it ends with the process's Scope, not with a request.
    const work = yield* FiberSet.make<void, never>()
    const inFlight = new Set<string>()

    const moved: FollowerOptions["moved"] = (record, executed) => {
      const scheme = schemes.find(record.scheme)
      // A scheme whose plugin is off cannot read its transaction; that it succeeded is then what is known.
      if (Option.isNone(scheme)) return record.amount
      const checked = scheme.value.checkExecuted(record, executed)
      return checked._tag === "Moved" ? checked.amount : undefined
    }
    const usedIn: FollowerOptions["usedIn"] = (record) => {
      const adoption = Option.getOrUndefined(schemes.find(record.scheme))?.adoption
      return adoption === undefined
        ? Effect.undefined
        : Effect.map(adoption.usedIn(record.authorizationKey), Option.getOrUndefined)
    }
    const follower = yield* startFollower({ moved, usedIn, feeCeilings: network.feeCeilings })

    const unavailable = (error: LedgerUnavailable | SqlError.SqlError): Refusal =>
      error._tag === "LedgerUnavailable"
        ? refusal("ledger_unavailable", "the ledger cannot be asked at the moment; nothing was decided")
        : refusal("internal_error", "the payment could not be processed")

    const schemeOf = (payment: Payment): Option.Option<Scheme> => schemes.find(payment.requirements.scheme)

    const findQuery = (payment: Payment, scheme: Scheme) => ({
      network: payment.requirements.network,
      scheme: scheme.scheme,
      authorizationKey: scheme.authorizationKey(payment),
      principal: payment.principal.id,
      payTo: payment.requirements.payTo,
      identifier: payment.identifier
    })

    /** However many endpoints are asked in vain, nobody waits for a judgement longer than for a settlement. */
    const check = (payment: Payment, scheme: Scheme) =>
      scheme.verify(payment).pipe(
        Effect.timeoutOrElse({
          duration: limits.settleTimeout,
          orElse: () =>
            Effect.fail(new LedgerUnavailable({ operation: "verify", message: "the ledger's endpoints took too long" }))
        }),
        Effect.withSpan("payment.verify", { attributes: { scheme: scheme.scheme } })
      )

    const verify = Effect.fn("Facilitator.verify")(
      function* (payment: Payment) {
        const scheme = schemeOf(payment)
        if (Option.isNone(scheme)) return noScheme
        if (Option.isSome(payment.identifier)) {
          const records = yield* settlements.find({
            ...findQuery(payment, scheme.value),
            authorizationKey: Option.none()
          })
          if (records.some(({ fingerprint }) => fingerprint !== payment.fingerprint)) return conflict
        }
        const checked = yield* check(payment, scheme.value)
        return isRefusal(checked) ? checked : ({ _tag: "Valid", payer: checked.payer } as VerifyAnswer)
      },
      (effect) => Effect.catch(effect, (error) => Effect.as(logFault(error), unavailable(error)))
    )

    const logFault = (error: LedgerUnavailable | SqlError.SqlError) =>
      error._tag === "LedgerUnavailable"
        ? Effect.logWarning("the ledger could not be asked").pipe(
            Effect.annotateLogs({ operation: error.operation, why: error.message })
          )
        : Effect.logError("the database failed a payment's request", error)

    const newId = (): string => {
      const hex = Hex.encode(crypto.randomBytes(16))
      return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20)}`
    }
    const adoptSpent = yield* makeAdoptSpent(newId)

    const buildAndRecord = Effect.fnUntraced(function* (
      payment: Payment,
      scheme: Scheme,
      verified: Verified,
      lease: ChannelLease,
      startedAt: number
    ) {
      yield* reached("afterLease")
      const ceilings = network.feeCeilings(scheme.scheme)
      const now = yield* clock.now
      const prepared = yield* scheme.prepare(payment, verified).pipe(Effect.withSpan("payment.prepare"))
      if (isRefusal(prepared)) return prepared
      const ledgersLeft = verified.authorizationExpiresLedger - now.sequence
      const transaction = settlementTransaction({
        channel: lease.address,
        sequence: lease.sequence,
        operationXdr: prepared.operationXdr,
        sorobanDataXdr: prepared.sorobanDataXdr,
        bounds: {
          ledgerMax: verified.authorizationExpiresLedger + 1,
          timeMax: BigInt(Math.ceil(startedAt / 1_000) + (ledgersLeft + 2) * timeNetSecondsPerLedger)
        }
      })
      const inclusionStroops = firstBid((yield* clock.fees).p90, ceilings.inclusionStroopsMax)
      const signed = yield* signer
        .signSettlement({
          transaction,
          channel: lease.address,
          inclusionStroops,
          resourceStroopsMax: ceilings.resourceStroopsMax,
          inclusionStroopsMax: ceilings.inclusionStroopsMax
        })
        .pipe(Effect.orDie, Effect.withSpan("signer.sign"))
      const id = newId()
      const attempt = { kind: "payment" as const, inclusionStroops, recordedLedger: now.sequence, ...signed }
      yield* reached("beforeRecord")
      const recorded = yield* settlements
        .record({
          id,
          network: payment.requirements.network,
          scheme: scheme.scheme,
          authorizationKey: verified.authorizationKey,
          authorizationExpiresLedger: verified.authorizationExpiresLedger,
          fingerprint: payment.fingerprint,
          principal: payment.principal,
          identifier: payment.identifier,
          payer: verified.payer,
          payTo: verified.payTo,
          asset: verified.asset,
          amountMax: verified.amountMax,
          amount: verified.amount,
          resourceUrl: payment.resourceUrl,
          innerHash: signed.innerHash,
          sponsor: signer.sponsor,
          channel: lease,
          resourceFeeStroops: verified.resourceFeeStroops,
          recordedLedger: now.sequence,
          deadlineAt: startedAt + Duration.toMillis(limits.settleTimeout),
          budgetStroops: verified.resourceFeeStroops + ceilings.inclusionStroopsMax,
          attempt
        })
        .pipe(Effect.withSpan("settlement.record"))
      return { recorded, id, attempt: { ...attempt, number: 1 } }
    })

    /** From lease to submit. Reports as soon as it is known whether a settlement exists, then goes on by itself. */
    const settleInBackground = (
      payment: Payment,
      scheme: Scheme,
      verified: Verified,
      startedAt: number,
      report: Deferred.Deferred<Started>
    ) =>
      Effect.gen(function* () {
        const tell = (started: Started) => Deferred.succeed(report, started)
        const lease = yield* channels.lease
        if (Option.isNone(lease)) return yield* tell({ _tag: "Answer", answer: busy(verified.payer) })
        const built = yield* buildAndRecord(payment, scheme, verified, lease.value, startedAt).pipe(
          Effect.onError(() => channels.release(lease.value))
        )
        if (isRefusal(built)) {
          yield* channels.release(lease.value)
          return yield* tell({ _tag: "Answer", answer: refuse(built) })
        }
        const { attempt, id, recorded } = built
        switch (recorded._tag) {
          case "Recorded": {
            yield* reached("afterRecord")
            yield* tell({ _tag: "Recorded", id, innerHash: attempt.innerHash })
            yield* submitAttempt(id, attempt)
            yield* reached("afterSubmit")
            return yield* follower.wake
          }
          case "Known":
            yield* channels.release(lease.value)
            return yield* tell({ _tag: "Known" })
          case "BudgetExceeded":
            yield* channels.release(lease.value)
            return yield* tell({ _tag: "Answer", answer: refuse(overBudget(Option.some(verified.payer))) })
          case "FenceLost":
          case "TooManyOpen":
            yield* channels.release(lease.value)
            return yield* tell({ _tag: "Answer", answer: busy(verified.payer) })
        }
      }).pipe(
        Effect.catch((error) =>
          Effect.andThen(logFault(error), Deferred.succeed(report, { _tag: "Answer", answer: faultAnswer(error) }))
        ),
        Effect.catchCause((cause) =>
          Effect.andThen(
            Effect.logError("settling a payment died", cause),
            Deferred.succeed(report, {
              _tag: "Answer",
              answer: refuse(refusal("internal_error", "the payment could not be processed"))
            })
          )
        ),
        Effect.asVoid,
        Effect.withSpan("payment.settle", { attributes: { scheme: scheme.scheme } })
      )

    /**
     * A ledger or database that cannot be asked is busy on settle: the caller may try the same payment again (decisions
     * 1).
     */
    const faultAnswer = (_error: LedgerUnavailable | SqlError.SqlError): SettleAnswer => busy()

    /** Waits for the end of a recorded settlement and claims its success for this caller. */
    const awaitOutcome = Effect.fnUntraced(function* (
      id: string,
      innerHash: string,
      payer: string,
      startedAt: number,
      again: boolean
    ) {
      const elapsed = (yield* Clock.currentTimeMillis) - startedAt
      const left = Math.max(0, Duration.toMillis(limits.settleTimeout) - elapsed)
      const record = yield* outcomes.await(id, Duration.millis(left))
      const pending: SettleAnswer = { _tag: "Pending", payer, transaction: innerHash }
      if (Option.isNone(record)) return pending
      if (record.value.state !== "settled") return answerFinal(record.value, again)
      return (yield* settlements.claimDelivery(id)) ? answerFinal(record.value, true) : pending
    })

    /**
     * `late`: the payment was new when this request came, so whoever recorded it since is a concurrent twin, and is
     * given the success.
     */
    const answerKnown = Effect.fnUntraced(function* (
      payment: Payment,
      scheme: Scheme,
      startedAt: number,
      late: boolean
    ) {
      const records = yield* settlements.find(findQuery(payment, scheme)).pipe(Effect.withSpan("payment.find"))
      const found = known(payment, records)
      switch (found._tag) {
        case "New":
          return undefined
        case "Answer": {
          const { answer } = found
          return late && answer._tag === "Settled"
            ? ({ _tag: "Pending", payer: answer.payer, transaction: answer.transaction } as SettleAnswer)
            : answer
        }
        case "Undelivered":
          return (yield* settlements.claimDelivery(found.record.id)) ? answerFinal(found.record, true) : found.otherwise
        case "Open": {
          const { id, innerHash, payer } = found.record
          if (outcomes.isAwaited(id)) return { _tag: "Pending", payer, transaction: innerHash } as SettleAnswer
          return yield* awaitOutcome(id, innerHash, payer, startedAt, true)
        }
      }
    })

    const settleOnce = Effect.fnUntraced(function* (payment: Payment, scheme: Scheme, startedAt: number) {
      const already = yield* answerKnown(payment, scheme, startedAt, false)
      if (already !== undefined) return already
      const ceilings = network.feeCeilings(scheme.scheme)
      if (!(yield* budget.fits(payment.principal, ceilings.inclusionStroopsMax)))
        return refuse(overBudget(Option.none()))
      const checked = yield* check(payment, scheme)
      if (isRefusal(checked)) {
        // A twin may have been recorded and even have landed in between: then the ledger's refusal is our own doing.
        const twin = yield* answerKnown(payment, scheme, startedAt, true)
        if (twin !== undefined || checked.authorizationSpent !== true) return twin ?? refuse(checked)
        if (!(yield* adoptSpent(payment, scheme, checked.payer))) return refuse(spentElsewhere(checked))
        return (yield* answerKnown(payment, scheme, startedAt, false)) ?? busy()
      }
      const report = yield* Deferred.make<Started>()
      yield* FiberSet.run(
        work,
        settleInBackground(payment, scheme, checked, startedAt, report).pipe(
          Effect.provideContext(services)
        ) as Effect.Effect<void>
      )
      // The work goes on by itself; a request that hears nothing of it in time tries again and finds what came of it.
      const left = Math.max(0, startedAt + Duration.toMillis(limits.settleTimeout) - (yield* Clock.currentTimeMillis))
      const started = Option.getOrElse(yield* Effect.timeoutOption(Deferred.await(report), left), (): Started => ({
        _tag: "Answer",
        answer: busy(checked.payer)
      }))
      switch (started._tag) {
        case "Recorded":
          return yield* awaitOutcome(started.id, started.innerHash, checked.payer, startedAt, true)
        case "Answer":
          return started.answer
        case "Known":
          return (yield* answerKnown(payment, scheme, startedAt, true)) ?? busy(checked.payer)
      }
    })

    const settle = Effect.fn("Facilitator.settle")(
      function* (payment: Payment) {
        const scheme = schemeOf(payment)
        if (Option.isNone(scheme)) return refuse(noScheme)
        const startedAt = yield* Clock.currentTimeMillis
        const flight = `${payment.requirements.network} ${payment.fingerprint}`
        if (inFlight.has(flight)) {
          return (yield* answerTwin(payment, scheme.value)) ?? busy()
        }
        inFlight.add(flight)
        return yield* settleOnce(payment, scheme.value, startedAt).pipe(
          Effect.ensuring(Effect.sync(() => inFlight.delete(flight)))
        )
      },
      (effect) => Effect.catch(effect, (error) => Effect.as(logFault(error), faultAnswer(error)))
    )

    /** The answer to a request whose twin is being settled in this process right now: pending once it is recorded. */
    const answerTwin = Effect.fnUntraced(function* (payment: Payment, scheme: Scheme) {
      const found = known(payment, yield* settlements.find(findQuery(payment, scheme)))
      if (found._tag === "New") return undefined
      // One that ended while this request looked was given to its twin; the success is for later.
      if (found._tag === "Answer" && found.answer._tag === "Settled")
        return { ...found.answer, _tag: "Pending" } as SettleAnswer
      if (found._tag === "Answer") return found.answer
      return { _tag: "Pending", payer: found.record.payer, transaction: found.record.innerHash } as SettleAnswer
    })

    return Facilitator.of({
      verify,
      settle,
      lookup: (principal, by) =>
        Effect.matchEffect(settlements.lookup(principal.id, by), {
          onFailure: (error) => Effect.as(logFault(error), Option.none()),
          onSuccess: (records) => Effect.succeedSome(records)
        })
    })
  })
)
