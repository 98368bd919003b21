// Databases that answer every query and accept no write: a server set to read-only, a standby after a failover, a full
// disk, and a commit that never finishes. Two replicas run over each; readiness' status stays that of the trivial
// query, and its detail, the metrics and the answers of verify and settle agree, and heal without a restart.
import { expect, it } from "@effect/vitest"
import { PgClient } from "@effect/sql-pg"
import { Effect, Layer, Redacted } from "effect"
import { SqlClient } from "effect/sql"
import { execFileSync } from "node:child_process"
import { chownSync, existsSync, mkdtempSync, rmSync, statfsSync, writeFileSync } from "node:fs"
import { connect, createServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe } from "vitest"
import { DatabaseSource } from "../../../kernel/database/DatabaseSource.ts"
import { databaseKinds } from "../../support/databases.ts"
import { eventually } from "../../support/eventually.ts"
import { type Facilitator, startFacilitator } from "../../support/facilitator.ts"
import { canReplicate, startOwnPostgres, startReplica, unprivileged } from "../../support/postgres.ts"

const isPossible = databaseKinds.includes("postgres") && canReplicate()
const connectionsMax = 120
/** The promise is five seconds; a loaded machine gets twice as long. */
const millisMax = 10_000

const ownServer = Effect.acquireRelease(
  Effect.promise(async () => (await startOwnPostgres(connectionsMax))!),
  ({ stop }) => Effect.promise(stop)
)

/** One statement in a separate session, like an operator's. */
const operate = (url: string, statement: string) =>
  Effect.orDie(
    Effect.scoped(
      Effect.flatMap(SqlClient.SqlClient, (sql) => sql.unsafe(statement)).pipe(
        Effect.provide(PgClient.layer({ url: Redacted.make(url), maxConnections: 1 }))
      )
    )
  )

const configure = Effect.fnUntraced(function* (url: string, setting: string, value: string) {
  yield* operate(url, `alter system set ${setting} = '${value}'`)
  yield* operate(url, "select pg_reload_conf()::text")
})

const startReplicas = Effect.fnUntraced(function* (url: string) {
  const world = yield* startFacilitator({ channels: 1, closeMillis: 250 })
  const database = Layer.succeed(DatabaseSource, {
    open: Effect.succeed({ kind: "server" as const, url: Redacted.make(url) })
  })
  const replica = startFacilitator({ database, ledgerUrl: world.ledgerUrl, channels: 2 })
  const replicas = [yield* replica, yield* replica]
  const payTo = (yield* world.account(0n)).publicKey()
  const payment = Effect.gen(function* () {
    const terms = { payer: yield* world.account(), payTo, amount: 10n, maxTimeoutSeconds: 300, secondsPerLedger: 1 }
    return (yield* world.payment(terms)).body
  })
  return { replicas, payment, body: yield* payment }
})

const gauge = (text: string, name: string) => Number(new RegExp(`^${name}(?:{[^}]*})? (.*)$`, "m").exec(text)?.[1])

/** A replica's statements about whether it can settle. */
const seen = Effect.fnUntraced(function* (replica: Facilitator, body: unknown) {
  const ready = yield* replica.ask("/health/ready")
  const verified = yield* replica.verify(body)
  const { text } = yield* replica.ask("/metrics")
  return {
    status: ready.status,
    database: ready.json.database as { readonly state: string; readonly detail?: string },
    ledger: ready.json.ledger.state as string,
    writable: gauge(text, "tollkeeper_database_writable"),
    available: gauge(text, "tollkeeper_settling_available"),
    verify: [verified.status, verified.json.isValid, verified.json.invalidReason]
  }
})

const unable = (detail: unknown) => ({
  status: 200,
  database: { state: "degraded", detail },
  ledger: "degraded",
  writable: 0,
  available: 0,
  verify: [503, false, "ledger_unavailable"]
})

const able = {
  status: 200,
  database: { state: "ready" },
  ledger: "ready",
  writable: 1,
  available: 1,
  verify: [200, true, undefined]
}

/** Every replica soon reports that it cannot settle, and that it can once the cause is removed. */
const expectTruth = Effect.fnUntraced(function* (
  { body, payment, replicas }: Effect.Success<ReturnType<typeof startReplicas>>,
  detail: unknown,
  breaks: Effect.Effect<unknown>,
  mends: Effect.Effect<unknown>
) {
  for (const replica of replicas) expect(yield* seen(replica, body)).toEqual(able)
  yield* breaks
  const brokeAt = performance.now()
  for (const replica of replicas)
    yield* eventually(seen(replica, body), ({ available, writable }) => available === 0 && writable === 0)
  expect(performance.now() - brokeAt).toBeLessThan(millisMax)
  for (const replica of replicas) {
    const found = yield* seen(replica, body)
    expect(found, JSON.stringify(found)).toEqual(unable(detail))
    const askedAt = performance.now()
    const settled = yield* replica.settle(body)
    expect([settled.status, settled.json.errorReason]).toEqual([503, "settle_ledger_temporarily_unavailable"])
    expect(performance.now() - askedAt).toBeLessThan(millisMax)
  }
  yield* mends
  for (const replica of replicas) {
    yield* eventually(seen(replica, body), ({ available, writable }) => available === 1 && writable === 1)
    expect(yield* seen(replica, body)).toEqual(able)
    const paid = yield* eventually(replica.settle(yield* payment), ({ status }) => status !== 503)
    expect(paid.json).toMatchObject({ success: true })
  }
})

/** A port that leads to one server or to another. */
const relay = (port: () => number) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const sockets = new Set<{ destroy: () => unknown }>()
      const server = createServer((from) => {
        const to = connect(port(), "127.0.0.1")
        for (const socket of [from, to]) {
          sockets.add(socket)
          socket.on("error", () => {
            from.destroy()
            to.destroy()
          })
          socket.on("close", () => sockets.delete(socket))
        }
        from.pipe(to).pipe(from)
      })
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
      const cut = () => sockets.forEach((socket) => socket.destroy())
      return { cut, server, port: (server.address() as { port: number }).port }
    }),
    ({ cut, server }) =>
      Effect.sync(() => {
        cut()
        server.close()
      })
  )

/** A small disk in memory, if this process may mount one. */
const smallDisk = Effect.acquireRelease(
  Effect.sync(() => {
    const folder = mkdtempSync(join(tmpdir(), "tollkeeper-disk-"))
    try {
      execFileSync("mount", ["-t", "tmpfs", "-o", "size=64m", "tmpfs", folder], { stdio: "ignore" })
    } catch {
      return { folder, isMounted: false }
    }
    const { gid, uid } = unprivileged()
    if (uid !== undefined) chownSync(folder, uid, gid!)
    return { folder, isMounted: true }
  }),
  ({ folder, isMounted }) =>
    Effect.sync(() => {
      if (isMounted) execFileSync("umount", ["-l", folder])
      rmSync(folder, { recursive: true, force: true })
    })
)

describe.skipIf(!isPossible)("a database that accepts no writes", () => {
  it.live(
    "reports a database that refuses writes while it is read-only",
    () =>
      Effect.gen(function* () {
        const { url } = yield* ownServer
        yield* expectTruth(
          yield* startReplicas(url),
          "the database is read-only",
          configure(url, "default_transaction_read_only", "on"),
          configure(url, "default_transaction_read_only", "off")
        )
      }).pipe(Effect.scoped),
    240_000
  )

  it.live(
    "reports a database that refuses writes until a standby is promoted",
    () =>
      Effect.gen(function* () {
        const primary = yield* ownServer
        let target = Number(new URL(primary.url).port)
        const way = yield* relay(() => target)
        const replicas = yield* startReplicas(primary.url.replace(/:\d+\//, `:${way.port}/`))
        const standby = yield* Effect.acquireRelease(
          Effect.promise(() => startReplica(primary.url, connectionsMax)),
          ({ stop }) => Effect.promise(stop)
        )
        yield* operate(primary.url, "select pg_switch_wal()::text")
        yield* expectTruth(
          replicas,
          "the database is read-only",
          Effect.sync(() => {
            target = Number(new URL(standby.url).port)
            way.cut()
          }),
          operate(standby.url, "select pg_promote()::text")
        )
      }).pipe(Effect.scoped),
    240_000
  )

  it.live(
    "reports blocked writes while commits wait for a missing standby",
    () =>
      Effect.gen(function* () {
        const { url } = yield* ownServer
        yield* expectTruth(
          yield* startReplicas(url),
          expect.stringMatching(/did not finish a write within 1200 ms|did not answer|fails writes/),
          configure(url, "synchronous_standby_names", "gone"),
          configure(url, "synchronous_standby_names", "")
        )
      }).pipe(Effect.scoped),
    240_000
  )

  it.live(
    "reports a database that refuses writes while its disk is full",
    (context) =>
      Effect.gen(function* () {
        const { folder, isMounted } = yield* smallDisk
        if (!isMounted) return context.skip()
        const { url } = yield* ownServer
        yield* operate(url, `create tablespace small location '${folder}'`)
        yield* operate(url, "create database small tablespace small")
        const filler = join(folder, "filler")
        yield* expectTruth(
          yield* startReplicas(url.replace(/\/postgres$/, "/small")),
          "the database's disk is full",
          Effect.sync(() => {
            const { bavail, bsize } = statfsSync(folder)
            for (const share of [1, 0.5, 0.25]) {
              try {
                writeFileSync(`${filler}${share}`, Buffer.alloc(Math.floor(bavail * bsize * share)))
              } catch {
                // The part that fits is there.
              }
            }
          }),
          Effect.sync(() => {
            for (const share of [1, 0.5, 0.25]) if (existsSync(`${filler}${share}`)) rmSync(`${filler}${share}`)
          })
        )
      }).pipe(Effect.scoped),
    240_000
  )
})
