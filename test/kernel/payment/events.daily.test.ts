// Payments that were left pending, followed to their end over server-sent events.
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { describe } from "vitest"
import { databaseKinds } from "../../support/databases.ts"
import { openEvents, type ServerEvent } from "../../support/eventStream.ts"
import { eventually } from "../../support/eventually.ts"
import { type Answer, type Facilitator, startFacilitator } from "../../support/facilitator.ts"

const keys = { shop: "shop-secret-0123456789", other: "other-secret-0123456789" }
const environment = { FACILITATOR_API_KEYS: `shop:${keys.shop},other:${keys.other}` }
const bearer = (key: keyof typeof keys) => ({ authorization: `Bearer ${keys[key]}` })
const plugins = "plugins=[ledger-local,x402-exact]"

const positionOf = ({ id }: ServerEvent) => Number(id.split("-")[0])

const types = (events: ReadonlyArray<ServerEvent>) => events.map(({ event }) => event)

const start = (set: ReadonlyArray<string> = [], database: "pglite" | "postgres" = "pglite") =>
  startFacilitator({
    database,
    environment,
    channels: 4,
    closeMillis: 500,
    set: [plugins, "limits.settle_timeout_ms=2000", ...set]
  })

const seller = Effect.fnUntraced(function* (facilitator: Facilitator) {
  const payer = yield* facilitator.account()
  const payTo = (yield* facilitator.account()).publicKey()
  return (key: keyof typeof keys, isEnough = ({ json }: Answer): boolean => json.success) =>
    Effect.flatMap(facilitator.payment({ payer, payTo, amount: 10_000n, maxTimeoutSeconds: 300 }), ({ body }) =>
      eventually(facilitator.settle(body, bearer(key)), isEnough)
    )
})

describe.each(databaseKinds)("a stream of settlements on %s", (database) => {
  it.live(
    "streams a seller its own settlements' outcomes and resumes from a cursor [S326]",
    () =>
      Effect.gen(function* () {
        // The heartbeat is long, so a missing notification is not hidden by the next one.
        const facilitator = yield* start(["events.heartbeat_ms=300000"], database)
        const settle = yield* seller(facilitator)
        const url = `${facilitator.url}/settlements/events`
        const other = yield* openEvents(url, bearer("other"))
        yield* facilitator.ledger.setFaults([{ drops: () => true }])
        const pending = yield* settle("shop", ({ status }) => status !== 503)
        expect(pending.json.success).toBe(false)
        const hash = pending.json.transaction
        expect(hash).toMatch(/^[0-9a-f]{64}$/)

        // A client that connects a little later has missed nothing.
        const first = yield* openEvents(url, bearer("shop"))
        expect(first.status).toBe(200)
        expect(first.headers.get("content-type")).toContain("text/event-stream")
        expect(first.headers.get("cache-control")).toContain("no-cache")
        const [recorded] = yield* first.until(({ length }) => length === 1)
        expect(recorded).toMatchObject({ event: "settlement.recorded", data: { transaction: hash, status: "unknown" } })
        yield* first.close

        // It ends while no client listens.
        yield* facilitator.ledger.setFaults([])
        const asked = facilitator.ask(`/settlements?hash=${hash}`, { headers: bearer("shop") })
        while ((yield* asked).json.items?.[0]?.status !== "success") yield* Effect.sleep("50 millis")
        const second = yield* openEvents(url, { ...bearer("shop"), "last-event-id": recorded!.id })
        const [settled] = yield* second.until(({ length }) => length >= 1)
        expect(settled).toMatchObject({ event: "settlement.settled", data: (yield* asked).json.items[0] })

        // And while a client does.
        yield* settle("shop")
        yield* second.until(({ length }) => length === 3)
        expect(types(second.events)).toEqual(["settlement.settled", "settlement.recorded", "settlement.settled"])
        expect(positionOf(second.events[2]!)).toBeGreaterThan(positionOf(second.events[1]!))
        const after = yield* openEvents(`${url}?after=${second.events[1]!.id}`, bearer("shop"))
        expect(types(yield* after.until(({ length }) => length === 1))).toEqual(["settlement.settled"])
        // One of a journal that was since restored.
        const ahead = yield* openEvents(url, { ...bearer("shop"), "last-event-id": "999999999999" })
        yield* ahead.until(({ length }) => length === 4)

        yield* settle("other")
        yield* other.until(({ length }) => length === 2)
        expect(new Set(other.events.map(({ data }) => data.transaction)).has(hash)).toBe(false)
        expect(second.events).toHaveLength(3)
      }).pipe(Effect.scoped),
    240_000
  )
})

describe("streams of settlements", () => {
  it.live(
    "refuses event streams without a key, with a bad cursor, or beyond capacity",
    () =>
      Effect.gen(function* () {
        const facilitator = yield* start(["events.streams_per_key_max=2", "events.streams_max=3"])
        const url = `${facilitator.url}/settlements/events`
        const refused = yield* openEvents(url)
        expect([refused.status, refused.body]).toEqual([401, { error: "unauthorized" }])
        for (const cursor of ["-1", "x", "9".repeat(19), "1".repeat(30)]) {
          const { body, status } = yield* openEvents(url, { ...bearer("shop"), "last-event-id": cursor })
          expect([status, body.error]).toEqual([400, "invalid_cursor"])
        }
        const open = (key: keyof typeof keys) => openEvents(url, bearer(key))
        const follows = Effect.fnUntraced(function* (key: keyof typeof keys) {
          const stream = yield* open(key)
          while (stream.comments.length === 0) yield* Effect.sleep("5 millis")
          return stream
        })
        const [first] = [yield* follows("shop"), yield* follows("shop")]
        const third = yield* open("shop")
        expect([third.status, third.body.error]).toEqual([429, "too_many_streams"])
        expect(third.headers.get("retry-after")).toBe("5")
        yield* follows("other")
        expect((yield* open("other")).status).toBe(429)
        yield* first.close
        let again = yield* open("shop")
        for (; again.status !== 200; again = yield* open("shop")) yield* Effect.sleep("10 millis")
        // The stream that stayed open still counts.
        expect((yield* open("shop")).status).toBe(429)
      }).pipe(Effect.scoped),
    240_000
  )

  it.live(
    "event streams without keys are loopback-only; replay is limited to the retention",
    () =>
      Effect.gen(function* () {
        const facilitator = yield* startFacilitator({ channels: 2, closeMillis: 300, set: [plugins] })
        const url = `${facilitator.url}/settlements/events`
        const behindProxy = yield* openEvents(url, { "x-forwarded-for": "203.0.113.9" })
        expect([behindProxy.status, behindProxy.body.error]).toEqual([403, "forbidden"])
        const payer = yield* facilitator.account()
        const payTo = (yield* facilitator.account()).publicKey()
        for (let times = 0; times < 2; times++) {
          const { body } = yield* facilitator.payment({ payer, payTo, amount: 10_000n })
          expect((yield* facilitator.settle(body)).json).toMatchObject({ success: true })
        }
        const all = yield* openEvents(url)
        const reported = [...(yield* all.until(({ length }) => length === 4))]
        // Long ago, and enough of them that the way back takes several polls.
        yield* facilitator.sql`update kernel_facts set at = at - interval '16 minutes'
          where position <= ${positionOf(reported[1]!)}`
        const late = yield* openEvents(url)
        expect((yield* late.until(({ length }) => length === 2)).map(({ id }) => id)).toEqual(
          reported.slice(2).map(({ id }) => id)
        )
        yield* facilitator.sql`insert into kernel_facts (type, version, subject, principal, data)
          select type, version, subject, principal, data from kernel_facts, generate_series(1, 1500)
          where position = ${positionOf(reported[3]!)}`
        const many = yield* openEvents(url)
        expect((yield* many.until(({ length }) => length >= 1502))[0]!.id).toBe(reported[2]!.id)
      }).pipe(Effect.scoped),
    240_000
  )

  it.live(
    "event streams send heartbeats and end on shutdown",
    () =>
      Effect.gen(function* () {
        const facilitator = yield* start(["events.heartbeat_ms=100"])
        const stream = yield* openEvents(`${facilitator.url}/settlements/events`, bearer("shop"))
        while (stream.comments.length < 4) yield* Effect.sleep("20 millis")
        expect(stream.comments.slice(0, 4)).toEqual(["follows", "heartbeat", "heartbeat", "heartbeat"])
        expect(stream.hasEnded()).toBe(false)
        // A stream that the listener waited for would be cut off with it.
        yield* facilitator.stop.pipe(Effect.timeout("100 seconds"))
        yield* stream.ended
        expect(stream.wasCutOff()).toBe(false)
      }).pipe(Effect.scoped),
    240_000
  )
})
