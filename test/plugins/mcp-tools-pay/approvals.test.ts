import { NodeServices } from "@effect/platform-node"
import { expect, it } from "@effect/vitest"
import { Effect, FileSystem, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { Host } from "../../../kernel/platform/Host.ts"
import { approvalFiles } from "../../../plugins/mcp-tools-pay/policy/approvalFiles.ts"
import { approvalRows } from "../../../plugins/mcp-tools-pay/policy/approvalRows.ts"
import { type ApprovalStore, isLeft } from "../../../plugins/mcp-tools-pay/policy/ApprovalStore.ts"
import type { Approval } from "../../../plugins/mcp-tools-pay/policy/ApprovalWire.ts"
import * as NodeCrypto from "../../../runtime/platform/nodeCrypto.ts"
import { describeDatabases } from "../../support/databases.ts"

const hour = 3_600_000

const bought = {
  bought: {
    title: "Adds",
    action: "tool add",
    arguments: '{"a":1}',
    price: "1 USDC",
    budget: "key:agent: 1 USDC a day"
  }
}

const request = (id: string, more: Partial<Approval> = {}): Approval => ({
  id,
  state: "pending",
  agent: "key:agent",
  kind: "http",
  origin: null,
  asset: "CUSDC",
  payTo: "GSELLER",
  amount: "170141183460469231731687303715884105727",
  rule: "dear",
  askedAtMillis: 0,
  mark: "m1",
  ...bought,
  ...more
})

/** What two tool servers over one store see of each other. */
const sharedFacts = <E>(one: ApprovalStore, two: ApprovalStore, passHour: Effect.Effect<unknown, E>) =>
  Effect.gen(function* () {
    expect(yield* one.find("aa", hour)).toBeUndefined()
    expect(yield* one.ask(request("aa"), hour)).toBe(true)
    // An existing request is unchanged: it keeps the mark with which the person was asked.
    expect(yield* two.ask(request("aa", { mark: "m2" }), hour)).toBe(true)
    expect(yield* two.find("aa", hour)).toEqual(request("aa", { askedAtMillis: expect.any(Number) as never }))
    expect(yield* one.decide("bb", "approved", hour)).toBe(false)
    expect(yield* two.decide("aa", "approved", hour)).toBe(true)
    expect(yield* one.decide("aa", "denied", hour)).toBe(false)
    expect((yield* one.find("aa", hour))?.state).toBe("approved")
    const taken = yield* Effect.all(
      Array.from({ length: 8 }, (_, i) => (i % 2 === 0 ? one : two).take("aa")),
      { concurrency: "unbounded" }
    )
    expect(taken.filter((one) => one)).toHaveLength(1)
    // A used approval is found by the calls that share it and is not listed. A call that read the store before it was
    // created makes no new request; the approval may be returned.
    expect((yield* two.find("aa", hour))?.state).toBe("used")
    expect(yield* one.all(hour)).toEqual([])
    expect(yield* two.ask(request("aa", { mark: "m4" }), hour)).toBe(true)
    expect((yield* one.find("aa", hour))?.state).toBe("used")
    expect(yield* two.ask(request("aa", { state: "approved", mark: "m4" }), hour)).toBe(true)
    expect(yield* one.find("aa", hour)).toMatchObject({ state: "approved", mark: "m4", ...bought })
    expect(yield* one.take("aa")).toBe(true)
    expect(yield* two.ask(request("ab"), hour)).toBe(true)
    expect(yield* one.take("ab")).toBe(false)

    // One call asks its person, within the person's time limit; a dismissed question is not asked again.
    const claimed = yield* Effect.all(
      Array.from({ length: 8 }, (_, i) => (i % 2 === 0 ? one : two).claim("ab", 60_000, hour)),
      { concurrency: "unbounded" }
    )
    expect(claimed.filter((one) => one)).toHaveLength(1)
    expect(isLeft((yield* one.find("ab", hour))!, hour)).toBe(false)
    expect(yield* two.leave("ab", hour)).toBe(true)
    expect(isLeft((yield* one.find("ab", hour))!, hour)).toBe(true)
    expect(yield* one.decide("ab", "denied", hour)).toBe(true)
    expect([yield* one.claim("ab", 1, hour), yield* one.leave("ab", hour)]).toEqual([false, false])

    // Of several concurrent operators one decides, and the decision is used once.
    for (const id of ["d1", "d2", "d3", "d4"]) {
      expect(yield* one.ask(request(id), hour)).toBe(true)
      const states = Array.from({ length: 8 }, (_, i) => (i % 2 === 0 ? "approved" : "denied") as "approved" | "denied")
      const decided = yield* Effect.all(
        states.map((state, i) =>
          Effect.map((i % 3 === 0 ? one : two).decide(id, state, hour), (isMine) => (isMine ? [state] : []))
        ),
        { concurrency: "unbounded" }
      )
      expect(decided.flat()).toEqual([(yield* two.find(id, hour))?.state])
      expect([yield* one.take(id), yield* two.take(id)]).toEqual([decided.flat()[0] === "approved", false])
    }

    expect(yield* one.ask(request("cc", { origin: "https://a.example" }), hour)).toBe(true)
    expect((yield* two.all(hour)).flatMap(({ id, origin }) => (origin === null ? [] : [[id, origin]]))).toEqual([
      ["cc", "https://a.example"]
    ])
    yield* passHour
    expect(yield* one.decide("cc", "approved", hour)).toBe(false)
    expect(yield* two.find("cc", hour)).toBeUndefined()
    expect(yield* two.all(hour)).toEqual([])
    const again = request("cc", { askedAtMillis: 61 * 60_000, mark: "m3" })
    expect(yield* two.ask(again, hour)).toBe(true)
    expect((yield* one.find("cc", hour))?.mark).toBe("m3")
    // Pruning a used approval makes room for a new request.
    expect(yield* two.ask(request("aa", { askedAtMillis: 61 * 60_000, mark: "m5" }), hour)).toBe(true)
    expect(yield* one.find("aa", hour)).toMatchObject({ state: "pending", mark: "m5" })

    // An agent that asks for more than its share leaves room for the others.
    const flood = (at: number) =>
      request(`f${at.toString(16)}`, { agent: "key:flood", askedAtMillis: 61 * 60_000, mark: "m6" })
    for (let at = 0; at < 100; at++) expect([at, yield* one.ask(flood(at), hour)]).toEqual([at, true])
    expect([yield* two.ask(flood(100), hour), yield* two.ask(flood(99), hour)]).toEqual([false, true])
    expect(yield* two.ask(request("ef", { askedAtMillis: 61 * 60_000 }), hour)).toBe(true)
  })

it.effect("approval requests in a folder are decided once, taken once and expire", () =>
  Effect.gen(function* () {
    const stateFolder = yield* (yield* FileSystem.FileSystem).makeTempDirectoryScoped()
    const store = Effect.provideService(approvalFiles, Host, { name: "test", stateFolder } as never)
    yield* sharedFacts(yield* store, yield* store, TestClock.adjust("61 minutes"))
  }).pipe(Effect.scoped, Effect.provide(Layer.merge(NodeServices.layer, NodeCrypto.layer)))
)

describeDatabases(
  "requests",
  (database) => {
    it.effect(
      "approvals in PostgreSQL are decided at one replica and taken once",
      () =>
        Effect.gen(function* () {
          const sql = yield* SqlClient.SqlClient
          const age = sql`update mcp_tools_approvals set asked_at = asked_at - interval '61 minutes'`
          yield* sharedFacts(yield* approvalRows, yield* approvalRows, age)
        }).pipe(Effect.provide(database)),
      240_000
    )

    it.effect(
      "approvals in PostgreSQL age by the database's clock, not the replica's",
      () =>
        Effect.gen(function* () {
          const sql = yield* SqlClient.SqlClient
          const store = yield* approvalRows
          expect(yield* store.ask(request("dd"), hour)).toBe(true)
          yield* TestClock.adjust("3 hours")
          expect(yield* store.ask(request("ee"), hour)).toBe(true)
          expect((yield* store.all(hour)).map(({ id }) => id)).toEqual(["dd", "ee"])
          expect(yield* store.decide("dd", "approved", hour)).toBe(true)
          expect((yield* store.find("dd", hour))?.state).toBe("approved")
          // The hour has passed, but the replica's clock has not advanced.
          yield* sql`update mcp_tools_approvals set asked_at = asked_at - interval '61 minutes' where id = 'dd'`
          expect(yield* store.find("dd", hour)).toBeUndefined()
        }).pipe(Effect.provide(database)),
      240_000
    )
  },
  ["mcp-tools"]
)
