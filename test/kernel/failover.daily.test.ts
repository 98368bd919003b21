// A promoted standby that lost the primary's last commits, under load: real streaming replication. Channels are read
// anew, no payment fails for a stale number, what was lost is its owner's alone, streams hear every fact, and the books
// agree with the ledger.
import { expect, it } from "@effect/vitest"
import { PgClient } from "@effect/sql-pg"
import { Keypair } from "@stellar/stellar-sdk"
import { Effect, Layer, Redacted } from "effect"
import { SqlClient } from "effect/sql"
import { describe } from "vitest"
import { compare } from "../../kernel/audit/compare.ts"
import { isHarmlessAfterRestore } from "../../kernel/audit/restored.ts"
import { DatabaseSource } from "../../kernel/database/DatabaseSource.ts"
import { databaseKinds } from "../support/databases.ts"
import { openEvents } from "../support/eventStream.ts"
import { eventually } from "../support/eventually.ts"
import { type Facilitator, startFacilitator } from "../support/facilitator.ts"
import { canReplicate, startOwnPostgres, startReplica } from "../support/postgres.ts"
import { readBooks } from "../support/readBooks.ts"

const isPossible = databaseKinds.includes("postgres") && canReplicate()
const keys = { shop: "shop-secret-0123456789", other: "other-secret-0123456789" }
const bearer = (key: keyof typeof keys) => ({ authorization: `Bearer ${keys[key]}` })
const sourceOf = (url: string) =>
  Layer.succeed(DatabaseSource, { open: Effect.succeed({ kind: "server" as const, url: Redacted.make(url) }) })
const on = <A, E>(url: string, use: (sql: SqlClient.SqlClient) => Effect.Effect<A, E>) =>
  Effect.scoped(
    Effect.flatMap(SqlClient.SqlClient, use).pipe(
      Effect.provide(PgClient.layer({ url: Redacted.make(url), maxConnections: 1 }))
    )
    // A standby cancels what its recovery conflicts with.
  ).pipe(Effect.retry({ times: 5 }))

describe.skipIf(!isPossible)("a standby that was promoted without the last commits", () => {
  it.live(
    "goes on: no payment fails for its channel, what was lost goes to its owner alone, streams miss nothing",
    () =>
      Effect.gen(function* () {
        const primary = yield* Effect.acquireRelease(
          Effect.promise(async () => (await startOwnPostgres(60))!),
          ({ stop }) => Effect.promise(stop)
        )
        const world = yield* startFacilitator({ channels: 1, closeMillis: 500 })
        const shared = {
          ledgerUrl: world.ledgerUrl,
          channels: 3,
          environment: {
            SPONSOR_SECRET: Keypair.random().secret(),
            FACILITATOR_API_KEYS: `shop:${keys.shop},other:${keys.other}`
          },
          set: ["plugins=[x402-exact]", "database.max_connections=8"]
        }
        const before = yield* startFacilitator({ ...shared, database: sourceOf(primary.url) })
        const payer = yield* world.account()
        const payTo = (yield* world.account()).publicKey()
        const make = (at: Facilitator) =>
          Effect.map(at.payment({ payer, payTo, amount: 1_000n, maxTimeoutSeconds: 300 }), ({ body }) => body)
        const settled = (at: Facilitator, body: unknown) =>
          eventually(at.settle(body as never, bearer("shop")), ({ json }) => json.success === true)
        // A stream has facts given their positions, which the standby is to have too.
        const stream = yield* openEvents(`${before.url}/settlements/events`, bearer("shop"))
        for (let n = 0; n < 3; n++) yield* settled(before, yield* make(before))
        yield* stream.until(({ length }) => length === 6)

        const standby = yield* Effect.promise(() => startReplica(primary.url, 60))
        yield* Effect.addFinalizer(() => Effect.promise(standby.stop))
        yield* eventually(
          on(primary.url, (sql) => sql<{ state: string }>`select state from pg_stat_replication`),
          (rows) => rows.some(({ state }) => state === "streaming")
        )
        // From here the standby gets nothing more: what is committed now is lost.
        yield* on(standby.url, (sql) => sql`alter system set primary_conninfo = ''`.unprepared)
        yield* on(standby.url, (sql) => sql`select pg_reload_conf()`)
        yield* eventually(
          on(primary.url, (sql) => sql`select 1 from pg_stat_replication`),
          ({ length }) => length === 0
        )
        const lost = yield* Effect.forEach([1, 2, 3, 4, 5, 6], () =>
          Effect.gen(function* () {
            const body = yield* make(before)
            return { body, transaction: (yield* settled(before, body)).json.transaction as string }
          })
        )
        yield* stream.until(({ length }) => length >= 18)
        const cursor = stream.events.at(-1)!.id
        yield* before.stop
        yield* Effect.promise(primary.stop).pipe(Effect.timeoutOption("20 seconds"))
        yield* on(standby.url, (sql) => sql`select pg_promote(true, 60)`)

        const after = yield* startFacilitator({ ...shared, database: sourceOf(standby.url) })
        const fresh = yield* Effect.forEach(Array.from({ length: 6 }), () => make(after))
        yield* Effect.forEach(fresh, (body) => settled(after, body), { concurrency: 3 })
        // Whoever else asks is refused, with the hash; its owner is given it.
        for (const { body, transaction } of lost.slice(0, 2)) {
          const stranger = yield* after.settle(body as never, bearer("other"))
          expect(stranger.json).toMatchObject({ success: false, transaction })
          expect(stranger.json.errorReason).toContain("already_settled")
          expect((yield* settled(after, body)).json.transaction).toBe(transaction)
        }
        const states = yield* after.sql<{ state: string; count: bigint }>`
          select state, count(*) as count from kernel_settlements group by state`
        expect(states).toEqual([{ state: "settled", count: 3n + 6n + 2n }])

        // A client that comes back with a cursor of before resumes at the last event in common, and is told so.
        const again = yield* openEvents(`${after.url}/settlements/events`, {
          ...bearer("shop"),
          "last-event-id": cursor
        })
        yield* again.until(({ length }) => length >= 1 + 2 * 8)
        expect(again.events[0]).toMatchObject({
          event: "journal.rewound",
          data: { from: cursor, to: expect.stringMatching(/^6-/) }
        })
        expect(again.events.slice(1).filter(({ event }) => event === "settlement.settled")).toHaveLength(8)
        const { claims, view } = yield* readBooks(after)
        const rest = compare(claims, view).mismatches.filter(({ rule }) => !isHarmlessAfterRestore(rule))
        expect(rest).toEqual([])
      }).pipe(Effect.scoped),
    240_000
  )
})
