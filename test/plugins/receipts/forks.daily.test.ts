// Silent forks, each shown by a witness: a database restored together with its state folder, a database recreated with
// the same keys, and one backup restored twice. No part of a fork is signed; receipts continue without proofs; an
// operator's new epoch contains the unsigned entries, and the witness signs that.
import { NodeServices } from "@effect/platform-node"
import { expect, it } from "@effect/vitest"
import { Context, Effect, FileSystem, Layer } from "effect"
import { createServer } from "node:http"
import { describe } from "vitest"
import { DatabaseSource } from "../../../kernel/database/DatabaseSource.ts"
import { type DatabaseKind, databaseKinds, sourceLayer } from "../../support/databases.ts"
import { eventually } from "../../support/eventually.ts"
import { type Facilitator, startFacilitator } from "../../support/facilitator.ts"
import { freePort } from "../../support/freePort.ts"
import { receiptSecrets } from "./secrets.ts"
import { startWitness } from "./startWitness.ts"

const makeFolder = Effect.flatMap(FileSystem.FileSystem, (files) => files.makeTempDirectoryScoped())
const hashOf = (i: number) => i.toString(16).padStart(64, "0")

const publish = (facilitator: Facilitator, from: number, to: number) =>
  facilitator.publishedBy(facilitator.sql`insert into kernel_facts (type, version, subject, principal, data)
    select 'settlement.failed', 1, gen_random_uuid()::text, 'anonymous', jsonb_build_object(
      'transaction', lpad(to_hex(i), 64, '0'), 'moved', null, 'feeChargedStroops', '100', 'ledger', null,
      'reason', 'settle_ledger_transaction_failed', 'by', 'operator')
    from generate_series(${from}::int, ${to}::int) i`)

/** A published copy of one epoch, with only its checkpoint. */
const startCopy = Effect.fnUntraced(function* (port: number) {
  let note = ""
  const server = createServer((request, response) =>
    request.url === "/copy/checkpoint" && note !== "" ? response.end(note) : response.writeHead(404).end()
  )
  yield* Effect.acquireRelease(
    Effect.callback<void>((resume) => void server.listen(port, "127.0.0.1", () => resume(Effect.void))),
    () => Effect.sync(() => server.close())
  )
  return {
    setting: `receipts.copies=["http://127.0.0.1:${port}/copy"]`,
    has: (published: string) => void (note = published)
  }
})

const newDatabase = (kind: DatabaseKind) =>
  Effect.map(
    Effect.flatMap(Layer.build(sourceLayer(kind)), (context) => Context.get(context, DatabaseSource).open),
    (opened) => Layer.succeed(DatabaseSource, { open: Effect.succeed(opened) })
  )

const proven = (facilitator: Facilitator, i: number) =>
  Effect.map(
    eventually(facilitator.ask(`/receipts/${hashOf(i)}?proof=1`), ({ json }) => Boolean(json?.outcomes?.[0]?.proof)),
    ({ json }) => json.outcomes
  )

/** The proof of an outcome that is logged but not signed. */
const unproven = (facilitator: Facilitator, i: number) =>
  Effect.map(
    eventually(facilitator.ask(`/receipts/${hashOf(i)}?proof=1`), ({ status }) => status === 200),
    ({ json }) => json.outcomes[0].proof
  )

const isFork = (facilitator: Facilitator) =>
  eventually(facilitator.ask("/health/ready"), ({ text }) => text.includes("the log is a fork"))

describe.each(databaseKinds)("a fork of the log on %s", (kind) => {
  it.live(
    "is shown by a published copy, and by none that the log did not sign",
    () =>
      Effect.gen(function* () {
        const files = yield* FileSystem.FileSystem
        const { ledgerUrl } = yield* startFacilitator({ channels: 1, set: ["plugins=[ledger-local,x402-exact]"] })
        const copy = yield* startCopy(yield* Effect.promise(freePort))
        const set = ["plugins=[x402-exact,receipts]", "receipts.host=pay.example", copy.setting]
        const [database, own] = [yield* newDatabase(kind), yield* makeFolder]
        const start = startFacilitator({
          ledgerUrl,
          database,
          stateFolder: own,
          channels: 1,
          environment: receiptSecrets,
          set
        })
        const markFile = `${own}/receipts.checkpoint`
        const first = yield* start
        yield* publish(first, 1, 5)
        const older = (yield* proven(first, 5))[0].proof.checkpoint
        const mark = yield* files.readFileString(markFile)
        yield* publish(first, 6, 10)
        const published = (yield* proven(first, 10))[0].proof.checkpoint
        // A copy that is behind, and a copy with a size that no key of the log signed.
        copy.has(older)
        yield* publish(first, 11, 11)
        yield* proven(first, 11)
        copy.has(published.replace("\n12\n", "\n99\n"))
        yield* first.sql`with leaves as (delete from receipts_leaves where index >= 7),
            checkpoints as (delete from receipts_checkpoints where size > 7)
          update receipts_epochs set size = 7`
        yield* first.stop
        yield* files.writeFileString(markFile, mark)

        const restored = yield* start
        yield* publish(restored, 101, 102)
        yield* proven(restored, 102)
        yield* restored.stop
        yield* files.writeFileString(markFile, mark)
        copy.has(published)
        const again = yield* start
        yield* publish(again, 201, 201)
        const { text } = yield* isFork(again)
        expect(text).toContain("has 12 leaves")
        expect(yield* unproven(again, 201)).toBeNull()
      }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)) as Effect.Effect<void>,
    240_000
  )

  it.live(
    "is shown by a witness and stops signing, until an operator begins an epoch",
    () =>
      Effect.gen(function* () {
        const files = yield* FileSystem.FileSystem
        const { ledgerUrl } = yield* startFacilitator({ channels: 1, set: ["plugins=[ledger-local,x402-exact]"] })
        const witness = yield* startWitness(yield* Effect.promise(freePort))
        const set = ["plugins=[x402-exact,receipts]", "receipts.host=pay.example", witness.setting]
        const start = (database: Layer.Layer<DatabaseSource>, stateFolder: string) =>
          startFacilitator({ ledgerUrl, database, stateFolder, channels: 1, environment: receiptSecrets, set })
        const isCosigned = (facilitator: Facilitator, place: string, size: number) =>
          Effect.map(
            eventually(
              facilitator.ask(`${place}/checkpoint`),
              ({ text }) => text.includes(`\n${size}\n`) && text.includes(`\n— ${witness.name} `)
            ),
            ({ text }) => text
          )
        const [database, own] = [yield* newDatabase(kind), yield* makeFolder]
        const markFile = `${own}/receipts.checkpoint`

        const first = yield* start(database, own)
        witness.trust(first.url)
        yield* publish(first, 1, 5)
        yield* isCosigned(first, "/log", 7)
        const mark = yield* files.readFileString(markFile)
        yield* publish(first, 6, 10)
        const published = yield* isCosigned(first, "/log", 12)
        yield* first.sql`with leaves as (delete from receipts_leaves where index >= 7),
            checkpoints as (delete from receipts_checkpoints where size > 7)
          update receipts_epochs set size = 7`
        yield* first.stop
        yield* files.writeFileString(markFile, mark)

        // Restored together with its state folder.
        const restored = yield* start(database, own)
        yield* publish(restored, 101, 102)
        yield* isFork(restored)
        expect(yield* unproven(restored, 102)).toBeNull()
        expect((yield* restored.ask("/log/checkpoint")).text).toContain("\n7\n")
        // Does the same as `tollkeeper receipts begin-epoch`.
        const [origin, size, root] = published.split("\n")
        const copy = JSON.stringify({ origin, size: Number(size), root })
        yield* restored.sql`update receipts_epochs set ended = 'a backup was restored', published = ${copy}::jsonb`
        const [moved, ...others] = yield* proven(restored, 102)
        expect(others).toEqual([])
        expect(moved.proof.origin).toMatch(/^pay\.example\/log\/[0-9a-f]{16}$/)
        const place = `/${moved.proof.origin.replace("pay.example/", "")}`
        const next = yield* eventually(restored.ask(`${place}/checkpoint`), ({ text }) => text.includes(witness.name))
        expect(next.text).toContain(`\nprevious pay.example/log 12 ${root}\n`)
        expect((yield* restored.ask("/health/ready")).text).not.toContain("the log is a fork")
        const { json } = yield* restored.ask("/log/epochs")
        expect(json.epochs.map((one: any) => one.origin)).toEqual(["pay.example/log", moved.proof.origin])
        // The first epoch is unchanged: a client of it sees one tree.
        expect((yield* restored.ask("/log/checkpoint")).text).toMatch(/^pay\.example\/log\n7\n/)

        // The same backup once more, on another server: a separate epoch, which the witness does not accept.
        yield* restored.sql`delete from receipts_leaves where index >= 7 or epoch > 1`
        yield* restored.sql`delete from receipts_checkpoints where size > 7 or epoch > 1`
        yield* restored.sql`delete from receipts_epochs where epoch > 1`
        yield* restored.sql`update receipts_epochs
          set size = 7, fork = null, ended = null, published = null, server = 'another'`
        yield* restored.stop
        yield* files.writeFileString(markFile, mark)
        const twice = yield* start(database, own)
        yield* publish(twice, 201, 201)
        yield* isFork(twice)
        expect(yield* unproven(twice, 201)).toBeNull()
        yield* twice.stop

        // A new database and state folder with the same keys.
        const made = yield* start(yield* newDatabase(kind), yield* makeFolder)
        yield* publish(made, 301, 301)
        yield* isFork(made)
        expect((yield* made.ask("/log/checkpoint")).status).toBe(404)
      }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)) as Effect.Effect<void>,
    240_000
  )
})
