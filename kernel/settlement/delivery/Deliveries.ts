// The delivery of successes to callers (rules 2). A success is claimed in the database for one request. It is delivered
// when that request's answer has left through its socket. Confirmations are written in batches, and no caller waits for
// them. A request that ends without sending its success (the client disconnected, the time ran out, the claim's answer
// was lost) releases it; so does a request with a socket that closes before the answer has left. A claim is repeated
// under its number, so a lost answer of the database has no effect on its caller. A success that this process is
// sending when it dies becomes undelivered again (`ThisProcess.ts`): a success may be sent twice after a crash, and
// only then.
import { Context, Duration, Effect, Exit, Layer, Schedule } from "effect"
import type { HttpServerRequest } from "effect/http"
import type { SqlError } from "effect/sql"
import { reconciler } from "../../actor/Actor.ts"
import { type AwaitResponseEnd, ResponseEnd } from "../../platform/ResponseEnd.ts"
import { monotonicMillis } from "../../time/monotonicMillis.ts"
import { reached } from "../CrashPoints.ts"
import {
  type DeliveryClaim,
  type DeliveryEnd,
  type KnownDelivery,
  type SettlementRecord,
  Settlements
} from "../store/Settlements.ts"
import { ThisProcess } from "./ThisProcess.ts"

/** Retries of a claim with a lost answer, within the time that a request reserves for it (`waitForOutcome.ts`). */
const claimRetry = { times: 3, schedule: Schedule.spaced("250 millis") }
/** Ends that arrive within this time share one statement. */
const gatherEnds = Duration.millis(100)
const endsMax = 500
/** Retry interval, with and without pending ends. */
const retryInterval = Duration.seconds(1)
const idleInterval = Duration.minutes(1)
/** A claim with a lost answer may be executed even after its release: so it is released again after this time. */
const lateClaimMillis = 30_000
/** Maximum number of deliveries kept in case the database loses its last commits. At most about 3 MB. */
const knownMax = 10_000
/** Maximum delay of the process's end for the last ends. */
const leaveTimeout = Duration.seconds(2)

type Claimed = Pick<SettlementRecord, "id" | "network" | "scheme" | "authorizationKey" | "principal">

type Request = HttpServerRequest.HttpServerRequest

interface GivenDelivery extends DeliveryClaim {
  readonly known: KnownDelivery
}

/** The successes that one request has claimed, until it ends. */
export class RequestDelivery {
  readonly given: Array<GivenDelivery> = []
  /** True if its answer is the success. */
  isAnswered = false
  isOver = false
}

/** The delivery of the current fiber's request; without one, a claimed success counts as delivered. */
export const CurrentDelivery = Context.Reference<RequestDelivery | undefined>("tollkeeper/settlement/CurrentDelivery", {
  defaultValue: () => undefined
})

interface DueEnd {
  readonly end: DeliveryEnd
  readonly dueAt: number
}

export class Deliveries extends Context.Service<
  Deliveries,
  {
    /**
     * Claims the undelivered success of a settlement for this request, for its owner. `key`: the digest of the
     * request's `Idempotency-Key`. False if another caller has it.
     */
    readonly claim: (settlement: Claimed, key: string | undefined) => Effect.Effect<boolean, SqlError.SqlError>
    /**
     * The record, updated by events in this process that its row does not show yet: an answer that has left is
     * delivered.
     */
    readonly asOfNow: (record: SettlementRecord) => SettlementRecord
    /**
     * Whether this request may send its success now: no other process can have counted this one as dead. Always true if
     * this request has no claim.
     */
    readonly mayAnswer: (delivery: RequestDelivery) => Effect.Effect<boolean>
    /** The request's handler has ended: if the answer is the success, it is watched until it has left. */
    readonly finish: (delivery: RequestDelivery, request: Request) => Effect.Effect<void>
  }
>()("tollkeeper/settlement/Deliveries") {
  static readonly layer = Layer.effect(
    Deliveries,
    Effect.gen(function* () {
      const self = yield* ThisProcess
      const scope = yield* Effect.scope
      const ends = yield* makeEnds
      const claim = yield* makeClaim(ends)
      const watch = (given: ReadonlyArray<GivenDelivery>, awaitEnd: AwaitResponseEnd, request: Request) =>
        awaitEnd(request, (hasLeft) => {
          for (const one of hasLeft ? given : []) ends.leave(one)
        }).pipe(
          Effect.tap((hasLeft) => (hasLeft ? reached("afterAnswer") : Effect.void)),
          Effect.flatMap((hasLeft) => Effect.forEach(given, (one) => ends.end(one, hasLeft), { discard: true }))
        )
      return Deliveries.of({
        claim,
        asOfNow: (record) =>
          record.delivery === "given" && ends.hasLeft(record.id) ? { ...record, delivery: "confirmed" } : record,
        mayAnswer: (delivery) => (delivery.given.length === 0 ? Effect.succeed(true) : self.isPresent),
        finish: Effect.fnUntraced(function* (delivery, request) {
          delivery.isOver = true
          const { given, isAnswered } = delivery
          if (given.length === 0) return
          if (!isAnswered) return yield* Effect.forEach(given, (one) => ends.end(one, false), { discard: true })
          yield* reached("beforeAnswer")
          yield* Effect.forkIn(watch(given, yield* ResponseEnd, request), scope, { startImmediately: true })
        })
      })
    })
  )
}

interface DeliveryEnds {
  readonly end: (given: GivenDelivery, hasLeft: boolean) => Effect.Effect<void>
  /** Releases a claim once more, since it may have been executed late. */
  readonly endAgain: (given: GivenDelivery) => Effect.Effect<void>
  /** The answer has left. */
  readonly leave: (given: GivenDelivery) => void
  readonly hasLeft: (id: string) => boolean
}

/** Claims successes, each time under a number that this process uses only once. */
const makeClaim = Effect.fnUntraced(function* ({ end, endAgain }: DeliveryEnds) {
  const settlements = yield* Settlements
  const self = yield* ThisProcess
  let claims = 0n

  const next = (
    { authorizationKey, id, network, principal, scheme }: Claimed,
    key: string | undefined
  ): GivenDelivery => ({
    id,
    process: self.id(),
    claim: (claims += 1n),
    known: { network, scheme, authorizationKey, principal, key }
  })
  /** Handles a claim when the database's answer arrives. */
  const keep = (delivery: RequestDelivery | undefined, given: GivenDelivery, exit: Exit.Exit<boolean, unknown>) => {
    if (Exit.isFailure(exit)) return Effect.andThen(end(given, false), endAgain(given))
    if (!exit.value) return Effect.void
    if (delivery === undefined) return end(given, true)
    if (delivery.isOver) return end(given, false)
    delivery.given.push(given)
    return Effect.void
  }

  return Effect.fnUntraced(function* (of: Claimed, key: string | undefined) {
    const delivery = yield* CurrentDelivery
    yield* self.renewIfStale
    const ask = (given: GivenDelivery) =>
      Effect.onExit(Effect.retry(settlements.claimDelivery(given, of.principal, key), claimRetry), (exit) =>
        keep(delivery, given, exit)
      )
    const first = next(of, key)
    let isGranted = yield* ask(first)
    // Without its row a process cannot claim, and the row may be lost with the database's last commits.
    if (!isGranted) yield* self.renew
    if (!isGranted && first.process !== self.id()) isGranted = yield* ask(next(of, key))
    if (isGranted) yield* reached("afterClaim")
    return isGranted
  })
})

/** Writes the ends of deliveries, and keeps them in case the database loses its last commits. */
const makeEnds = Effect.gen(function* () {
  const settlements = yield* Settlements
  const self = yield* ThisProcess
  const endings = new Set<DueEnd>()
  /**
   * Settlements with answers that have left. A row that was read before its confirmation was written does not show it
   * yet.
   */
  const left = new Set<string>()
  const delivered = new Map<string, KnownDelivery>()
  let mayBeLost = false

  const leave = ({ id, known }: GivenDelivery): void => {
    left.add(id)
    const [first] = left
    if (left.size > knownMax && first !== undefined) left.delete(first)
    const { authorizationKey, network, principal, scheme } = known
    delivered.set([network, scheme, authorizationKey, principal].join(" "), known)
    const [oldest] = delivered.keys()
    if (delivered.size > knownMax && oldest !== undefined) delivered.delete(oldest)
  }

  const writeDue = Effect.gen(function* () {
    const now = yield* monotonicMillis
    const due = [...endings].filter(({ dueAt }) => dueAt <= now).slice(0, endsMax)
    if (due.length === 0) return
    yield* settlements.endDeliveries(due.map(({ end }) => end))
    for (const ending of due) endings.delete(ending)
    yield* reached("afterConfirm")
  })
  const restoreLost = Effect.gen(function* () {
    if (!mayBeLost) return
    const all = [...delivered.values()]
    for (let at = 0; at < all.length; at += endsMax) yield* settlements.restoreDeliveries(all.slice(at, at + endsMax))
    mayBeLost = false
  })
  const turn = Effect.andThen(writeDue, restoreLost)

  yield* Effect.addFinalizer(() => Effect.ignore(Effect.timeout(writeDue, leaveTimeout)))
  const { wake } = yield* reconciler({
    id: "deliveries",
    every: Effect.sync(() => (endings.size === 0 && !mayBeLost ? idleInterval : retryInterval)),
    gather: gatherEnds,
    turn
  })
  yield* self.onServedAnew(
    Effect.suspend(() => {
      mayBeLost = true
      return wake
    })
  )
  const after = (millis: number) => (given: GivenDelivery, hasLeft: boolean) =>
    Effect.flatMap(monotonicMillis, (now) => {
      if (hasLeft) leave(given)
      endings.add({ end: { ...given, hasLeft }, dueAt: now + millis })
      return wake
    })
  const later = after(lateClaimMillis)
  const ends: DeliveryEnds = {
    end: after(0),
    endAgain: (given) => later(given, false),
    leave,
    hasLeft: (id) => left.has(id)
  }
  return ends
})
