// A promoted standby that lost the primary's last commits, under load, with real streaming replication. Channels are
// reread, no payment fails because of a stale sequence, a lost payment is returned to its owner only, streams receive
// every fact, and the books agree with the ledger.
import { expect, it } from "@effect/vitest"
import { Keypair } from "@stellar/stellar-sdk"
import { Effect, Layer, Redacted } from "effect"
import { describe } from "vitest"
import { compare } from "../../kernel/audit/compare.ts"
import { isHarmlessAfterRestore } from "../support/harmlessAfterRestore.ts"
import { DatabaseSource } from "../../kernel/database/DatabaseSource.ts"
import { Observer, readJournal } from "../chaos/observers.ts"
import { databaseKinds } from "../support/databases.ts"
import { openEvents } from "../support/eventStream.ts"
import { eventually } from "../support/eventually.ts"
import { standbyOf } from "../support/failover.ts"
import { type Facilitator, startFacilitator } from "../support/facilitator.ts"
import { canReplicate, startOwnPostgres } from "../support/postgres.ts"
import { readBooks } from "../support/readBooks.ts"
import { startRelay } from "../support/relay.ts"

const isPossible = databaseKinds.includes("postgres") && canReplicate()
const keys = { shop: "shop-secret-0123456789", other: "other-secret-0123456789" }
const bearer = (key: keyof typeof keys) => ({ authorization: `Bearer ${keys[key]}` })
const sourceOf = (url: string) =>
  Layer.succeed(DatabaseSource, { open: Effect.succeed({ kind: "server" as const, url: Redacted.make(url) }) })
const portOf = (url: string): number => Number(new URL(url).port)
const isEmpty = ({ length }: { readonly length: number }) => length === 0

describe.skipIf(!isPossible)("a standby that was promoted without the last commits", () => {
  it.live(
    "a promoted standby without the last commits loses no payment or event",
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
        // A stream makes the facts get their positions, which the standby should have too.
        const stream = yield* openEvents(`${before.url}/settlements/events`, bearer("shop"))
        for (let n = 0; n < 3; n++) yield* settled(before, yield* make(before))
        yield* stream.until(({ length }) => length === 6)

        const standby = yield* standbyOf(primary.url, 60)
        // From here on the standby receives nothing, so later commits are lost.
        yield* standby.cutOff
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
        yield* standby.promote

        const after = yield* startFacilitator({ ...shared, database: sourceOf(standby.server.url) })
        const fresh = yield* Effect.forEach(Array.from({ length: 6 }), () => make(after))
        yield* Effect.forEach(fresh, (body) => settled(after, body), { concurrency: 3 })
        // Other callers are refused, with the hash; the owner receives the success.
        for (const { body, transaction } of lost.slice(0, 2)) {
          const stranger = yield* after.settle(body as never, bearer("other"))
          expect(stranger.json).toMatchObject({ success: false, transaction })
          expect(stranger.json.errorReason).toContain("already_settled")
          expect((yield* settled(after, body)).json.transaction).toBe(transaction)
        }
        const states = yield* after.sql<{ state: string; count: bigint }>`
          select state, count(*) as count from kernel_settlements group by state`
        expect(states).toEqual([{ state: "settled", count: 3n + 6n + 2n }])

        // A client with an earlier cursor resumes at the last common event and is notified of that.
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

  it.live(
    "an open stream receives every fact across it, and so does an old cursor",
    () =>
      Effect.gen(function* () {
        const primary = yield* Effect.acquireRelease(
          Effect.promise(async () => (await startOwnPostgres(60))!),
          ({ stop }) => Effect.promise(stop)
        )
        const address = yield* Effect.acquireRelease(
          Effect.promise(() => startRelay(portOf(primary.url))),
          ({ close }) => Effect.promise(close)
        )
        // One process throughout: it reconnects, as behind a floating address.
        const facilitator = yield* startFacilitator({
          closeMillis: 500,
          channels: 3,
          environment: { FACILITATOR_API_KEYS: `shop:${keys.shop}` },
          database: sourceOf(primary.url.replace(String(portOf(primary.url)), String(address.port))),
          // A stream that is not woken sends no query to an unavailable database.
          set: ["database.max_connections=8", "events.heartbeat_ms=300000"]
        })
        const payer = yield* facilitator.account()
        const payTo = (yield* facilitator.account()).publicKey()
        const make = Effect.map(
          facilitator.payment({ payer, payTo, amount: 1_000n, maxTimeoutSeconds: 300 }),
          ({ body }) => body
        )
        const settle = (body: unknown) =>
          Effect.map(
            eventually(facilitator.settle(body as never, bearer("shop")), ({ json }) => json.success === true),
            ({ json }) => json.transaction as string
          )
        const [observer, url] = [new Observer(), `${facilitator.url}/settlements/events`]
        yield* Effect.forkScoped(
          observer.follow(
            () => facilitator.url,
            bearer("shop"),
            () => false
          )
        )
        const kept = yield* Effect.forEach([1, 2, 3], () => Effect.flatMap(make, settle))
        yield* eventually(Effect.sync(() => observer.counts.events >= 6))
        const standby = yield* standbyOf(primary.url, 60)
        yield* standby.cutOff
        const lost = yield* Effect.forEach([1, 2, 3, 4], () =>
          Effect.flatMap(make, (body) => Effect.map(settle(body), (transaction) => ({ body, transaction })))
        )
        yield* eventually(Effect.sync(() => observer.counts.events >= 14))
        const cursor = observer.last!
        address.cut()
        yield* Effect.promise(primary.stop).pipe(Effect.timeoutOption("20 seconds"))
        yield* standby.promote
        address.connectTo(portOf(standby.server.url))

        // The journal grows past the lost part, and only then the owner asks for it.
        const fresh = yield* Effect.forEach([1, 2, 3, 4, 5], () => Effect.flatMap(make, settle))
        // Their successes were delivered; the process still has this in memory although the database lost it.
        for (const { body, transaction } of lost)
          yield* eventually(
            facilitator.settle(body as never, bearer("shop")),
            ({ json }) => json.errorReason === "settle_ledger_already_settled" && json.transaction === transaction
          )
        const transactions = [...kept, ...fresh, ...lost.map(({ transaction }) => transaction)]
        const length = 2 * transactions.length
        const journal = yield* eventually(readJournal(standby.server.url), (facts) => facts.length === length)
        expect(
          yield* eventually(
            Effect.sync(() => observer.faults(journal, transactions)),
            isEmpty
          )
        ).toEqual([])
        // A stream that was woken while no database could be reached ends, and its client resumes.
        expect(observer.counts.streams).toBeLessThanOrEqual(2)
        expect(observer.counts.rewound).toBe(1)

        const again = yield* openEvents(url, { ...bearer("shop"), "last-event-id": cursor })
        yield* again.until(({ length }) => length === 1 + 2 * 9)
        expect(again.events[0]).toMatchObject({ event: "journal.rewound", data: { from: cursor } })
        const resumed = again.events.filter(({ event }) => event === "settlement.settled")
        expect(resumed.map(({ data }) => data.transaction).sort()).toEqual(transactions.slice(3).sort())
      }).pipe(Effect.scoped),
    240_000
  )
})
