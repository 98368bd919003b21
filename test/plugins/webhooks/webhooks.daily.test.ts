// Webhooks that notify sellers of how their payments ended: one payment is left pending while its receiver is down and
// its facilitator restarts.
import { runOperatorCommand } from "../../../runtime/operators.ts"
import { NodeServices } from "@effect/platform-node"
import { expect, it } from "@effect/vitest"
import { Clock, Context, Effect } from "effect"
import { createHmac } from "node:crypto"
import { describe } from "vitest"
import { databaseKinds, lasting } from "../../support/databases.ts"
import { type Answer, type Facilitator, startFacilitator } from "../../support/facilitator.ts"
import { eventually } from "../../support/eventually.ts"
import { freePort } from "../../support/freePort.ts"
import { skewedClock } from "../../support/skewedClock.ts"
import { type Event, startReceiver as startExample } from "../../../examples/webhook-receiver.ts"
import { CurrentPlugin } from "../../../kernel/contract/Contract.ts"
import { Deliveries } from "../../../plugins/webhooks/Deliveries.ts"
import { administration } from "../../../plugins/webhooks/plugin.ts"
import { readRetryAfter } from "../../../plugins/webhooks/Sender.ts"
import { startReceiver } from "./receiver.ts"
import { environment, key, otherKey, paying, quick, receivers, secret, start, startLedger } from "./shop.ts"

describe.each(databaseKinds)("webhooks on %s", (kind) => {
  it.live(
    "a pending seller is notified of the outcome after outage and restart [S326]",
    () =>
      Effect.gen(function* () {
        const ledger = yield* startLedger
        const pay = yield* paying(ledger)
        const database = yield* lasting(kind)
        const port = yield* Effect.promise(freePort)
        const other = yield* startReceiver({ secret })
        // It accepts requests, and never responds.
        const silent = yield* startReceiver({ secret, answer: () => "never" })
        const startWith = (...more: ReadonlyArray<string>) =>
          startFacilitator({
            ledgerUrl: ledger.ledgerUrl,
            database,
            environment,
            channels: 3,
            set: [
              "plugins=[x402-exact,webhooks]",
              ...quick,
              ...more,
              "webhooks.timeout_ms=3000",
              receivers(
                { key: "shop", url: `http://127.0.0.1:${port}/hook`, secret_env: "SHOP_HOOK" },
                { key: "other", url: other.url, secret_env: "OTHER_HOOK" },
                { key: "other", url: silent.url, secret_env: "OTHER_HOOK", name: "silent" }
              )
            ]
          })
        // For the payment that never lands.
        const first = yield* startWith("limits.settle_timeout_ms=2000")
        // No receiver was notified of earlier events.
        yield* ledger.ledger.setFaults([{ drops: () => true }])
        const pending = yield* pay(first)
        expect(pending.json).toMatchObject({ success: false })
        const hash = pending.json.transaction
        const due = (facilitator: Facilitator) =>
          facilitator.sql<{ attempts: number }>`select attempts from webhooks_deliveries where state = 'due'`
        while (!(yield* due(first)).some(({ attempts }) => attempts >= 2)) yield* Effect.sleep("20 millis")
        expect((yield* first.ask("/health/ready")).json.webhooks).toEqual({
          state: "degraded",
          detail: "not reached, being retried: shop"
        })
        yield* first.stop

        const second = yield* startWith()
        yield* ledger.ledger.setFaults([])
        while ((yield* due(second)).length < 2) yield* Effect.sleep("20 millis")
        const shop = yield* startReceiver({ secret, port })
        const events = yield* shop.until(({ length }) => length >= 2)
        expect(events.map(({ type }) => type)).toEqual(["settlement.recorded", "settlement.settled"])
        expect(events.map(({ isSigned }) => isSigned)).toEqual([true, true])
        const state = yield* second.ask(`/settlements?hash=${hash}`, { headers: { authorization: `Bearer ${key}` } })
        expect(events[1]!.data).toEqual(state.json.items[0])
        expect(events[1]!.data).toMatchObject({ status: "success", transaction: hash })
        expect(new Set(events.map(({ id }) => id)).size).toBe(2)

        // Its own events only; a silent receiver delays neither the other one nor payments.
        expect((yield* pay(second, otherKey)).json).toMatchObject({ success: true })
        const others = yield* other.until(({ length }) => length >= 2)
        expect(others.map(({ isSigned, type }) => [type, isSigned])).toEqual([
          ["settlement.recorded", true],
          ["settlement.settled", true]
        ])
        expect(others.some(({ data }) => data.transaction === hash)).toBe(false)
        expect(shop.received).toHaveLength(2)
        yield* silent.until(({ length }) => length >= 2)
        // Operators list what each receiver was sent and is owed, by cursor.
        const list = (query = "") => second.ask(`/webhooks/v1/deliveries${query}`)
        const { json: all } = yield* list("?limit=200")
        expect(new Set(all.receivers)).toEqual(new Set(["shop", "other", "silent"]))
        const paged: Array<string> = []
        for (let cursor: string | null = ""; cursor !== null;) {
          const read: Answer = yield* list(`?receiver=shop&limit=1&cursor=${cursor}`)
          paged.push(...read.json.items.map(({ type }: { type: string }) => type))
          cursor = read.json.pagination.cursor
        }
        expect(paged).toEqual(["settlement.settled", "settlement.recorded"])
        const waiting = (yield* list("?state=due")).json.items
        expect(new Set(waiting.map(({ receiver }: { receiver: string }) => receiver))).toEqual(new Set(["silent"]))
        expect(waiting[0]).toMatchObject({ state: "due", ended_at: null, next_at: expect.stringMatching(/Z$/) })
        const taken = (yield* list("?receiver=shop&type=settlement.settled")).json.items
        expect(taken).toMatchObject([{ state: "delivered", last_answer: expect.any(String), next_at: null }])
        expect((yield* list(`?settlement=${taken[0].settlement}`)).json.items).toHaveLength(2)
        expect((yield* list("?state=lost")).json.details).toHaveLength(1)
        // The second event waits for the first.
        expect(new Set(silent.received.map(({ type }) => type))).toEqual(new Set(["settlement.recorded"]))
      }).pipe(Effect.scoped),
    240_000
  )
})

describe("webhooks", () => {
  it.live.each([
    ["100 hours fast", 100 * 3_600_000],
    ["an hour slow", -3_600_000]
  ] as const)(
    "webhooks verify at a receiver with a clock tolerance from a machine %s",
    ([, millis]) =>
      Effect.gen(function* () {
        const ledger = yield* startLedger
        const pay = yield* paying(ledger)
        // As the libraries do: five minutes.
        const receiver = yield* startReceiver({
          secret,
          answer: ({ headers }) =>
            Math.abs(Number(headers["webhook-timestamp"]) - Date.now() / 1_000) < 300 ? 204 : 401
        })
        const facilitator = yield* startFacilitator({
          ledgerUrl: ledger.ledgerUrl,
          channels: 1,
          environment,
          set: [
            "plugins=[x402-exact,webhooks]",
            ...quick,
            "webhooks.allow_local_receivers=true",
            receivers({ key: "shop", url: receiver.url, secret_env: "SHOP_HOOK" })
          ]
        }).pipe(Effect.provideServiceEffect(Clock.Clock, skewedClock(millis)))
        expect((yield* pay(facilitator)).json).toMatchObject({ success: true })
        const states = facilitator.sql<{ state: string }>`select distinct state from webhooks_deliveries`
        // Check the same read that ends the wait: a later event of the same payment may become due after it.
        const ended = yield* eventually(
          states,
          (all) => receiver.received.length > 0 && all.every(({ state }) => state !== "due")
        )
        expect(ended).toEqual([{ state: "delivered" }])
        expect(receiver.received.every(({ isSigned }) => isSigned)).toBe(true)
      }).pipe(Effect.scoped),
    240_000
  )

  it.live(
    "a receiver's Retry-After holds all its events back, and every delivery of an id has one body",
    () =>
      Effect.gen(function* () {
        const times: Array<number> = []
        const receiver = yield* startReceiver({
          secret,
          retryAfter: "3",
          answer: (_, index) => {
            times.push(performance.now())
            return index === 0 ? 503 : 204
          }
        })
        const facilitator = yield* start([receivers({ key: "*", url: receiver.url, secret_env: "SHOP_HOOK" })])
        const pay = yield* paying(facilitator)
        expect((yield* pay(facilitator)).json).toMatchObject({ success: true })
        expect((yield* pay(facilitator)).json).toMatchObject({ success: true })
        const events = yield* receiver.until(({ length }) => length >= 5)
        const [first] = events
        const again = events.filter(({ id }) => id === first!.id)
        expect(again).toHaveLength(2)
        expect(again[1]!.body).toBe(again[0]!.body)
        expect(events.every(({ isSigned }) => isSigned)).toBe(true)
        expect(new Set(events.map(({ data, type }) => `${type} ${data.status}`))).toEqual(
          new Set(["settlement.recorded pending", "settlement.settled success"])
        )
        // Deliveries in flight with the first: events that were queued later wait equally long.
        const held = times.filter((time) => time - times[0]! > 2_500)
        expect(held.length).toBeGreaterThanOrEqual(1)
        expect(times[events.indexOf(again[1]!)]! - times[0]!).toBeGreaterThan(2_900)
      }).pipe(Effect.scoped),
    240_000
  )

  it.live(
    "a pause holds for every replica and for events that come later, and an operator's replay ends it",
    () =>
      Effect.gen(function* () {
        const receiver = yield* startReceiver({
          secret,
          retryAfter: "99999999999",
          answer: (_, index) => (index === 0 ? 503 : 204)
        })
        const facilitator = yield* start([receivers({ key: "*", url: receiver.url, secret_env: "SHOP_HOOK" })])
        const pay = yield* paying(facilitator)
        expect((yield* pay(facilitator)).json).toMatchObject({ success: true })
        const beside = <A>(use: Effect.Effect<A, unknown, any>) =>
          use.pipe(
            Effect.provide(administration.layer),
            Effect.provide(facilitator.services as Context.Context<any>),
            Effect.provideService(CurrentPlugin, "webhooks")
          ) as Effect.Effect<A, unknown>
        const statuses = beside(administration.receiverStatuses)
        while ((yield* statuses).every(({ resting_until }) => resting_until === null)) yield* Effect.sleep("20 millis")
        const sent = receiver.received.length
        // Queued after the pause was asked for.
        expect((yield* pay(facilitator)).json).toMatchObject({ success: true })
        while ((yield* statuses)[0]!.due < 4) yield* Effect.sleep("20 millis")
        expect(yield* beside(Effect.flatMap(Deliveries, ({ lease }) => lease("*", 4, 1_000)))).toEqual([])
        const left = (yield* statuses)[0]!.resting_until!.getTime() - Date.now()
        expect([left <= 24 * 3_600_000, left > 23 * 3_600_000]).toEqual([true, true])
        yield* Effect.sleep("1500 millis")
        expect(receiver.received).toHaveLength(sent)
        const since = new Date(Date.now() - 3_600_000)
        expect(yield* beside(administration.replay("*", { since, settlement: undefined }))).toBe(4)
        yield* receiver.until(({ length }) => length >= sent + 4)
        expect((yield* statuses)[0]).toMatchObject({ resting_until: null })
      }).pipe(Effect.scoped),
    240_000
  )

  it.live(
    "a receiver's 410 disables it on every replica until it is enabled",
    () =>
      Effect.gen(function* () {
        const gone = { now: true }
        const receiver = yield* startReceiver({ secret, answer: () => (gone.now ? 410 : 204) })
        const facilitator = yield* start([receivers({ key: "*", url: receiver.url, secret_env: "SHOP_HOOK" })])
        const command = (...words: ReadonlyArray<string>) =>
          runOperatorCommand(facilitator.services, { words: ["webhooks", ...words, "--json"], folder: "." }, "0")
        const status = Effect.map(command("list"), ({ out }) => JSON.parse(out)[0])
        const pay = yield* paying(facilitator)
        expect((yield* pay(facilitator)).json).toMatchObject({ success: true })
        yield* eventually(status, (one) => typeof one?.disabled_at === "string" && one.due === 2)
        yield* eventually(facilitator.ask("/health/ready"), ({ json }) =>
          String(json.webhooks.detail).startsWith("disabled by their 410: *")
        )
        const sent = receiver.received.length
        expect((yield* pay(facilitator)).json).toMatchObject({ success: true })
        yield* eventually(status, ({ due }) => due === 4)
        const deliveries = Effect.flatMap(Deliveries, ({ forget, lease }) =>
          Effect.all([lease("*", 4, 1_000), forget(3_600_000, 0)])
        ).pipe(
          Effect.provide(administration.layer),
          Effect.provide(facilitator.services as Context.Context<any>),
          Effect.provideService(CurrentPlugin, "webhooks")
        )
        gone.now = false
        expect(JSON.parse((yield* command("enable", "*")).out)).toEqual({ receiver: "*", wasDisabled: true })
        yield* receiver.until(({ length }) => length >= sent + 4)
        expect(yield* status).toMatchObject({ disabled_at: null })
        expect(JSON.parse((yield* command("enable", "*")).out)).toEqual({ receiver: "*", wasDisabled: false })
        expect((yield* command("enable", "unknown")).err).toContain("no receiver named unknown")

        // Another replica's disabling also applies here; a receiver that stays disabled too long loses its events.
        yield* facilitator.sql`insert into webhooks_disabled (receiver) values ('*')`
        expect((yield* pay(facilitator)).json).toMatchObject({ success: true })
        yield* eventually(status, ({ due }) => due === 2)
        expect((yield* deliveries)[0]).toEqual([])
        expect(yield* status).toMatchObject({ due: 0, given_up: 2 })
      }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)),
    240_000
  )

  it.live(
    "webhooks are replayed by an operator, and abandoned after their maximum age",
    () =>
      Effect.gen(function* () {
        const isUp = { now: true }
        const receiver = yield* startReceiver({ secret, answer: () => (isUp.now ? 204 : 500) })
        const events: Array<Event> = []
        const encoded = `whsec_${Buffer.from(secret).toString("base64")}`
        const example = yield* Effect.acquireRelease(
          Effect.promise(() => startExample(encoded, (event) => void events.push(event))),
          ({ server }) => Effect.sync(() => server.close())
        )
        const facilitator = yield* start(
          [
            receivers(
              { key: "*", url: receiver.url, secret_env: "SHOP_HOOK" },
              { key: "shop", url: example.url, secret_env: "EXAMPLE_HOOK", name: "example" }
            )
          ],
          { EXAMPLE_HOOK: encoded }
        )
        const pay = yield* paying(facilitator)
        expect((yield* pay(facilitator)).json).toMatchObject({ success: true })
        yield* receiver.until(({ length }) => length === 2)
        const { sql } = facilitator
        const states = sql<{ state: string }>`select state from webhooks_deliveries order by position`
        while (events.length < 2) yield* Effect.sleep("20 millis")
        expect(events.map(({ data, type }) => [type, data.status])[1]).toEqual(["settlement.settled", "success"])
        for (const forged of [
          {
            "webhook-id": "x",
            "webhook-timestamp": String(Math.floor(Date.now() / 1_000)),
            "webhook-signature": "v1,AA"
          },
          { "webhook-id": "x" }
        ])
          expect(
            (yield* Effect.promise(() => fetch(example.url, { method: "POST", headers: forged, body: "{}" }))).status
          ).toBe(401)
        // The same settlement, stored again from the ledger under another id.
        const adopted = JSON.stringify(events[1])
        const headersOf = (id: string) => {
          const time = String(Math.floor(Date.now() / 1_000))
          const signature = createHmac("sha256", secret).update(`${id}.${time}.${adopted}`).digest("base64")
          return { "webhook-id": id, "webhook-timestamp": time, "webhook-signature": `v1,${signature}` }
        }
        const repeated = { method: "POST", headers: headersOf("another.settled"), body: adopted }
        expect((yield* Effect.promise(() => fetch(example.url, repeated))).status).toBe(204)
        expect(events).toHaveLength(2)
        while ((yield* states).some(({ state }) => state !== "delivered")) yield* Effect.sleep("20 millis")
        // Beside the facilitator, over the same database, as the command does it.
        const replay = (settlement: string | undefined, name = "*") =>
          administration
            .replay(name, { since: new Date(Date.now() - 3_600_000), settlement })
            .pipe(
              Effect.provide(administration.layer),
              Effect.provide(facilitator.services as Context.Context<any>),
              Effect.provideService(CurrentPlugin, "webhooks")
            ) as Effect.Effect<number, unknown>
        expect(yield* replay(undefined)).toBe(2)
        const again = yield* receiver.until(({ length }) => length === 4)
        expect(again.slice(2).map(({ id }) => id)).toEqual(again.slice(0, 2).map(({ id }) => id))
        while ((yield* states).some(({ state }) => state !== "delivered")) yield* Effect.sleep("20 millis")
        expect(yield* replay("00000000-0000-4000-a000-000000000001")).toBe(0)
        expect(yield* Effect.flip(replay(undefined, "unknown"))).toMatchObject({ _tag: "NoSuchReceiver" })
        isUp.now = false
        yield* sql`delete from webhooks_deliveries where receiver = 'example'`
        yield* sql`update webhooks_deliveries set state = 'due', due_at = clock_timestamp(),
          queued_at = clock_timestamp() - interval '73 hours'`
        while ((yield* states).some(({ state }) => state !== "given_up")) yield* Effect.sleep("20 millis")
        expect(receiver.received).toHaveLength(6)
        const [last] = yield* sql`select last_answer from webhooks_deliveries limit 1`
        expect(last).toEqual({ last_answer: "500" })
      }).pipe(Effect.scoped),
    240_000
  )

  it.live(
    "webhooks refuse redirects, private addresses and plain HTTP",
    () =>
      Effect.gen(function* () {
        const inside = yield* startReceiver({ secret })
        const redirecting = yield* startReceiver({ secret, answer: () => 307, location: "/elsewhere" })
        const facilitator = yield* start([receivers({ key: "shop", url: redirecting.url, secret_env: "SHOP_HOOK" })])
        const pay = yield* paying(facilitator)
        expect((yield* pay(facilitator)).json).toMatchObject({ success: true })
        const asked = yield* redirecting.until(({ length }) => length >= 3)
        expect(new Set(asked.map(({ path }) => path))).toEqual(new Set(["/hook"]))
        const guarded = yield* start([
          "webhooks.allow_local_receivers=false",
          receivers({ key: "shop", url: inside.url.replace("http:", "https:"), secret_env: "SHOP_HOOK" })
        ])
        yield* (yield* paying(guarded))(guarded)
        const answers = guarded.sql<{ last_answer: string | null }>`select last_answer from webhooks_deliveries
          where last_answer is not null`
        while ((yield* answers).length === 0) yield* Effect.sleep("20 millis")
        expect((yield* answers)[0]).toEqual({ last_answer: "blocked" })
        expect(inside.received).toEqual([])
      }).pipe(Effect.scoped),
    240_000
  )

  it.live(
    "webhooks are refused at boot without valid secret, URL and unique name",
    () =>
      Effect.gen(function* () {
        const one = { key: "shop", url: "https://shop.example.com/hook", secret_env: "SHOP_HOOK" }
        for (const [set, variable] of [
          [[receivers({ ...one, secret_env: "NOT_SET" })], secret],
          [[receivers(one)], "short"],
          [[receivers(one)], "whsec_!"],
          [[receivers({ ...one, url: "shop.example.com" })], secret],
          [[receivers({ ...one, url: "ftp://shop.example.com" })], secret],
          [[receivers({ ...one, url: "https://me:it@shop.example.com/hook" })], secret],
          [[receivers({ ...one, url: "https://shop.example.com:25/hook" })], secret],
          [["webhooks.allow_local_receivers=false", receivers({ ...one, url: "http://shop.example.com" })], secret],
          [[receivers(one, one)], secret]
        ] as const) {
          const refused = yield* Effect.flip(Effect.scoped(start(set, { SHOP_HOOK: variable })))
          expect(refused, JSON.stringify(set)).toMatchObject({
            _tag: "SettingsRefused",
            path: expect.stringContaining("webhooks.receivers")
          })
          expect(JSON.stringify(refused)).not.toContain(variable)
        }
      }),
    240_000
  )
})

it("a Retry-After is seconds or a date, and at most a day", () => {
  const now = Date.parse("2026-01-31T10:00:00Z")
  expect(readRetryAfter("120", now)).toBe(120_000)
  expect(readRetryAfter("Sat, 31 Jan 2026 10:05:00 GMT", now)).toBe(300_000)
  expect(readRetryAfter("Sat, 31 Jan 2026 09:00:00 GMT", now)).toBe(0)
  expect(readRetryAfter("Saturday, 31-Jan-26 10:05:00 GMT", now)).toBe(300_000)
  for (const absurd of ["999999999", "9".repeat(20), "9".repeat(400), "Fri, 31 Dec 9999 23:59:59 GMT"])
    expect([absurd, readRetryAfter(absurd, now)]).toEqual([absurd, 86_400_000])
  // Texts that a lenient date parser would accept.
  for (const none of [undefined, "", "soon", "-5", "1.5", "1e3", "2026-02-01", "1 Feb 2027", "Feb 1, 2027"])
    expect([none, readRetryAfter(none, now)]).toEqual([none, 0])
})
