// A real streaming replica of a real PostgreSQL: discovery and analytics read from it while it is fit, otherwise from
// the primary, and payments are never affected.
import { expect, it } from "@effect/vitest"
import { Keypair } from "@stellar/stellar-sdk"
import { PgClient } from "@effect/sql-pg"
import { Effect, Layer, Option, Redacted } from "effect"
import { Reactivity } from "effect/reactivity"
import { describe } from "vitest"
import { Settings } from "../../../kernel/config/Settings.ts"
import { Database } from "../../../kernel/database/Database.ts"
import { DatabaseSource } from "../../../kernel/database/DatabaseSource.ts"
import { lagOf, ReadReplica } from "../../../kernel/database/ReadReplica.ts"
import { declaring } from "../../plugins/catalog/support.ts"
import { databaseKinds } from "../../support/databases.ts"
import { type Facilitator, startFacilitator } from "../../support/facilitator.ts"
import { canReplicate, startOwnPostgres, startReplica } from "../../support/postgres.ts"
import { eventually } from "../../support/eventually.ts"

const isPossible = databaseKinds.includes("postgres") && canReplicate()
const connections = 120

const primary = Effect.acquireRelease(
  Effect.promise(async () => (await startOwnPostgres(connections))!),
  ({ stop }) => Effect.promise(stop)
)

const sourceOf = (url: string) =>
  Layer.succeed(DatabaseSource, { open: Effect.succeed({ kind: "server" as const, url: Redacted.make(url) }) })

const reported = (facilitator: Facilitator) =>
  Effect.map(facilitator.ask("/health/ready"), ({ json, status }) => ({ status, ...json.readReplica }))

const url = "https://replica.example.com/page"
const listed = (facilitator: Facilitator) =>
  Effect.map(facilitator.ask(`/discovery/resource?type=http&url=${encodeURIComponent(url)}`), ({ status }) => status)

const settlements = (facilitator: Facilitator) =>
  Effect.map(
    facilitator.ask("/analytics/v1/overview?days=0"),
    ({ json, status }) => `${status} ${json.total_transactions}`
  )

/** Settles one payment that declares the page. */
const settleListed = Effect.fnUntraced(function* (facilitator: Facilitator, world: Facilitator) {
  const payer = yield* world.account()
  const payTo = (yield* world.account(0n)).publicKey()
  const body = yield* declaring(world, { payer, payTo, url, amount: 1n })
  expect((yield* facilitator.settle(body)).json).toMatchObject({ success: true })
})

describe("how far a replica is behind", () => {
  const samples = [10n, 20n, 20n, 30n].map((position, at) => ({ at: at * 1_000, position }))

  it("replica lag is zero at or beyond the primary's position", () => {
    expect(lagOf(samples, 30n, 60_000)).toBe(0)
    expect(lagOf(samples, 31n, 60_000)).toBe(0)
  })

  it("replica lag is the age of the newest reached position, else unknown", () => {
    expect(lagOf(samples, 29n, 3_500)).toBe(1_500)
    expect(lagOf(samples, 10n, 3_500)).toBe(3_500)
    expect(lagOf(samples, 9n, 3_500)).toBe(undefined)
    expect(lagOf([], 9n, 3_500)).toBe(undefined)
  })
})

describe.skipIf(!isPossible)("a read replica", () => {
  it.live(
    "a replica is read only while fit, and payments settle throughout",
    () =>
      Effect.gen(function* () {
        const server = yield* primary
        const world = yield* startFacilitator({ channels: 1, closeMillis: 250 })
        const replica = yield* Effect.promise(() => startReplica(server.url, connections))
        yield* Effect.addFinalizer(() => Effect.promise(replica.stop))
        const start = (lagMillisMax: number) =>
          startFacilitator({
            database: sourceOf(server.url),
            ledgerUrl: world.ledgerUrl,
            environment: { SPONSOR_SECRET: sponsor, DATABASE_READ_URL: replica.url },
            set: [
              "plugins=[x402-exact, catalog, analytics]",
              "catalog_security.probe_origins=false",
              "database.max_connections=8",
              `database.read_lag_max_ms=${lagMillisMax}`
            ]
          })
        const sponsor = Keypair.random().secret()
        const patient = yield* start(600_000)
        const strict = yield* start(1_000)
        for (const one of [patient, strict]) yield* eventually(reported(one), ({ state }) => state === "ready")
        expect((yield* reported(patient)).lagMillis).toBeTypeOf("number")

        const onReplica = yield* PgClient.make({ url: Redacted.make(replica.url), maxConnections: 1 }).pipe(
          Effect.provide(Reactivity.layer)
        )
        yield* onReplica`select pg_wal_replay_pause()`.unprepared
        yield* settleListed(patient, world)
        // A replica that lags too far is not read; with a higher limit, reads return the older state.
        yield* eventually(listed(strict), (status) => status === 200)
        yield* eventually(settlements(strict), (said) => said === "200 1")
        expect(yield* reported(strict)).toMatchObject({ status: 200, state: "degraded" })
        yield* eventually(listed(patient), (status) => status === 404)
        yield* eventually(settlements(patient), (said) => said === "200 0")

        yield* onReplica`select pg_wal_replay_resume()`.unprepared
        yield* eventually(listed(patient), (status) => status === 200)
        yield* eventually(settlements(patient), (said) => said === "200 1")
        yield* eventually(reported(strict), ({ state }) => state === "ready")

        yield* Effect.promise(replica.stop)
        for (const one of [patient, strict]) {
          expect(yield* listed(one)).toBe(200)
          expect(yield* settlements(one)).toBe("200 1")
        }
        yield* settleListed(patient, world)
        yield* eventually(settlements(patient), (said) => said === "200 2")
        expect(yield* reported(patient)).toMatchObject({ status: 200, state: "degraded" })
      }).pipe(Effect.scoped),
    300_000
  )

  it.live(
    "a server that does not replicate is no read replica",
    () =>
      Effect.gen(function* () {
        const server = yield* primary
        const database = Database.layer.pipe(
          Layer.provide(sourceOf(server.url)),
          Layer.provide(Settings.layerTest({ database: { read_url: server.url } }, () => Option.none()))
        )
        yield* Effect.gen(function* () {
          const { poll, status } = yield* ReadReplica
          yield* poll!
          expect(status()).toMatchObject({
            isFit: false,
            detail: "database.read_url is not a streaming replica"
          })
        }).pipe(Effect.provide(database))
      }).pipe(Effect.scoped),
    240_000
  )
})
