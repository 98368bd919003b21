// The third side of the audit over a facilitator's correct books: ledger, database and log agree. Each injected
// difference is found, including those in the log's own rows, and a published copy shows the losses of a database.
import { NodeServices } from "@effect/platform-node"
import { expect, it } from "@effect/vitest"
import { Effect, Option } from "effect"
import { SqlClient } from "effect/sql"
import { mkdir, mkdtemp, writeFile } from "node:fs/promises"
import { createServer } from "node:http"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { text as consumeText } from "node:stream/consumers"
import { describe } from "vitest"
import type { Claims } from "../../../kernel/audit/auditRows.ts"
import { compareLog, type LogView } from "../../../kernel/audit/compareLog.ts"
import type { LedgerView } from "../../../kernel/audit/readLedger.ts"
import { examine } from "../../../runtime/commands/audit.ts"
import * as NodeHttpCalls from "../../../runtime/platform/nodeHttpCalls.ts"
import { readLog } from "../../../runtime/readLog.ts"
import { receiptSecrets } from "../../plugins/receipts/secrets.ts"
import { databaseKinds } from "../../support/databases.ts"
import { eventually } from "../../support/eventually.ts"
import { type Facilitator, startFacilitator } from "../../support/facilitator.ts"
import { freePort } from "../../support/freePort.ts"
import { readBooks } from "../../support/readBooks.ts"

interface Sides {
  readonly claims: Claims
  readonly view: LedgerView
  readonly log: LogView
}

const first =
  (change: (one: LogView["outcomes"][number]) => Partial<LogView["outcomes"][number]>) =>
  ({ log, ...rest }: Sides): Sides => ({
    ...rest,
    log: { ...log, outcomes: log.outcomes.map((one, at) => (at === 0 ? { ...one, ...change(one) } : one)) }
  })

/** A difference between the sides, and the rule that finds it. */
const differences: ReadonlyArray<readonly [rule: string, change: (sides: Sides) => Sides]> = [
  ["log outcome", first(() => ({ outcome: "failed" }))],
  ["log and ledger", first(() => ({ outcome: "failed" }))],
  ["log and ledger", first(() => ({ transaction: "0".repeat(64) }))],
  ["log and ledger", first(() => ({ moved: "1" }))],
  ["log transaction", first(() => ({ transaction: "0".repeat(64) }))],
  ["log amount", first(() => ({ moved: "1" }))],
  ["log fee", first(() => ({ fee: "1" }))],
  ["log ledger", first(({ ledger }) => ({ ledger: ledger! + 1 }))],
  ["one leaf", ({ log, ...rest }) => ({ ...rest, log: { ...log, outcomes: [...log.outcomes, log.outcomes[0]!] } })],
  [
    "logged",
    ({ claims, log, ...rest }) => ({
      ...rest,
      claims,
      log: { ...log, outcomes: log.outcomes.slice(1), due: new Set(claims.settlements.map(({ id }) => id)) }
    })
  ],
  [
    "recorded before logged",
    ({ claims, ...rest }) => ({ ...rest, claims: { ...claims, settlements: claims.settlements.slice(0, -1) } })
  ],
  [
    "logged after its end",
    ({ claims, ...rest }) => ({
      ...rest,
      claims: { ...claims, settlements: claims.settlements.map((one) => ({ ...one, state: "submitted" })) }
    })
  ]
]

/** A statement by which a person with the database's password could change the log, and the rule that finds it. */
const tamperings: ReadonlyArray<readonly [rule: string, statement: string]> = [
  [
    "log commitment",
    `update receipts_leaves set record = replace(record, '"outcome":"settled"', '"outcome":"failed"')
    where index = (select min(index) from receipts_leaves where record is not null)`
  ],
  ["checkpoint", `update receipts_leaves set entry = entry || '\\x00'::bytea where index = 0`],
  ["log size", `delete from receipts_leaves where index = (select max(index) from receipts_leaves)`],
  ["log order", `delete from receipts_leaves where index = 1`],
  ["checkpoint", `update receipts_checkpoints set note = replace(note, '— ', '— evil.')`],
  ["checkpoint", `update receipts_checkpoints set root = sha256('x')`],
  ["receipt", `update receipts_receipts set jws = jws || 'x'`],
  ["receipt", `update receipts_receipts set network = 'stellar:pubnet'`],
  ["receipt", `update receipts_receipts set transaction = sha256(transaction)`],
  ["receipt", `update kernel_settlements set scheme = 'upto' where state = 'settled'`],
  ["receipt", `update kernel_settlements set resource_url = 'https://seller.example/other' where state = 'settled'`],
  ["receipt", `update kernel_settlements set identifier = id::text where state = 'settled'`],
  ["receipt", `update kernel_settlements set closed_at = closed_at + interval '1 hour' where state = 'settled'`],
  ["receipt", `update kernel_settlements set asset = 'another' where state = 'settled'`],
  ["leaf", `update receipts_leaves set principal = 'another' where record is not null`],
  ["leaf", `update receipts_leaves set payer = pay_to where record is not null`],
  ["leaf", `update receipts_leaves set pay_to = null where record is not null`],
  ["leaf", `update receipts_leaves set transaction = sha256(transaction) where record is not null`],
  ["leaf", `update kernel_settlements set resolved_at = resolved_at + interval '1 hour' where state = 'settled'`],
  ["payment map", `update receipts_map set value = sha256(value)`],
  ["payment map", `update receipts_map set key = sha256(key)`],
  ["payment map", `delete from receipts_map where index = (select max(index) from receipts_map)`],
  ["payment map", `insert into receipts_map select epoch, sha256(key), 0, value from receipts_map limit 1`],
  ["payment map", `update receipts_epochs set map_secret = sha256(map_secret)`],
  ["log keys", `update receipts_keys set valid_until = now() where purpose = 'receipt'`],
  ["log keys", `update receipts_keys set valid_from = now() where purpose = 'receipt'`],
  ["log keys", `update receipts_keys set public_key = sha256('x') where purpose = 'receipt'`],
  ["log keys", `delete from receipts_keys where purpose = 'receipt'`],
  ["published log", `update receipts_leaves set entry = '\\x02'::bytea where index = 1`],
  ["published since", `delete from receipts_leaves where index = (select max(index) from receipts_leaves)`]
]

const readSides = (facilitator: Facilitator) =>
  Effect.gen(function* () {
    const books = yield* readBooks(facilitator)
    return { ...books, log: yield* readLog(`${facilitator.url}/log`) } satisfies Sides
  }).pipe(Effect.provideService(SqlClient.SqlClient, facilitator.sql))

/** What anyone has downloaded: the checkpoint and its one tile, in a folder. */
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
    await save(`tile/0/000.p/${size}`)
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

const rulesOf = ({ claims, log, view }: Sides) => compareLog(claims, view, log).mismatches.map(({ rule }) => rule)

describe.each(databaseKinds)("the audit with the log on %s", (database) => {
  it.live(
    "finds nothing where all agree, and each difference",
    () =>
      Effect.gen(function* () {
        const facilitator = yield* startFacilitator({
          database,
          environment: receiptSecrets,
          // The audit's RPC answers only once a payment has ended and is logged.
          set: ["server.port=0", "limits.rpc_timeout_ms=60000"]
        })
        const payer = yield* facilitator.account()
        const seller = (yield* facilitator.account(0n)).publicKey()
        for (let number = 0; number < 3; number++) {
          const { body } = yield* facilitator.payment({ payer, payTo: seller, amount: 10_000n })
          expect((yield* facilitator.settle(body)).json).toMatchObject({ success: true })
        }
        const { log } = yield* eventually(readSides(facilitator), ({ log }) => log.outcomes.length === 3)
        expect(log.outcomes.map(({ outcome }) => outcome)).toEqual(["settled", "settled", "settled"])
        const sides = yield* eventually(readSides(facilitator), ({ log: { issues } }) => issues.length === 0)
        expect(compareLog(sides.claims, sides.view, sides.log)).toEqual({ leaves: 3, swept: 0, mismatches: [] })
        for (const [rule, change] of differences)
          expect([rule, rulesOf(change(sides))]).toEqual([rule, expect.arrayContaining([rule])])
        // Other payments in the meantime: recording and logging between the audit's readings make no difference in the
        // log.
        const paysMeanwhile = Effect.gen(function* () {
          const { body } = yield* facilitator.payment({ payer, payTo: seller, amount: 10_000n })
          expect((yield* facilitator.settle(body)).json).toMatchObject({ success: true })
          const leaves = facilitator.sql`select 1 from receipts_leaves where record is not null`
          yield* eventually(leaves, ({ length }) => length === 4)
        }).pipe(Effect.orDie)
        const rpc = yield* rpcAfter(facilitator.ledgerUrl, paysMeanwhile)
        const examined = yield* examine({ rpc: Option.some(rpc), withLog: true, logCopy: Option.none() }).pipe(
          Effect.provide(facilitator.services),
          Effect.provide(NodeHttpCalls.layer)
        )
        expect(examined.logged?.leaves).toBe(3)
        expect(examined.mismatches.filter(({ rule }) => rule.includes("log"))).toEqual([])
        const { sql } = facilitator
        // Checkpoints follow the leaves; the copy is of a checkpoint that covers the last outcome.
        const last = sides.log.outcomes.at(-1)!.index + 1
        yield* eventually(facilitator.ask("/log/checkpoint"), ({ text }) => Number(text.split("\n")[1]) > last)
        const copy = yield* download(facilitator)
        for (const [rule, statement] of tamperings) {
          const issues = yield* sql
            .withTransaction(
              Effect.gen(function* () {
                yield* sql.unsafe(statement)
                const { issues } = yield* readLog(rule.startsWith("published") ? copy : undefined)
                return yield* Effect.fail(issues)
              }).pipe(Effect.provideService(SqlClient.SqlClient, sql))
            )
            .pipe(Effect.flip)
          expect([rule, (issues as LogView["issues"]).map((one) => one.rule)]).toEqual([
            rule,
            expect.arrayContaining([rule])
          ])
        }
      }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)) as Effect.Effect<void>,
    240_000
  )
})
