// What is written behind the payments: when resources were last seen, how often they were paid and by whom, and what
// came of observations. It gathers in memory, an actor stores it in batches within a second; a crash loses at most that
// second, and a database that is away loses what is over the bounds, counted. A settled payment counts once, by its
// transaction, whichever replica saw it. No payment waits for any of it.
import { Clock, Context, Effect, Layer } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { inTransaction } from "../../../kernel/database/Database.ts"
import { Facts } from "../../../kernel/Facts.ts"
import { Crypto } from "../../../kernel/platform/Crypto.ts"
import { Config } from "../Config.ts"
import { Changes } from "./Changes.ts"
import { type Batch, Gathered, type ObservedDeclaration, type Sale } from "./gatherSightings.ts"
import { lockActivity, raiseSold, storeObservations, storeSales, storeTouches, tellSales } from "./storeSightings.ts"

export class Sightings extends Context.Service<
  Sightings,
  {
    /** A listed resource was observed, with its sale when the payment is settled. Never waits. */
    readonly touch: (id: bigint, at: Date, sale: Sale | undefined) => Effect.Effect<void>
    readonly observe: (observed: ObservedDeclaration) => Effect.Effect<void>
    /** Stores what has gathered. What fails is kept for the next time. */
    readonly flush: Effect.Effect<void, SqlError.SqlError>
    /** Whether nothing has gathered. */
    readonly isEmpty: Effect.Effect<boolean>
    /** Calls back when something gathers after nothing had. */
    readonly onFirst: (heard: Effect.Effect<void>) => Effect.Effect<void>
  }
>()("tollkeeper/catalog/Sightings") {
  static readonly layer = Layer.effect(
    Sightings,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const facts = yield* Facts
      const { dustBelow } = yield* Config
      const { listed } = yield* Changes
      const gathered = new Gathered(yield* Crypto)

      const store = Effect.fnUntraced(function* (batch: Batch, now: Date) {
        const { observations, sales, touches } = batch
        yield* lockActivity(sql, batch)
        if (touches.size > 0) yield* storeTouches(sql, facts, touches, now)
        let isRaised = false
        if (sales.size > 0) {
          yield* storeSales(sql, sales, { dustBelow, now })
          isRaised = yield* raiseSold(sql, facts, sales, now)
          yield* tellSales(sql, facts, sales)
        }
        const fresh = observations.size > 0 ? yield* storeObservations(sql, observations) : []
        return { fresh, isRaised }
      })

      const flush = Effect.gen(function* () {
        const now = new Date(yield* Clock.currentTimeMillis)
        const batch = gathered.take()
        if (batch === undefined) return
        const { fresh, isRaised } = yield* inTransaction(store(batch, now)).pipe(
          Effect.provideService(SqlClient.SqlClient, sql),
          Effect.onError(() => Effect.sync(() => gathered.putBack(batch)))
        )
        if (isRaised) yield* listed
        for (const digest of fresh) gathered.countRow(batch.observations.get(digest)!.payer)
      }).pipe(Effect.withSpan("catalog.flush"))

      let first: Effect.Effect<void> = Effect.void
      const gather = (one: () => Effect.Effect<void>) =>
        Effect.suspend(() => (gathered.isEmpty ? Effect.andThen(Effect.suspend(one), first) : one()))

      return Sightings.of({
        touch: (id, at, sale) => gather(() => gathered.touch(id, at, sale)),
        observe: (observed) => gather(() => gathered.observe(observed)),
        flush,
        isEmpty: Effect.sync(() => gathered.isEmpty),
        onFirst: (heard) => Effect.sync(() => void (first = heard))
      })
    })
  )
}
