// The pages' data and actions for operators, over whole facilitators: figures that match a recount of the rows, a
// settlement's life, live updates, sessions and actions.
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { describe } from "vitest"
import { databaseKinds } from "../../support/databases.ts"
import { openEvents } from "../../support/eventStream.ts"
import { declaration } from "../../support/declaration.ts"
import { type Facilitator, startFacilitator } from "../../support/facilitator.ts"
import { describedErrors } from "../analytics/support.ts"
import { eventually } from "../../support/eventually.ts"

const [shop, ops] = ["shop-secret-0123456789", "operator-secret-012345"]
const environment = { FACILITATOR_API_KEYS: `shop:${shop}`, OPERATOR_API_KEYS: `ops:${ops}` }
const plugins = "plugins=[ledger-local,x402-exact,catalog,analytics,dashboard]"
const bearer = (key: string) => ({ authorization: `Bearer ${key}` })

const post = (facilitator: Facilitator, path: string, body: unknown, headers: Record<string, string> = {}) =>
  facilitator.ask(path, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify(body)
  })

const signIn = Effect.fnUntraced(function* (facilitator: Facilitator, key: string) {
  const answer = yield* post(facilitator, "/dashboard/session", { key }, { "x-tollkeeper-page": "1" })
  return { answer, cookie: (answer.headers.get("set-cookie") ?? "").split(";", 1)[0]! }
})

const pay = Effect.fnUntraced(function* (facilitator: Facilitator, count: number) {
  const payer = yield* facilitator.account()
  const payTo = (yield* facilitator.account()).publicKey()
  for (let done = 0; done < count; done++) {
    const resourceUrl = `http://127.0.0.1:9/page-${done}`
    const { body } = yield* facilitator.payment({
      payer,
      payTo,
      amount: 10_000n,
      resourceUrl,
      extensions: { catalog: declaration }
    })
    expect((yield* facilitator.settle(body, bearer(shop))).json.success).toBe(true)
  }
})

describe.each(databaseKinds)("the operator's pages on %s", (database) => {
  it.live(
    "operator pages show rows, live updates and one settlement",
    () =>
      Effect.gen(function* () {
        const facilitator = yield* startFacilitator({ database, environment, set: [plugins] })
        const errors = describedErrors((yield* facilitator.ask("/openapi.json")).json)
        const ask = Effect.fnUntraced(function* (path: string) {
          const answer = yield* facilitator.ask(path, { headers: bearer(ops) })
          expect(errors(path, answer)).toEqual([])
          return answer
        })
        const live = yield* openEvents(`${facilitator.url}/analytics/v1/events`, bearer(ops))
        yield* pay(facilitator, 2)
        const events = yield* live.until(({ length }) => length >= 4)
        expect(
          events
            .map(({ event }) => event)
            .sort()
            .slice(0, 2)
        ).toEqual(["settlement.recorded", "settlement.recorded"])
        const settled = events.find(({ event }) => event === "settlement.settled")!
        const resumed = yield* openEvents(`${facilitator.url}/analytics/v1/events`, {
          ...bearer(shop),
          "last-event-id": settled.id
        })
        const rest = yield* resumed.until(({ length }) => length >= 2)
        const positionOf = (id: string) => BigInt(id.split("-")[0]!)
        expect(rest.every(({ id }) => positionOf(id) > positionOf(settled.id))).toBe(true)

        const status = (yield* ask("/dashboard/v1/standing")).json
        const [row] = yield* facilitator.sql<{ charged: string; over: number; p50: number; p95: number }>`select
          sum(fee_charged_stroops)::text as charged, count(*)::int as over,
          percentile_cont(0.5) within group (order by took) as p50,
          percentile_cont(0.95) within group (order by took) as p95
          from (select *, extract(epoch from resolved_at - coalesce(asked_at, recorded_at)) * 1000 as took
            from kernel_settlements where state = 'settled') s`
        expect(status.fees.charged_stroops).toBe(row!.charged)
        expect(status.pace.over).toBe(row!.over)
        expect(status.pace.p50_ms).toBeCloseTo(row!.p50, 3)
        expect(status.pace.p95_ms).toBeCloseTo(row!.p95, 3)
        expect([status.in_flight, status.without_end]).toEqual([[], []])
        expect(Number(status.storage.database_bytes)).toBeGreaterThan(1_000_000)
        const isEmbedded = database === "pglite"
        expect(status.storage.disk).toEqual(
          isEmbedded ? { free_bytes: expect.stringMatching(/^[0-9]{7,}$/), reserve_bytes: "256000000" } : null
        )
        // Lists as tables: one line per row, with the response's names.
        const table = Effect.fnUntraced(function* (path: string) {
          const answer = yield* facilitator.ask(path, { headers: { ...bearer(ops), accept: "text/csv" } })
          expect([path, answer.headers.get("content-type")]).toEqual([path, "text/csv; charset=utf-8; header=present"])
          return answer.text.split("\r\n").filter((line) => line !== "")
        })
        const [head, ...lines] = yield* table("/dashboard/v1/standing")
        expect(head).toMatch(/^by,/)
        expect(lines.filter((line) => line.startsWith("channels,"))).toHaveLength(status.channels.length)
        expect(lines.filter((line) => line.startsWith("actors,"))).toHaveLength(status.actors.length)
        expect(status.actors.find(({ actor }: { actor: string }) => actor.endsWith("/retention"))).toMatchObject({
          last_run_at: expect.stringMatching(/^\d{4}-.*Z$/),
          last_run_cause: expect.stringMatching(/^(start|timer|wake)$/),
          last_run_ms: expect.any(Number),
          last_run_outcome: "succeeded"
        })
        // The catalog reads the same facts as the live updates, independently.
        yield* eventually(
          Effect.map(facilitator.ask("/discovery/resources?limit=1000"), ({ json, text }) => {
            expect(text).toMatch(/^\{"x402Version":2/)
            return json.items.length === 2
          })
        )
        const urls = (yield* table("/discovery/resources?limit=1000")).filter((line) => line.includes("/page-"))
        expect(urls).toHaveLength(2)
        for (const path of ["/dashboard/v1/moves", "/analytics/v1/search/generations"])
          expect(yield* table(path)).toEqual([])
        expect(status.channels).toHaveLength(3)

        // Amounts in flight, by asset, while the ledger does not answer.
        yield* facilitator.ledger.setFaults([{ drops: () => true }])
        const payer = yield* facilitator.account()
        const { body } = yield* facilitator.payment({
          payer,
          payTo: (yield* facilitator.account()).publicKey(),
          amount: 70_000n,
          maxTimeoutSeconds: 300
        })
        yield* Effect.forkScoped(facilitator.settle(body, bearer(shop)))
        // The two are read one after the other, and the settlement may be recorded in between.
        const { json: open } = yield* eventually(
          ask("/dashboard/v1/standing"),
          ({ json }) => json.without_end.length === 1 && json.in_flight.length === 1
        )
        expect(open.in_flight).toMatchObject([{ asset_symbol: "USDC", settlements: "1", amount: "70000" }])
        const { id } = open.without_end[0]
        const life = (yield* facilitator.ask(`/dashboard/v1/settlements/${id}`, { headers: bearer(ops) })).json
        expect(life).toMatchObject({ id, amount: "70000", moved: null, principal: "key:shop", resolved_at: null })
        expect(life.attempts.length).toBeGreaterThan(0)
        // Every earlier step has its time, in order, before the first attempt's.
        const steps = [life.asked_at, life.verified_at, life.leased_at].map((at) => Date.parse(at))
        expect(steps.every((at, index) => at >= (steps[index - 1] ?? 0))).toBe(true)
        expect(Date.parse(life.attempts[0].recorded_at)).toBeGreaterThanOrEqual(steps[2]!)
        expect(Math.abs(Date.parse(life.recorded_at) - steps[2]!)).toBeLessThan(60_000)
        expect(Math.abs(Date.now() - steps[0]!)).toBeLessThan(600_000)
        const byHash = `/dashboard/v1/settlements/${life.attempts[0].outer_hash}`
        expect((yield* facilitator.ask(byHash, { headers: bearer(ops) })).json.id).toBe(id)

        // An operator gives it up, with audit entries before and after.
        const refused = yield* post(
          facilitator,
          "/dashboard/v1/moves",
          { move: "give-up", settlement: id, note: "" },
          bearer(ops)
        )
        expect(refused.status).toBe(400)
        const given = { move: "give-up", settlement: id, note: "the ledger is silent" }
        expect((yield* post(facilitator, "/dashboard/v1/moves", given, bearer(ops))).json).toEqual({ done: true })
        expect((yield* post(facilitator, "/dashboard/v1/moves", given, bearer(ops))).status).toBe(409)
        expect((yield* ask("/dashboard/v1/standing")).json.without_end).toMatchObject([{ id, state: "unresolved" }])
        const resize = { move: "resize-channels", count: 4, note: "more concurrency" }
        expect((yield* post(facilitator, "/dashboard/v1/moves", resize, bearer(ops))).json).toEqual({ done: true })
        const [wanted] = yield* facilitator.sql<{ count: number }>`select count from kernel_channel_counts`
        expect(wanted!.count).toBe(4)
        const { items } = (yield* ask("/dashboard/v1/moves")).json
        expect(items.map(({ by, move, outcome }: any) => [by, move, outcome])).toEqual([
          ["ops", "resize-channels", "done"],
          ["ops", "give-up", "only an open settlement can be given up"],
          ["ops", "give-up", "done"]
        ])
      }).pipe(Effect.scoped),
    240_000
  )
})

describe("a session of the pages", () => {
  it.live(
    "a page session opens by key, reads by role and closes",
    () =>
      Effect.gen(function* () {
        const facilitator = yield* startFacilitator({ environment, set: [plugins] })
        const as = (cookie: string, path: string) =>
          Effect.map(facilitator.ask(path, { headers: { cookie } }), ({ status }) => status)
        expect(yield* as("", "/analytics/v1/overview")).toBe(401)
        expect(yield* as("", "/analytics/v1/events")).toBe(401)
        expect((yield* signIn(facilitator, "unknown-secret-0123456")).answer.status).toBe(401)
        expect((yield* post(facilitator, "/dashboard/session", { key: ops })).status).toBe(403)
        const foreign = { "x-tollkeeper-page": "1", origin: "https://evil.example" }
        expect((yield* post(facilitator, "/dashboard/session", { key: ops }, foreign)).status).toBe(403)

        const caller = yield* signIn(facilitator, shop)
        expect(caller.answer.headers.get("set-cookie")).toMatch(/HttpOnly; SameSite=Strict/)
        expect(yield* as(caller.cookie, "/analytics/v1/overview")).toBe(200)
        expect(yield* as(caller.cookie, "/dashboard/v1/standing")).toBe(401)

        const { cookie } = yield* signIn(facilitator, ops)
        expect(yield* as(cookie, "/analytics/v1/transactions")).toBe(200)
        expect(yield* as(cookie, "/dashboard/v1/standing")).toBe(200)
        expect(yield* as(cookie, "/analytics/v1/search/status")).toBe(200)
        expect(yield* as(cookie, "/catalog/v1/observations?url=https://seller.example/x")).toBe(200)
        expect((yield* facilitator.ask("/dashboard/session", { headers: { cookie } })).json).toMatchObject({
          role: "operator",
          principal: "ops",
          may_move: true
        })
        const move = { move: "resize-channels", count: 3, note: "as it was" }
        expect((yield* post(facilitator, "/dashboard/v1/moves", move, { cookie })).status).toBe(401)
        const ours = { cookie, "x-tollkeeper-page": "1", origin: facilitator.url }
        expect((yield* post(facilitator, "/dashboard/v1/moves", move, ours)).status).toBe(200)
        const unknown = { move: "quarantine", type: "http", url: "https://seller.example/x", note: "spam" }
        expect((yield* post(facilitator, "/catalog/v1/moves", unknown, { cookie })).status).toBe(401)
        expect((yield* post(facilitator, "/catalog/v1/moves", unknown, ours)).status).toBe(404)
        const closed = yield* facilitator.ask("/dashboard/session", { method: "DELETE", headers: ours })
        expect(closed.headers.get("set-cookie")).toMatch(/^tollkeeper_session=; .*Max-Age=0$/)
        // A copy of the cookie no longer works.
        expect(yield* as(cookie, "/analytics/v1/transactions")).toBe(401)
        expect(yield* as(caller.cookie, "/analytics/v1/overview")).toBe(200)
      }).pipe(Effect.scoped),
    240_000
  )
})
