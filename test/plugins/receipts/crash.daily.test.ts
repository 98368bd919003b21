// The log across ends of processes and databases: killed between an outcome and its leaf, two replicas that log the
// same outcomes, and a restored backup, which the published log shows to be incomplete.
import { NodeServices } from "@effect/platform-node"
import { PgClient } from "@effect/sql-pg"
import { expect, it } from "@effect/vitest"
import { Keypair } from "@stellar/stellar-sdk"
import { Context, Effect, FileSystem, Layer, Redacted } from "effect"
import { SqlClient } from "effect/sql"
import { writeFileSync } from "node:fs"
import { describe } from "vitest"
import { isHarmlessAfterRestore } from "../../support/harmlessAfterRestore.ts"
import { DatabaseSource } from "../../../kernel/database/DatabaseSource.ts"
import { openEmbedded } from "../../../runtime/platform/pglite.ts"
import { auditLog } from "../../../runtime/auditLog.ts"
import { keepLog } from "../../chaos/receipts.ts"
import { type DatabaseKind, databaseKinds, sourceLayer } from "../../support/databases.ts"
import { eventually } from "../../support/eventually.ts"
import { type Facilitator, startFacilitator } from "../../support/facilitator.ts"
import { freePort } from "../../support/freePort.ts"
import { launchProgram } from "../../support/launchProgram.ts"
import { moveDatabase, startCluster } from "../../support/postgres.ts"
import { readBooks } from "../../support/readBooks.ts"
import { receiptSecrets } from "./secrets.ts"

const signing = ["plugins=[x402-exact,receipts]", "receipts.host=pay.example"]
const startLedger = startFacilitator({ closeMillis: 500, channels: 1, set: ["plugins=[ledger-local,x402-exact]"] })
const makeFolder = Effect.flatMap(FileSystem.FileSystem, (files) => files.makeTempDirectoryScoped())

const opened = (kind: DatabaseKind) =>
  Effect.flatMap(Layer.build(sourceLayer(kind)), (context) => Context.get(context, DatabaseSource).open)

const lasting = (kind: DatabaseKind) =>
  Effect.map(opened(kind), (source) => Layer.succeed(DatabaseSource, { open: Effect.succeed(source) }))

interface Count {
  readonly outcomes: number
  readonly leaves: number
}

/** Counts settled settlements and leaves of outcomes. */
const counted = (sql: SqlClient.SqlClient) =>
  Effect.map(
    sql<Count>`select (select count(*)::int from kernel_settlements where state = 'settled') as outcomes,
      (select count(*)::int from receipts_leaves where record is not null) as leaves`,
    ([row]) => row!
  )

/** Settles a payment; retries while the facilitator is busy or the outcome is open. */
const settleAt = (url: string, body: unknown) =>
  eventually(
    Effect.promise(async () => {
      const headers = { "content-type": "application/json", "idempotency-key": "killed-between-outcome-and-leaf" }
      const init = { method: "POST", headers, body: JSON.stringify(body) }
      return (await fetch(`${url}/settle`, init).then((answer) => answer.json())) as any
    }),
    ({ success }) => success === true
  )

const provenAt = (url: string, hash: string) =>
  eventually(
    Effect.promise(async () => (await fetch(`${url}/receipts/${hash}?proof=1`).then((answer) => answer.json())) as any),
    ({ outcomes }) => outcomes?.[0]?.proof?.size !== undefined
  )

describe.each(databaseKinds)("the log of receipts on %s", (kind) => {
  it.live(
    "killed between an outcome and its leaf, the outcome is in the log once",
    () =>
      Effect.gen(function* () {
        const world = yield* startLedger
        const [stateFolder, port] = [yield* makeFolder, yield* Effect.promise(freePort)]
        const source = kind === "postgres" ? yield* opened(kind) : undefined
        const url = source?.kind === "server" ? Redacted.value(source.url) : undefined
        const launch = (env: Record<string, string>) =>
          launchProgram({
            world,
            stateFolder,
            port,
            channels: 1,
            set: signing,
            env: { ...receiptSecrets, ...env, ...(url === undefined ? {} : { DATABASE_URL: url }) }
          })
        const killed = yield* launch({ TOLLKEEPER_TEST_CRASH_AT: "afterResolve" })
        const identifier = { info: { required: true, id: "killed-between-outcome-and-leaf" } }
        const { body } = yield* world.payment({
          payer: yield* world.account(),
          payTo: (yield* world.account()).publicKey(),
          amount: 1_000n,
          extensions: { "payment-identifier": identifier }
        })
        const cutOff = yield* Effect.promise(() =>
          fetch(`${killed.url}/settle`, {
            method: "POST",
            headers: { "content-type": "application/json" },
            body: JSON.stringify(body)
          }).then(
            () => false,
            () => true
          )
        )
        expect(cutOff).toBe(true)
        // We can read a server's database separately: it has the outcome, but no leaf yet.
        if (url !== undefined)
          expect(
            yield* Effect.flatMap(SqlClient.SqlClient, counted).pipe(
              Effect.provide(PgClient.layer({ url: Redacted.make(url) }))
            )
          ).toEqual({ outcomes: 1, leaves: 0 })
        const again = yield* launch({})
        const answer = yield* settleAt(again.url, body)
        const { outcomes, receipt } = yield* provenAt(again.url, answer.transaction)
        expect(receipt).toBe(answer.extensions["tollkeeper-receipt"].info.receipt)
        // The first two leaves are keys.
        expect(outcomes).toMatchObject([{ proof: { epoch: 1, index: 2, size: 3 } }])
        expect(yield* settleAt(again.url, body)).toEqual(answer)
        expect((yield* provenAt(again.url, answer.transaction)).outcomes).toEqual(outcomes)
      }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)) as Effect.Effect<void>,
    480_000
  )

  it.live(
    "two replicas put every outcome into it exactly once",
    () =>
      Effect.gen(function* () {
        const { ledgerUrl } = yield* startLedger
        const shared = { ledgerUrl, database: yield* lasting(kind), environment: receiptSecrets, set: signing }
        const stateFolder = yield* makeFolder
        const replicas = [
          yield* startFacilitator({ ...shared, stateFolder }),
          yield* startFacilitator({ ...shared, stateFolder: kind === "pglite" ? stateFolder : yield* makeFolder })
        ]
        const [first] = replicas as [Facilitator]
        const payTo = (yield* first.account()).publicKey()
        const paid = yield* Effect.forEach(
          Array.from({ length: 12 }, (_, n) => replicas[n % 2]!),
          Effect.fnUntraced(function* (replica) {
            const { body } = yield* replica.payment({ payer: yield* replica.account(), payTo, amount: 1_000n })
            return { replica, answer: yield* settleAt(replica.url, body) }
          }),
          { concurrency: 6 }
        )
        const last = yield* eventually(counted(first.sql), ({ leaves }) => leaves >= paid.length)
        expect(last).toEqual({ outcomes: 12, leaves: 12 })
        // Each replica returns the receipt from the other's answer.
        for (const { answer, replica } of paid) {
          const other = replicas.find((one) => one !== replica)!
          const { outcomes, receipt } = yield* provenAt(other.url, answer.transaction)
          expect(outcomes).toHaveLength(1)
          expect(receipt).toBe(answer.extensions["tollkeeper-receipt"].info.receipt)
        }
        const again = yield* first.sql<{ often: number }>`select count(*)::int as often from receipts_leaves
          where record is not null group by record::jsonb->>'settlement' having count(*) > 1`
        expect(again).toEqual([])
      }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)) as Effect.Effect<void>,
    240_000
  )

  it.live(
    "a backup that is restored begins an epoch, and the published log names what is missing",
    () =>
      Effect.gen(function* () {
        const world = yield* startLedger
        const shared = {
          ledgerUrl: world.ledgerUrl,
          environment: { ...receiptSecrets, SPONSOR_SECRET: Keypair.random().secret() },
          set: signing
        }
        const { database, restore } = yield* backedUp(kind)
        const before = yield* startFacilitator({ ...shared, database })
        const payer = yield* world.account()
        const payTo = (yield* world.account()).publicKey()
        const pay = Effect.gen(function* () {
          const { body } = yield* before.payment({ payer, payTo, amount: 1_000n, maxTimeoutSeconds: 300 })
          const { transaction } = yield* settleAt(before.url, body)
          yield* provenAt(before.url, transaction)
          return { body, transaction }
        })
        yield* pay
        const restored = yield* restore
        const lost = [yield* pay, yield* pay]
        const folder = yield* makeFolder
        const copy = yield* Effect.promise(() => keepLog(before.url, folder))
        yield* before.stop

        // The state folder was lost with the machine: only the database's identity reveals the restore.
        const after = yield* startFacilitator({ ...shared, database: restored })
        const { epochs } = (yield* after.ask("/log/epochs")).json
        expect(epochs.map(({ epoch, size }: any) => [epoch, size])).toMatchObject([
          [1, 3],
          [2, 3]
        ])
        const audit = Effect.gen(function* () {
          const { view } = yield* readBooks(after)
          return (yield* auditLog({ copy, view })).mismatches
        }).pipe(Effect.provideService(SqlClient.SqlClient, after.sql))
        const missing = {
          rule: "published since",
          subject: "pay.example/log",
          detail: "leaves 3 to 4 were published, but the database does not have them"
        }
        expect((yield* audit).filter(({ rule }) => !isHarmlessAfterRestore(rule) || rule === missing.rule)).toEqual([
          missing
        ])
        // Each payment that is retried is adopted, and has a leaf in the new epoch.
        for (const { body, transaction } of lost) {
          expect((yield* settleAt(after.url, body)).transaction).toBe(transaction)
          expect((yield* provenAt(after.url, transaction)).outcomes).toMatchObject([{ proof: { epoch: 2 } }])
        }
        expect((yield* audit).map(({ rule }) => rule)).toEqual([missing.rule])
      }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)) as Effect.Effect<void>,
    240_000
  )
})

/** Returns a database and a restored backup of it: a dump in a fresh cluster, or the embedded database's archive. */
const backedUp = Effect.fnUntraced(function* (kind: DatabaseKind) {
  if (kind === "postgres") {
    const cluster = Effect.acquireRelease(Effect.promise(startCluster), ({ stop }) => Effect.promise(stop))
    const [from, to] = [yield* cluster, yield* cluster]
    const at = (url: string) =>
      Layer.succeed(DatabaseSource, { open: Effect.succeed({ kind: "server" as const, url: Redacted.make(url) }) })
    const restore = Effect.sync(() => {
      moveDatabase(from.url, to.url)
      return at(to.url)
    })
    return { database: at(from.url), restore }
  }
  const from = yield* openEmbedded({})
  const at = ({ connect, dump }: typeof from) =>
    Layer.succeed(DatabaseSource, {
      open: Effect.succeed({ kind: "embedded" as const, connect, dump, connectionsMax: 8 })
    })
  const file = `${yield* makeFolder}/state.tar`
  const restore = Effect.gen(function* () {
    writeFileSync(file, yield* from.dump)
    return at(yield* openEmbedded({ from: file }))
  })
  return { database: at(from), restore }
})
