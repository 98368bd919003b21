// The third side of the audit over a facilitator's correct books: ledger, database and log agree. A changed row of any
// kind is found, and the finding names row and member. A published copy shows the losses of a database.
import { NodeServices } from "@effect/platform-node"
import { expect, it } from "@effect/vitest"
import { Effect, Fiber, Option } from "effect"
import { SqlClient } from "effect/sql"
import { mkdir, mkdtemp, readFile, writeFile } from "node:fs/promises"
import { createServer } from "node:http"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { text as consumeText } from "node:stream/consumers"
import { describe } from "vitest"
import type { LedgerView } from "../../../kernel/audit/readLedger.ts"
import type { Mismatch } from "../../../kernel/audit/compare.ts"
import { verify } from "../../../examples/receipts/verify.mjs"
import { auditLog } from "../../../runtime/auditLog.ts"
import { examine } from "../../../runtime/commands/audit.ts"
import * as NodeHttpCalls from "../../../runtime/platform/nodeHttpCalls.ts"
import { receiptSecrets } from "../../plugins/receipts/secrets.ts"
import { runOperatorCommand } from "../../../runtime/operators.ts"
import { databaseKinds } from "../../support/databases.ts"
import { eventually } from "../../support/eventually.ts"
import { type Facilitator, startFacilitator } from "../../support/facilitator.ts"
import { freePort } from "../../support/freePort.ts"
import { readBooks } from "../../support/readBooks.ts"

const older = 260

const depositClaims = Buffer.from(
  JSON.stringify({ action: "deposit", channel: "ab".repeat(32), payer: "another" })
).toString("base64url")

/** Some of the rows of outcomes, in the epoch of the payments. */
const paid = `epoch = 2 and record is not null`
const aPaid = `epoch = 2 and index = (select max(index) from receipts_leaves where ${paid})`
const settled = `update kernel_settlements set`
const ofSettled = `where state = 'settled'`

/**
 * A change by a person with the database's password: the rule and the member that the audit names, and the statement.
 */
const plants: ReadonlyArray<readonly [rule: string, member: string, statement: string]> = [
  // The settlement's row, with which the receipt's claims and the leaf are compared.
  ["receipt", "scheme", `${settled} scheme = 'upto' ${ofSettled}`],
  ["receipt", "resource", `${settled} resource_url = 'https://seller.example/other' ${ofSettled}`],
  ["receipt", "resource", `${settled} resource_url = null ${ofSettled}`],
  ["receipt", "resourceHash", `${settled} resource_url = repeat('x', 300) ${ofSettled}`],
  ["receipt", "identifierHash", `${settled} identifier = id::text ${ofSettled}`],
  ["receipt", "closedAt", `${settled} closed_at = closed_at + interval '1 hour' ${ofSettled}`],
  ["receipt", "closedAt", `${settled} closed_at = null ${ofSettled}`],
  ["receipt", "asset", `${settled} asset = 'another' ${ofSettled}`],
  ["receipt", "payer", `${settled} payer = pay_to ${ofSettled}`],
  ["receipt", "payTo", `${settled} pay_to = payer ${ofSettled}`],
  ["receipt", "network", `${settled} network = 'ledger:pubnet' ${ofSettled}`],
  ["receipt", "amount", `${settled} moved = 1 ${ofSettled}`],
  ["receipt", "fee", `${settled} fee_charged_stroops = 1 ${ofSettled}`],
  ["receipt", "ledger", `${settled} ledger = ledger + 1 ${ofSettled}`],
  ["receipt of a lost record", "attempts", `${settled} attempt_count = 7 ${ofSettled}`],
  ["receipt of a lost record", "confirmations", `${settled} confirmations = 3 - confirmations ${ofSettled}`],
  ["receipt", "transaction", `${settled} ended_by = encode(sha256(id::text::bytea), 'hex') ${ofSettled}`],
  ["receipt", "action", `${settled} action = '{"kind":"claim"}' ${ofSettled}`],
  ["receipt", "channel", `${settled} action = '{"kind":"deposit","channel":"ab"}' ${ofSettled}`],
  ["receipt", "totals", `${settled} action = '{"kind":"claim","totals":{"ab":"1"}}' ${ofSettled}`],
  ["leaf", "at", `${settled} resolved_at = resolved_at + interval '1 hour' ${ofSettled}`],
  ["leaf", "at", `${settled} resolved_at = clock_timestamp() ${ofSettled}`],
  ["leaf", "reason", `${settled} reason = 'settle_ledger_transaction_failed' ${ofSettled}`],
  ["leaf", "principal", `${settled} principal = 'another' ${ofSettled}`],
  ["log outcome", "failed", `${settled} state = 'failed' ${ofSettled}`],
  ["logged after its end", "submitted", `${settled} state = 'submitted' ${ofSettled}`],
  [
    "recorded before logged",
    "settled",
    `with newest as (select id from kernel_settlements order by ledger desc limit 1),
      attempts as (delete from kernel_attempts where settlement in (select id from newest))
    delete from kernel_settlements where id in (select id from newest)`
  ],
  // The leaf's row.
  ["leaf", "principal", `update receipts_leaves set principal = 'another' where ${paid}`],
  ["leaf", "payer", `update receipts_leaves set payer = pay_to where ${paid}`],
  ["leaf", "payTo", `update receipts_leaves set pay_to = null where ${paid}`],
  ["leaf", "transaction", `update receipts_leaves set transaction = sha256(transaction) where ${paid}`],
  ["leaf", "payer", `update receipts_leaves set payer = 'G' where epoch = 2 and index = 0`],
  [
    "log commitment",
    "record",
    `update receipts_leaves set record = replace(record, 'settled', 'failed') where ${paid}`
  ],
  ["log commitment", "record", `update receipts_leaves set record = '{' where ${aPaid}`],
  ["log commitment", "record", `update receipts_leaves set salt = sha256(salt) where ${aPaid}`],
  ["log commitment", "record", `update receipts_leaves set record = null where ${aPaid}`],
  ["log order", "expected", `delete from receipts_leaves where epoch = 1 and index = 7`],
  ["log size", "leaves", `delete from receipts_leaves where ${aPaid}`],
  [
    "logged",
    "settled",
    `with leaf as (delete from receipts_leaves where ${aPaid}),
      begun as (update receipts_epochs set begun_at = begun_at - interval '1 hour')
    update kernel_settlements set resolved_at = resolved_at - interval '1 minute'`
  ],
  [
    "one leaf",
    "leaf",
    `insert into receipts_leaves select epoch, index + 1, entry, salt, record, transaction from
    receipts_leaves where ${aPaid}`
  ],
  ["checkpoint", "root", `update receipts_leaves set entry = entry || '\\x00'::bytea where epoch = 1 and index = 0`],
  // The stored receipt.
  ["receipt", "receipt", `update receipts_receipts set jws = jws || 'x'`],
  ["receipt", "claims", `update receipts_receipts set jws = 'x'`],
  ["receipt", "network", `update receipts_receipts set network = 'stellar:pubnet'`],
  ["receipt", "leaf", `update receipts_receipts set transaction = sha256(transaction)`],
  ["receipt", "stored", `delete from receipts_receipts`],
  ["receipt", "attestation", `update receipts_receipts set attestation = '{}'`],
  // Tiles, checkpoints and epochs.
  ["log tile", "hash", `update receipts_nodes set hash = sha256(hash)`],
  ["log tile", "hash", `delete from receipts_nodes`],
  ["checkpoint", "note", `update receipts_checkpoints set note = replace(note, '— ', '— evil.')`],
  ["checkpoint", "root", `update receipts_checkpoints set root = sha256('x')`],
  [
    "checkpoint",
    "size",
    `update receipts_checkpoints set size = size - 1 where size = (select max(size)
    from receipts_checkpoints)`
  ],
  ["checkpoint", "signed_at", `update receipts_checkpoints set signed_at = signed_at + interval '1 hour'`],
  ["checkpoint", "signed_at", `update receipts_checkpoints set signed_at = signed_at - interval '1 hour'`],
  ["log size", "says", `update receipts_epochs set size = size + 1 where epoch = 2`],
  ["epoch", "name", `update receipts_epochs set name = 'another' where epoch = 2`],
  ["epoch", "reason", `update receipts_epochs set reason = 'another' where epoch = 2`],
  ["epoch", "previous_size", `update receipts_epochs set previous_size = 1 where epoch = 2`],
  ["epoch", "previous_root", `update receipts_epochs set previous_root = sha256('x') where epoch = 2`],
  ["epoch", "previous_origin", `update receipts_epochs set previous_origin = 'another' where epoch = 2`],
  ["epoch", "statement", `update receipts_epochs set statement = replace(statement, 'log', 'lag') where epoch = 2`],
  ["epoch", "map_since", `update receipts_epochs set map_since = now() + interval '1 day'`],
  // Rows beyond an epoch's size, or of no epoch.
  ["log size", "leaf", `insert into receipts_leaves (epoch, index, entry) values (9, 0, '\\x02')`],
  ["log size", "leaf", `insert into receipts_leaves (epoch, index, entry) values (2, 99, '\\x02')`],
  ["log size", "tile", `insert into receipts_nodes values (2, 1, 0, sha256('x'))`],
  ["log size", "row", `insert into receipts_map values (2, sha256('x'), 99, sha256('x'))`],
  ["log size", "checkpoint", `insert into receipts_checkpoints values (2, 99, sha256('x'), 'x')`],
  // The payment map.
  ["payment map", "value", `update receipts_map set value = sha256(value) where epoch = 2`],
  ["payment map", "key", `update receipts_map set key = sha256(key)`],
  ["payment map", "key", `delete from receipts_map where epoch = 1 and index = 9`],
  ["payment map", "rows", `insert into receipts_map select epoch, sha256(key), index, value from receipts_map`],
  ["payment map", "outcome", `insert into receipts_map select epoch, sha256(key), 0, value from receipts_map limit 1`],
  ["payment map", "subtree", `update receipts_map_pages set subtrees = overlay(subtrees placing '\\x01' from 1)`],
  ["payment map", "map_size", `update receipts_epochs set map_size = size + 5`],
  ["payment map", "key", `update receipts_epochs set map_secret = sha256(map_secret)`],
  // Erasures, and who may read a channel's claims.
  [
    "erasure",
    "act",
    `with gone as (delete from receipts_receipts where transaction in (select transaction from receipts_leaves
        where ${aPaid}))
      update receipts_leaves set erased_transaction = transaction, erased_at = now(), salt = null, record = null,
        transaction = null, principal = null, payer = null, pay_to = null where ${aPaid}`
  ],
  ["erasure", "content", `update receipts_leaves set erased_transaction = transaction where ${aPaid}`],
  ["erasure", "content", `update receipts_leaves set erased_transaction = sha256('x') where epoch = 2 and index = 0`],
  ["channel", "payer", `insert into receipts_channels values (sha256('x'), 'another')`],
  [
    "channel",
    "payer",
    `insert into receipts_channels select transaction, payer, transaction from receipts_leaves where ${aPaid}`
  ],
  ["channel", "payer", `update receipts_receipts set jws = 'x.${depositClaims}.x'`],
  [
    "anchor",
    "transaction",
    `update receipts_epochs set anchored_at = now(), anchor = '{"transaction":"x","checkpoint":"y"}' where epoch = 2`
  ],
  // Keys and published entries.
  ["log keys", "retired", `update receipts_keys set valid_until = now() where purpose = 'receipt'`],
  ["log keys", "announced", `update receipts_keys set valid_from = now() where purpose = 'receipt'`],
  ["log keys", "announced", `update receipts_keys set public_key = sha256('x') where purpose = 'receipt'`],
  ["log keys", "announced", `delete from receipts_keys where purpose = 'receipt'`],
  ["published log", "differs", `update receipts_leaves set entry = '\\x02'::bytea where epoch = 1 and index = 1`],
  [
    "published since",
    "published",
    `delete from receipts_leaves where epoch = 1 and index = (select max(index)
    from receipts_leaves where epoch = 1)`
  ]
]

const auditOf = (
  facilitator: Facilitator,
  options: { copy?: string | undefined; file?: string; view?: LedgerView } = {}
) =>
  Effect.gen(function* () {
    const view = options.view ?? (yield* readBooks(facilitator)).view
    return yield* auditLog({ copy: undefined, ...options, view })
  }).pipe(Effect.provideService(SqlClient.SqlClient, facilitator.sql))

/** Outcomes of settlements that the database has swept: enough for a full tile, and for a page of the map. */
const publishOlder = (facilitator: Facilitator) =>
  facilitator.publishedBy(facilitator.sql`insert into kernel_facts (at, type, version, subject, principal, data)
    select now() - interval '1 day', 'settlement.failed', 1, gen_random_uuid()::text, 'anonymous',
      jsonb_build_object('transaction', lpad(to_hex(i), 64, '0'), 'moved', null, 'feeChargedStroops', '100',
        'ledger', null, 'reason', 'settle_ledger_transaction_failed', 'by', 'operator')
    from generate_series(1, ${older}::int) i`)

/** What anyone has downloaded: the first epoch's checkpoint and tiles, in a folder. */
const download = (facilitator: Facilitator) =>
  Effect.promise(async () => {
    const folder = await mkdtemp(join(tmpdir(), "log-copy-"))
    const save = async (path: string) => {
      const answer = await fetch(`${facilitator.url}/log/${path}`)
      const bytes = Buffer.from(await answer.arrayBuffer())
      await mkdir(dirname(join(folder, path)), { recursive: true })
      await writeFile(join(folder, path), bytes)
      return bytes.toString("utf8")
    }
    const [, size] = (await save("checkpoint")).split("\n")
    for (const tile of ["0/000", `0/001.p/${Number(size) - 256}`, "1/000.p/1"]) await save(`tile/${tile}`)
    return folder
  })

/** The ledger's RPC, which runs `first` before its first answer. */
const rpcAfter = (ledgerUrl: string, first: Effect.Effect<void>) =>
  Effect.gen(function* () {
    let before: Promise<void> | undefined
    const server = createServer(async (request, response) => {
      before ??= Effect.runPromise(first)
      await before
      const headers = { "content-type": "application/json" }
      const body = await consumeText(request)
      response.end(await (await fetch(ledgerUrl, { method: "POST", headers, body })).text())
    })
    const port = yield* Effect.promise(freePort)
    yield* Effect.acquireRelease(
      Effect.callback<void>((resume) => void server.listen(port, "127.0.0.1", () => resume(Effect.void))),
      () => Effect.sync(() => server.close())
    )
    return `http://127.0.0.1:${port}`
  })

const subjectForm =
  /^(leaf|checkpoint|tile|row|page|epoch|announced|retired|pay\.example|localhost|[0-9a-f]{64}|[0-9a-f-]{36})/

describe.each(databaseKinds)("the audit with the log on %s", (database) => {
  it.live(
    "names row and member of each plant, and nothing beside payments",
    () =>
      Effect.gen(function* () {
        const facilitator = yield* startFacilitator({
          database,
          environment: receiptSecrets,
          // The audit's RPC answers only once a payment has ended and is logged.
          set: ["server.port=0", "receipts.host=pay.example", "limits.rpc_timeout_ms=60000"]
        })
        const { sql } = facilitator
        const payer = yield* facilitator.account()
        const seller = (yield* facilitator.account(0n)).publicKey()
        const pay = Effect.gen(function* () {
          const { body } = yield* facilitator.payment({ payer, payTo: seller, amount: 10_000n })
          expect((yield* facilitator.settle(body)).json).toMatchObject({ success: true })
        })
        const outcomes = (count: number) =>
          eventually(sql`select 1 from receipts_leaves where get_byte(entry, 0) = 1`, ({ length }) => length === count)
        const isSigned = eventually(
          sql`select 1 from receipts_epochs e join receipts_checkpoints c using (epoch, size)
            where epoch = (select max(epoch) from receipts_epochs)`,
          ({ length }) => length === 1
        )
        yield* publishOlder(facilitator)
        yield* outcomes(older)
        yield* isSigned
        const copy = yield* download(facilitator)
        yield* sql`update receipts_epochs set ended = 'an operator ended it: a test'`
        for (let number = 0; number < 3; number++) yield* pay
        yield* outcomes(older + 3)
        yield* eventually(sql`select 1 from receipts_epochs where statement is not null`, ({ length }) => length === 1)
        yield* isSigned
        expect(yield* auditOf(facilitator, { copy })).toEqual({
          leaves: older + 3,
          swept: older,
          erased: 0,
          mismatches: []
        })

        const { view } = yield* readBooks(facilitator)
        const missed: Array<unknown> = []
        for (const [rule, member, statement] of plants) {
          // The transaction fails, so that the plant is undone.
          const found: unknown = yield* sql
            .withTransaction(
              Effect.gen(function* () {
                yield* sql.unsafe(statement)
                const isPublished = rule.startsWith("published")
                return yield* Effect.fail(
                  (yield* auditOf(facilitator, isPublished ? { copy, view } : { view })).mismatches
                )
              })
            )
            .pipe(Effect.flip)
          const mismatches = Array.isArray(found) ? (found as ReadonlyArray<Mismatch>) : []
          const isNamed = mismatches.some(
            (one) =>
              one.rule === rule && subjectForm.test(one.subject) && `${one.subject} ${one.detail}`.includes(member)
          )
          if (!isNamed) missed.push([rule, member, statement, found])
        }
        expect(missed).toEqual([])

        // Payments cause no report, even if an outcome is logged between two of the audit's reads.
        const rpc = yield* rpcAfter(facilitator.ledgerUrl, Effect.andThen(pay, outcomes(older + 4)).pipe(Effect.orDie))
        const examined = yield* examine({ rpc: Option.some(rpc), withLog: true, logCopy: Option.none() }).pipe(
          Effect.provide(facilitator.services),
          Effect.provide(NodeHttpCalls.layer)
        )
        expect([examined.logged?.leaves, examined.mismatches]).toEqual([older + 4, []])
        const paying = yield* Effect.forkChild(Effect.repeat(pay, { times: 7 }))
        for (let n = 0; n < 6; n++) expect((yield* auditOf(facilitator)).mismatches).toEqual([])
        yield* Fiber.join(paying)
        yield* outcomes(older + 12)
        yield* isSigned

        // An erased payment: others' proofs hold, the audit counts it, and it cannot be read again.
        const [first, second] = yield* sql<{ hash: string }>`select encode(transaction, 'hex') as hash
          from receipts_leaves where ${sql.literal(paid)} order by index`
        const read = (hash: string) => facilitator.ask(`/receipts/${hash}?proof=1`)
        const kept = (yield* read(first!.hash)).json
        const erase = (...words: ReadonlyArray<string>) =>
          runOperatorCommand(facilitator.services, { words: ["receipts", "erase", ...words], folder: "." }, "0")
        const because = ["--reason", "the payer asked"]
        expect((yield* erase(first!.hash)).status).toBe(1)
        expect((yield* erase(first!.hash, ...because)).out).toContain("of epoch 2")
        expect((yield* erase(first!.hash, ...because)).err).toContain("no content")
        expect((yield* read(first!.hash)).status).toBe(404)
        const did = (yield* facilitator.ask("/.well-known/did.json")).json
        const other = (yield* read(second!.hash)).json
        yield* Effect.promise(async () => {
          for (const answer of [kept, other]) expect((await verify(answer, did)).amount).toBe("10000")
        })
        expect(yield* auditOf(facilitator)).toMatchObject({ erased: 1, mismatches: [] })
        const [row] = yield* sql<{ left: string }>`select row_to_json(l)::text as left from receipts_leaves l
          where erased_transaction is not null`
        expect(row!.left).not.toContain(payer.publicKey())
        // An act does not record the erasure of another payment, and a settlement without its leaf is named.
        const { view: seen } = yield* readBooks(facilitator)
        const hidden = yield* sql
          .withTransaction(
            Effect.gen(function* () {
              yield* sql`update receipts_leaves set erased_transaction = sha256('x')
                where erased_transaction is not null`
              yield* sql`update receipts_epochs set begun_at = begun_at - interval '1 hour'`
              yield* sql`update kernel_settlements set resolved_at = resolved_at - interval '1 minute'`
              return yield* Effect.fail(
                (yield* auditOf(facilitator, { view: seen })).mismatches.map(({ rule }) => rule)
              )
            })
          )
          .pipe(Effect.flip)
        expect(hidden).toContain("erasure")
        expect(hidden).toContain("logged")

        // A stored position continues after the last leaf, and keeps the earlier findings.
        const file = join(copy, "position.json")
        yield* auditOf(facilitator, { file })
        yield* sql`update receipts_leaves set payer = 'another' where epoch = 1 and index = 7`
        yield* pay
        yield* outcomes(older + 13)
        const { leaves, mismatches } = yield* auditOf(facilitator, { file })
        expect([leaves, mismatches]).toEqual([older + 13 - 1, []])
        const position = JSON.parse(yield* Effect.promise(() => readFile(file, "utf8")))
        expect([position.trees[1].size, position.leaves]).toEqual([older + 2, older + 13 - 1])
        yield* sql`update receipts_leaves set payer = 'another' where ${sql.literal(aPaid)}`
        yield* pay
        yield* outcomes(older + 14)
        yield* sql`update receipts_leaves set payer = 'another' where ${sql.literal(aPaid)}`
        const found = (yield* auditOf(facilitator, { file })).mismatches
        expect(found.map(({ rule, detail }) => `${rule}: ${detail}`)).toEqual([
          "leaf: payer differs from the settlement's"
        ])
        expect((yield* auditOf(facilitator, { file })).mismatches).toEqual(found)
      }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)) as Effect.Effect<void>,
    240_000
  )
})
