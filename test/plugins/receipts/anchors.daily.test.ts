// The log's anchor on the ledger: recorded before it is sent, sent once across a crash, counted in the books, and
// checked by the verifier, which refuses an anchor of another transaction, checkpoint, account or log.
import { NodeServices } from "@effect/platform-node"
import { expect, it } from "@effect/vitest"
import { Context, Effect, FileSystem, Layer, Option } from "effect"
import { writeFile } from "node:fs/promises"
import { join } from "node:path"
import { describe } from "vitest"
import { DatabaseSource } from "../../../kernel/database/DatabaseSource.ts"
import { examine } from "../../../runtime/commands/audit.ts"
import * as NodeHttpCalls from "../../../runtime/platform/nodeHttpCalls.ts"
import { verifyReceipt } from "../../../runtime/verifyReceipt.ts"
import { databaseKinds, sourceLayer } from "../../support/databases.ts"
import { eventually } from "../../support/eventually.ts"
import { type Facilitator, startFacilitator } from "../../support/facilitator.ts"
import { receiptSecrets } from "./secrets.ts"

const didOf = (facilitator: Facilitator) =>
  Effect.map(
    eventually(facilitator.ask("/.well-known/did.json"), ({ json }) => json?.service?.[0]?.anchor !== undefined),
    ({ json }) => json
  )

describe.each(databaseKinds)("the log's anchor on %s", (kind) => {
  it.live(
    "is sent once across a crash, and refused when it is another's",
    () =>
      Effect.gen(function* () {
        const ledger = yield* startFacilitator({
          closeMillis: 500,
          channels: 1,
          set: ["plugins=[ledger-local,x402-exact]"]
        })
        const opened = yield* Context.get(yield* Layer.build(sourceLayer(kind)), DatabaseSource).open
        const folder = yield* (yield* FileSystem.FileSystem).makeTempDirectoryScoped()
        const start = startFacilitator({
          ledgerUrl: ledger.ledgerUrl,
          database: Layer.succeed(DatabaseSource, { open: Effect.succeed(opened) }),
          stateFolder: folder,
          environment: receiptSecrets,
          set: ["plugins=[x402-exact,receipts]", "receipts.host=pay.example", "receipts.anchor=true"]
        })
        const first = yield* start
        const payTo = (yield* ledger.account()).publicKey()
        const { body } = yield* ledger.payment({ payer: yield* ledger.account(), payTo, amount: 1_000n })
        const { transaction } = (yield* first.settle(body)).json
        const { anchor } = (yield* didOf(first)).service[0]
        expect(anchor).toMatchObject({ account: expect.stringMatching(/^G/), ledger: expect.any(Number) })

        // A process that died after the landing, before it recorded it: the next one sends nothing again.
        yield* first.sql`update receipts_epochs set anchoring = anchor->>'checkpoint', anchor = null`
        yield* first.stop
        const second = yield* start
        const did = yield* didOf(second)
        expect(did.service[0].anchor).toEqual(anchor)
        const sent = yield* second.sql<{ state: string; fee: bigint }>`select state, fee_charged_stroops as fee
          from kernel_sponsor_transactions where starts_with(purpose, 'anchor ')`
        expect(sent).toEqual([{ state: "landed", fee: 100n }])
        const rulesOf = Effect.map(
          examine({ rpc: Option.some(ledger.ledgerUrl), withLog: true, logCopy: Option.none() }).pipe(
            Effect.provide(second.services),
            Effect.provide(NodeHttpCalls.layer)
          ),
          ({ mismatches }) => mismatches.map(({ rule }) => rule)
        )
        expect(yield* rulesOf).toEqual([])
        yield* second.sql`update receipts_epochs set anchor = jsonb_set(anchor, '{checkpoint}', '"another"')`
        expect(yield* rulesOf).toEqual(["anchor"])

        const kept = yield* eventually(second.ask(`/receipts/${transaction}?proof=1`), ({ json }) =>
          Boolean(json?.outcomes?.[0]?.proof)
        )
        const verified = async (change: object) => {
          const [file, document] = [join(folder, "kept.json"), join(folder, "did.json")]
          const service = [{ ...did.service[0], anchor: { ...anchor, ...change } }]
          await Promise.all([
            writeFile(file, JSON.stringify(kept.json)),
            writeFile(document, JSON.stringify({ ...did, service }))
          ])
          const options = { file, did: document, ledger: ledger.ledgerUrl, log: second.url, expected: {} }
          return (await verifyReceipt(options)).checks.at(-1)
        }
        const later = (yield* second.ask("/log/checkpoint")).text
        yield* Effect.promise(async () => {
          expect(await verified({})).toMatch(/^the ledger has the log of \d+ in its transaction \w+, which the log of/)
          const memo = "the anchor's memo is not the hash"
          await expect(verified({ transaction })).rejects.toThrow(memo)
          await expect(verified({ checkpoint: anchor.checkpoint.replace("\n\n", "\nmore\n\n") })).rejects.toThrow(
            "signed"
          )
          if (later !== anchor.checkpoint) await expect(verified({ checkpoint: later })).rejects.toThrow(memo)
          await expect(verified({ account: payTo })).rejects.toThrow("the anchor is not of")
          await expect(verified({ transaction: "ab".repeat(32) })).rejects.toThrow("does not have the anchor")
          const foreign = anchor.checkpoint.replaceAll("pay.example", "evil.example")
          await expect(verified({ checkpoint: foreign })).rejects.toThrow("not signed by did:web:pay.example")
        })
      }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)) as Effect.Effect<void>,
    240_000
  )
})
