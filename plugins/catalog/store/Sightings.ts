// Written behind the payments: when resources were last seen, how often they were paid and by which payers, and the
// outcomes of observations. They are batched in memory; an actor stores them within a second, or every ten seconds if
// there are only last-seen times. A crash loses at most that. While the database is unavailable, entries beyond the
// bounds are dropped and counted. A settled payment counts once, by its transaction, whichever replica saw it. No
// payment waits for any of it.
import { measure } from "../../../kernel/telemetry/Measure.ts"
import { metrics } from "../metrics.ts"
import { Clock, Context, Duration, Effect, Layer } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { inTransaction } from "../../../kernel/database/Database.ts"
import { field, rootCause } from "../../../kernel/database/errorMessage.ts"
import { Facts } from "../../../kernel/facts/Facts.ts"
import { Crypto } from "../../../kernel/platform/Crypto.ts"
import { trustedClock } from "../../../kernel/time/trustedTime.ts"
import { Config } from "../Config.ts"
import { Changes } from "./Changes.ts"
import { Contenders } from "./Contenders.ts"
import { makeIsFull } from "./FreeSpace.ts"
import { type Batch, SightingsBatch, type ObservedDeclaration, type Sale } from "./SightingsBatch.ts"
import { storeBatch } from "./storeSightings.ts"

/** Delay from the first sale or observation of a batch to its write. */
export const gather = Duration.seconds(1)
/** Write interval if only last-seen times are pending. */
const beat = Duration.seconds(10)

/**
 * SQLSTATEs of class 22: the database refuses such a value on every retry. Observations contain strangers' text, which
 * must not keep sales and sightings from being stored.
 */
const isRefusedValue = (error: SqlError.SqlError): boolean =>
  String(field(rootCause(error), "code") ?? "").startsWith("22")

/** Without the observations of payments that cost nothing. */
const withoutFree = (batch: Batch): Batch => ({
  ...batch,
  observations: new Map([...batch.observations].filter(([, { stage }]) => stage === "settled"))
})

export class Sightings extends Context.Service<
  Sightings,
  {
    /** A listed resource was observed, with its sale when the payment is settled. Never waits. */
    readonly touch: (id: bigint, at: Date, sale: Sale | undefined) => Effect.Effect<void>
    /** Records immediately that it was seen without a sale. */
    readonly seen: (id: bigint, at: Date) => void
    /** A payment was settled to a recipient that the listing does not name: evidence for its claim. */
    readonly contend: (id: bigint, at: Date, sale: Sale) => Effect.Effect<void>
    readonly observe: (observed: ObservedDeclaration) => Effect.Effect<void>
    /** Stores the batch. Entries that fail are kept for the next time. */
    readonly flush: Effect.Effect<void, SqlError.SqlError>
    /** Until something is due. */
    readonly dueIn: Effect.Effect<Duration.Duration>
    /** Calls back when the first sale or observation of a batch arrives. */
    readonly onFirst: (received: Effect.Effect<void>) => Effect.Effect<void>
    /** Calls back with the states of the touched resources, by their ids, each time that a batch is stored. */
    readonly onStates: (
      listener: (stateHashes: ReadonlyMap<bigint, string>, now: number) => void
    ) => Effect.Effect<void>
  }
>()("tollkeeper/catalog/Sightings") {
  static readonly layer = Layer.effect(
    Sightings,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const facts = yield* Facts
      const config = yield* Config
      const { asked, listed, moved } = yield* Changes
      const { contest } = yield* Contenders
      const pending = new SightingsBatch(yield* Crypto)
      // So that an alert sees the first.
      yield* measure(metrics.dropped, 0)
      const trusted = yield* trustedClock
      const isFull = yield* makeIsFull(sql, config.freeBytesMax)

      let first: Effect.Effect<void> = Effect.void
      let report: (stateHashes: ReadonlyMap<bigint, string>, now: number) => void = () => {}

      const flush = Effect.gen(function* () {
        const now = new Date(yield* trusted)
        const taken = pending.take(now)
        if (taken === undefined) return
        const batch = (yield* Effect.orElseSucceed(isFull, () => false)) ? withoutFree(taken) : taken
        const store = (stored: Batch) =>
          Effect.provideService(inTransaction(storeBatch(sql, facts, stored, config, now)), SqlClient.SqlClient, sql)
        const { fresh, isAsked, isRaised, isRevived, stateHashes } = yield* store(batch).pipe(
          Effect.catchIf(isRefusedValue, (error) =>
            Effect.andThen(
              Effect.logError("observations of declarations were dropped: the database refuses a value of them", error),
              store({ ...batch, observations: new Map() })
            )
          ),
          Effect.onError(() => Effect.sync(() => pending.putBack(batch)))
        )
        report(stateHashes, yield* Clock.currentTimeMillis)
        if (isRaised) yield* listed
        if (isAsked) yield* asked
        const sold = [...new Set([...batch.sales.values()].map(({ resourceId }) => resourceId))]
        const isContested = sold.length > 0 && (yield* contest(sold, now))
        if (isRevived || isContested) yield* moved
        for (const digest of fresh) pending.countRow(batch.observations.get(digest)!.payer)
      }).pipe(Effect.withSpan("catalog.flush"))

      const adding = (one: () => Effect.Effect<void>) =>
        Effect.suspend(() => {
          const { isPressing } = pending
          const counted = one()
          return !isPressing && pending.isPressing ? Effect.andThen(counted, first) : counted
        })

      return Sightings.of({
        touch: (id, at, sale) => adding(() => pending.touch(id, at, sale)),
        seen: (id, at) => pending.see(id, at),
        contend: (id, at, sale) => adding(() => pending.contend(id, at, sale)),
        observe: (observed) => adding(() => pending.observe(observed)),
        flush,
        dueIn: Effect.sync(() => (pending.isPressing ? gather : beat)),
        onFirst: (listener) => Effect.sync(() => void (first = listener)),
        onStates: (listener) => Effect.sync(() => void (report = listener))
      })
    })
  ).pipe(Layer.provide(Contenders.layer))
}
