// Surroundings that must not affect a payment: slow, broken or verbose extensions, an unavailable search, an
// unavailable database; and the members that a payment option may have in addition to its terms.
import { expect, it, layer } from "@effect/vitest"
import { PgClient } from "@effect/sql-pg"
import { Context, Deferred, Effect, Layer, Redacted } from "effect"
import { SqlClient } from "effect/sql"
import { describe } from "vitest"
import { DatabaseSource } from "../../../kernel/database/DatabaseSource.ts"
import { Health } from "../../../kernel/health/Health.ts"
import { Extensions, type ExtensionOutcome } from "../../../kernel/payment/Extension.ts"
import { databaseKinds, sourceLayer } from "../../support/databases.ts"
import { type Answer, type Facilitator, startFacilitator } from "../../support/facilitator.ts"
import { eventually } from "../../support/eventually.ts"

class World extends Context.Service<World, Facilitator>()("test/World") {}

const serviceOf = <A>(facilitator: Facilitator, key: unknown): A =>
  Context.getUnsafe(facilitator.services, key as never) as A
const price = 10_000n

const extensionsOf = ({ headers }: Answer): unknown => {
  const header = headers.get("extension-responses")
  return header === null ? undefined : JSON.parse(Buffer.from(header, "base64").toString("utf8"))
}

layer(Layer.effect(World, startFacilitator({ set: ["plugins=[ledger-local, x402-exact]"] })), {
  timeout: 240_000,
  excludeTestServices: true
})((it) => {
  const payment = (extensions: Record<string, unknown>, tamper = {}) =>
    Effect.gen(function* () {
      const facilitator = yield* World
      const payer = yield* facilitator.account()
      const seller = (yield* facilitator.account(0n)).publicKey()
      const made = yield* facilitator.payment({
        payer,
        payTo: seller,
        amount: price,
        maxTimeoutSeconds: 120,
        extensions,
        tamper
      })
      return { facilitator, payer: payer.publicKey(), body: made.body }
    })
  const registered = (facilitator: Facilitator, observe: Effect.Effect<ExtensionOutcome>) =>
    serviceOf<Extensions["Service"]>(facilitator, Extensions).register({ key: "catalog", observe: () => observe })

  it.effect(
    "reports an extension's outcome under its key, none on a refusal [S9, S78, S79, S88, S254, S255, S327]",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const { body, facilitator, payer } = yield* payment({ bazaar: { info: {} } })
          yield* registered(facilitator, Effect.succeed({ status: "rejected", rejectedReason: "schema_invalid" }))
          const verified = yield* facilitator.verify(body)
          expect(verified.json).toEqual({ isValid: true, payer })
          expect(extensionsOf(verified)).toEqual({ bazaar: { status: "rejected", rejectedReason: "schema_invalid" } })
          const settled = yield* facilitator.settle(body)
          expect(settled.json.success).toBe(true)
          expect(extensionsOf(settled)).toEqual({ bazaar: { status: "rejected", rejectedReason: "schema_invalid" } })
          const refused = yield* payment({ catalog: {} }, { amount: 1n })
          expect(extensionsOf(yield* refused.facilitator.verify(refused.body))).toBeUndefined()
        })
      )
  )

  it.effect("a hanging or dying extension is reported as processing, without delay [S78]", () =>
    Effect.gen(function* () {
      const never = yield* Deferred.make<ExtensionOutcome>()
      for (const observe of [Deferred.await(never), Effect.die(new Error("a defect of the extension"))]) {
        const { body, facilitator } = yield* payment({ catalog: {} })
        yield* Effect.scoped(
          Effect.gen(function* () {
            yield* registered(facilitator, observe)
            const verified = yield* facilitator.verify(body)
            expect(verified.json.isValid).toBe(true)
            expect(extensionsOf(verified)).toEqual({ catalog: { status: "processing" } })
            expect((yield* facilitator.settle(body)).json.success).toBe(true)
          })
        )
      }
    })
  )

  it.effect("ignores unknown members of a payment option at every level [S43, S45, S46, S47, S48]", () =>
    Effect.gen(function* () {
      const { body, facilitator } = yield* payment({})
      const more: any = structuredClone(body)
      for (const option of [more.paymentRequirements, more.paymentPayload.accepted]) {
        Object.assign(option, {
          description: "a page",
          outputSchema: { type: "object" },
          extra: { ...option.extra, name: "USDC" }
        })
      }
      Object.assign(more, { note: 1 })
      Object.assign(more.paymentPayload, { note: { deep: [] } })
      expect((yield* facilitator.verify(more)).json.isValid).toBe(true)
      for (const [field, value] of [
        ["amount", 10_000],
        ["amount", "1e4"],
        ["maxTimeoutSeconds", "60"],
        ["asset", null],
        ["payTo", 7]
      ] as const) {
        const wrong: any = structuredClone(body)
        wrong.paymentRequirements[field] = value
        wrong.paymentPayload.accepted[field] = value
        const { json } = yield* facilitator.verify(wrong)
        expect([field, json.isValid, typeof json.invalidReason]).toEqual([field, false, "string"])
      }
    })
  )

  it.effect("stays ready while search is degraded, with detail and generation [S69, S70, S71, S72]", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const facilitator = yield* World
        const health = serviceOf<Health["Service"]>(facilitator, Health)
        yield* health.registerSearch("lexical", Effect.succeed({ state: "ready" }))
        yield* health.registerSearch(
          "semantic",
          Effect.succeed({
            state: "degraded",
            detail: "x".repeat(5_000),
            vectorSupport: true,
            generation: "minilm-1"
          })
        )
        // Any plugin may be a branch of search.
        yield* health.registerSearch("pictures", Effect.succeed({ state: "ready" }))
        const { json, status } = yield* facilitator.ask("/health/ready")
        expect([status, json.status]).toEqual([200, "ready"])
        expect(json.search).toMatchObject({
          pictures: "ready",
          lexical: "ready",
          semantic: "degraded",
          vectorSupport: true,
          generation: "minilm-1"
        })
        expect(json.search.detail).toHaveLength(200)
      })
    )
  )
})

describe("/supported", () => {
  it.live(
    "/supported follows the configured assets and spellings [S59, S62]",
    () =>
      Effect.gen(function* () {
        const facilitator = yield* startFacilitator({ channels: 1, set: ["wire.dialects=[stellar]"] })
        const { kinds } = (yield* facilitator.ask("/supported")).json
        expect(kinds.map(({ network, scheme }: any) => `${scheme} ${network}`)).toEqual([
          "exact stellar:testnet",
          "upto stellar:testnet",
          "batch-settlement stellar:testnet"
        ])
      }).pipe(Effect.scoped) as Effect.Effect<void>,
    240_000
  )
})

describe.runIf(databaseKinds.includes("postgres"))("readiness", () => {
  it.live(
    "readiness depends on the database, not on the ledger [S65, S66, S73]",
    () =>
      Effect.gen(function* () {
        const opened = yield* Context.get(yield* Layer.build(sourceLayer("postgres")), DatabaseSource).open
        if (opened.kind !== "server") throw new Error("a server is required")
        const facilitator = yield* startFacilitator({
          channels: 1,
          database: Layer.succeed(DatabaseSource, { open: Effect.succeed(opened) })
        })
        yield* facilitator.ledger.setFaults([{ onRpc: () => ({ kind: "status", status: 503 }) as never }])
        expect((yield* facilitator.ask("/health/ready")).status).toBe(200)
        const database = new URL(Redacted.value(opened.url)).pathname.slice(1)
        const maintenance = new URL(Redacted.value(opened.url))
        maintenance.pathname = "/postgres"
        const admin = <A>(use: (sql: SqlClient.SqlClient) => Effect.Effect<A, unknown>) =>
          Effect.scoped(
            Effect.provide(
              Effect.flatMap(SqlClient.SqlClient, use),
              PgClient.layer({ url: Redacted.make(maintenance.href), maxConnections: 1 })
            )
          )
        yield* admin((sql) =>
          Effect.gen(function* () {
            yield* sql`alter database ${sql(database)} allow_connections false`.unprepared
            yield* sql`select pg_terminate_backend(pid) from pg_stat_activity where datname = ${database}`
          })
        )
        const gone = yield* eventually(facilitator.ask("/health/ready"), ({ status }) => status !== 200)
        expect([gone.status, gone.json.status]).toEqual([503, "not_ready"])
        expect((yield* facilitator.ask("/health/live")).status).toBe(200)
        yield* admin((sql) => sql`alter database ${sql(database)} allow_connections true`.unprepared)
        const back = yield* eventually(facilitator.ask("/health/ready"), ({ status }) => status === 200)
        expect(back.json.status).toBe("ready")
      }).pipe(Effect.scoped) as Effect.Effect<void>,
    240_000
  )
})
