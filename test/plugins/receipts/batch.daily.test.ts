// Receipts of payment channels show the action, the channel and the claimed totals. A buyer whose channel a claim lists
// may read its receipt, and so can prove the total that was charged in the channel.
import { expect, it } from "@effect/vitest"
import type { Keypair } from "@stellar/stellar-sdk"
import { Effect, Option } from "effect"
import { createHash } from "node:crypto"
import { describe } from "vitest"
import { verify } from "../../../examples/receipts/verify.mjs"
import { examine } from "../../../runtime/commands/audit.ts"
import * as NodeHttpCalls from "../../../runtime/platform/nodeHttpCalls.ts"
import { databaseKinds } from "../../support/databases.ts"
import { eventually } from "../../support/eventually.ts"
import { type BatchFacilitator, startBatch } from "../x402-batch/world.ts"
import { receiptSecrets } from "./secrets.ts"

const posted = (body: unknown) => ({
  method: "POST",
  headers: { "content-type": "application/json" },
  body: JSON.stringify(body)
})

/** Status of a receipt for an account that signs the challenge. */
const readAs = Effect.fnUntraced(function* ({ ask }: BatchFacilitator, account: Keypair, transaction: string) {
  const { json } = yield* ask("/receipts/challenge", posted({ account: account.publicKey() }))
  const digest = createHash("sha256").update(`Stellar Signed Message:\n${json.challenge}`).digest()
  const signature = Buffer.from(account.sign(digest)).toString("base64")
  const { challenge } = json
  return yield* ask(`/receipts/${transaction}`, posted({ account: account.publicKey(), challenge, signature }))
})

describe.each(databaseKinds)("receipts of channels on %s", (database) => {
  it.live(
    "show action, channel and totals, and the claim's to its buyers",
    () =>
      Effect.gen(function* () {
        const facilitator = yield* startBatch({ database, environment: receiptSecrets, channels: 4 })
        const { batch, sql } = facilitator
        const seller = yield* facilitator.seller
        const [first, second, third] = [
          yield* facilitator.open(seller, 1_000n),
          yield* facilitator.open(seller, 1_000n),
          yield* facilitator.open(seller, 1_000n)
        ]
        const settle = (payload: unknown) =>
          Effect.map(
            facilitator.settled(batch.body(first, payload, 0n, { maxTimeoutSeconds: 0 })),
            ({ json, text }) => {
              expect(json.success, text).toBe(true)
              return json.transaction as string
            }
          )
        const claimed = [
          { channel: first, max: 500n, total: 100n },
          { channel: second, max: 500n, total: 200n }
        ]
        const claim = yield* settle(batch.claim(claimed))
        const refund = yield* settle(batch.refund(third, 100n, 300n, 0n))
        const did = (yield* facilitator.ask("/.well-known/did.json")).json
        const claimsOf = (transaction: string) =>
          Effect.flatMap(
            eventually(facilitator.ask(`/receipts/${transaction}?proof=1`), ({ json }) =>
              Boolean(json?.outcomes?.[0]?.proof)
            ),
            ({ json }) => Effect.promise(() => verify(json, did))
          )
        expect(yield* claimsOf(claim)).toMatchObject({
          action: "claim",
          totals: { [first.channelId]: "100", [second.channelId]: "200" }
        })
        expect(yield* claimsOf(refund)).toMatchObject({ action: "refund", channel: third.channelId, amount: "300" })
        const [deposit] = yield* sql<{ hash: string }>`select inner_hash as hash from kernel_settlements
          where payer = ${first.payer.publicKey()}`
        expect(yield* claimsOf(deposit!.hash)).toMatchObject({
          action: "deposit",
          channel: first.channelId,
          amount: "1000"
        })
        expect((yield* readAs(facilitator, first.payer, claim)).status).toBe(200)
        expect((yield* readAs(facilitator, second.payer, claim)).json.receipt).toBeTruthy()
        expect((yield* readAs(facilitator, third.payer, claim)).status).toBe(404)
        const { mismatches } = yield* examine({
          rpc: Option.some(facilitator.ledgerUrl),
          withLog: true,
          logCopy: Option.none()
        }).pipe(Effect.provide(facilitator.services), Effect.provide(NodeHttpCalls.layer))
        expect(mismatches).toEqual([])
      }).pipe(Effect.scoped) as Effect.Effect<void>,
    120_000
  )
})
