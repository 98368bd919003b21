// A tool server that is killed during its payment, and how another process continues: the same one restarted on its
// state folder, a replica on the same PostgreSQL, one on a restored store. The payment is sent again byte for byte or
// found on the ledger; it is never made a second time while it may be spent.
import { expect, layer } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { cpSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { DatabaseSource } from "../../../kernel/database/DatabaseSource.ts"
import { databaseKinds, sourceLayer } from "../../support/databases.ts"
import { eventually } from "../../support/eventually.ts"
import { connectHttp, type Json } from "../mcp-tools/support.ts"
import { httpAmount } from "./httpSeller.ts"
import { fetched, HttpWorld, query } from "./httpWorld.ts"
import { pay, PayWorld, sealed } from "./payWorld.ts"
import { amount } from "./seller.ts"
import { folder, processKey, readyMillisMax, type Server, start } from "./toolsProcess.ts"

let fresh = 0
const args = () => ({ a: ++fresh, b: 120_000 })

/** Calls and kills the server once the seller has settled; the seller's response never arrives. */
const paidAndKilled = Effect.fnUntraced(function* (server: Server, ref: string, own: Json) {
  const { seller } = yield* PayWorld
  const settlements = seller.settlements.length
  seller.behaviour = { paid: () => new Promise<never>(() => undefined) }
  const client = yield* connectHttp(server.url, processKey)
  void client.callTool({ name: "x402_call_resource", arguments: { ref, arguments: own } }).catch(() => undefined)
  yield* eventually(
    Effect.sync(() => seller.settlements.length),
    (now) => now > settlements
  )
  yield* server.kill
  seller.behaviour = {}
})

const paymentsOf = (own: Json) =>
  Effect.map(PayWorld, ({ seller }) =>
    seller.calls.flatMap(({ args, payment }) =>
      payment !== undefined && JSON.stringify(args) === JSON.stringify(own) ? [JSON.stringify(payment)] : []
    )
  )

layer(HttpWorld.layer, { excludeTestServices: true, timeout: 2 * readyMillisMax })(
  "a payment whose process was killed",
  (it) => {
    const onServer = it.effect.skipIf(!databaseKinds.includes("postgres"))

    it.effect(
      "an interrupted payment is finished after a restart, and leaves nothing cashable",
      () =>
        Effect.gen(function* () {
          const { agent, facilitator, ref } = yield* PayWorld
          const { ref: page, seller: shop } = yield* HttpWorld
          const before = yield* facilitator.balance(agent.publicKey())
          const [keystore, state] = [sealed(agent.secret()), yield* folder]
          const [own, asked] = [args(), { query: query() }]
          const first = yield* start(keystore, state)
          const settlements = shop.settlements.length
          shop.behaviour = { paid: () => undefined }
          const client = yield* connectHttp(first.url, processKey)
          void client
            .callTool({ name: "x402_fetch_resource", arguments: { ref: page, ...asked } })
            .catch(() => undefined)
          yield* eventually(
            Effect.sync(() => shop.settlements.length),
            (now) => now > settlements
          )
          yield* paidAndKilled(first, ref, own)
          shop.behaviour = {}
          // A copy of the folder holds no signature that could be settled.
          const files = [
            "reservations.json",
            ...readdirSync(join(state, "tools", "payments")).map((f) => `payments/${f}`)
          ]
          expect(files).toHaveLength(3)
          const [sent] = yield* paymentsOf(own)
          const transaction = JSON.parse(sent!).payload.transaction as string
          for (const file of files) {
            const text = readFileSync(join(state, "tools", file), "utf8")
            expect(text).not.toContain(transaction.slice(0, 40))
            expect(text).not.toContain("payload")
          }
          const copy = yield* folder
          cpSync(state, copy, { recursive: true })

          const again = yield* connectHttp((yield* start(keystore, state)).url, processKey)
          const tool = yield* pay(again, ref, own)
          expect(tool.body).toMatchObject({ structuredContent: { sum: own.a + own.b }, receipt: { status: "settled" } })
          expect((yield* fetched(again, page, asked)).body).toMatchObject({ receipt: { status: "settled" } })
          expect(new Set(yield* paymentsOf(own)).size).toBe(1)
          // Delivered, and kept until it is acknowledged: the same call gets it again.
          expect((yield* pay(again, ref, own)).body["receipt"]).toEqual(tool.body["receipt"])

          // The previous folder, restored: it has open payments, and sends the same again.
          const restored = yield* connectHttp((yield* start(keystore, copy)).url, processKey)
          expect((yield* pay(restored, ref, own)).body["receipt"]?.paymentIdentifier).toBe(
            tool.body["receipt"].paymentIdentifier
          )
          expect(new Set(yield* paymentsOf(own)).size).toBe(1)
          expect(before - (yield* facilitator.balance(agent.publicKey()))).toBe(amount + httpAmount)
        }).pipe(Effect.scoped),
      480_000
    )

    onServer(
      "an interrupted payment is finished by a replica on the same PostgreSQL",
      () =>
        Effect.gen(function* () {
          const { agent, facilitator, ref } = yield* PayWorld
          const opened = yield* (yield* DatabaseSource).open
          if (opened.kind !== "server") return yield* Effect.die(new Error("replicas need a server"))
          const database = Redacted.value(opened.url)
          const before = yield* facilitator.balance(agent.publicKey())
          const keystore = sealed(agent.secret())
          const own = args()
          const first = yield* start(keystore, yield* folder, database)
          const replica = yield* start(keystore, yield* folder, database)
          yield* paidAndKilled(first, ref, own)
          // Another key does not decrypt the stored payment: the call is held, and nothing is paid.
          const other = yield* facilitator.account()
          const stranger = yield* start(sealed(other.secret()), yield* folder, database)
          expect((yield* pay(yield* connectHttp(stranger.url, processKey), ref, own)).body).toMatchObject({
            code: "SETTLEMENT_UNKNOWN"
          })
          const { body } = yield* pay(yield* connectHttp(replica.url, processKey), ref, own)
          expect(body).toMatchObject({ structuredContent: { sum: own.a + own.b }, receipt: { status: "settled" } })
          expect(new Set(yield* paymentsOf(own)).size).toBe(1)
          expect(before - (yield* facilitator.balance(agent.publicKey()))).toBe(amount)
        }).pipe(Effect.scoped, Effect.provide(sourceLayer("postgres"))),
      480_000
    )

    it.effect(
      "a payment unsettled at a crash is repeated only once it expired",
      () =>
        Effect.gen(function* () {
          const { agent, facilitator, ref, seller } = yield* PayWorld
          const before = yield* facilitator.balance(agent.publicKey())
          const [keystore, state] = [sealed(agent.secret()), yield* folder]
          const own = args()
          const first = yield* start(keystore, state)
          let asked = 0
          seller.behaviour = { settle: () => (asked++, new Promise<never>(() => undefined)) }
          const client = yield* connectHttp(first.url, processKey)
          void client
            .callTool({ name: "x402_call_resource", arguments: { ref, arguments: own } })
            .catch(() => undefined)
          yield* eventually(
            Effect.sync(() => asked),
            (now) => now > 0
          )
          yield* first.kill
          // The payment is not on the ledger: the seller does not respond, and no new payment is signed.
          seller.behaviour = { wire: (_, response) => (response.writeHead(503).end(), true) }
          const again = yield* connectHttp((yield* start(keystore, state)).url, processKey)
          const held = yield* pay(again, ref, own)
          expect(held.body["code"]).toBe("SETTLEMENT_UNKNOWN")
          const { authorizedUntilLedger, paymentIdentifier } = held.body["details"]
          const rpc = Effect.promise(async () => {
            const answer = await fetch(facilitator.ledgerUrl, {
              method: "POST",
              headers: { "content-type": "application/json" },
              body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "getLatestLedger" })
            })
            return ((await answer.json()) as Json)["result"].sequence as number
          })
          yield* eventually(rpc, (sequence) => sequence > authorizedUntilLedger + 2)
          seller.behaviour = {}
          const { body } = yield* pay(again, ref, own)
          expect(body).toMatchObject({ receipt: { status: "settled", replaces: [paymentIdentifier] } })
          expect(body["receipt"].paymentIdentifier).not.toBe(paymentIdentifier)
          expect(before - (yield* facilitator.balance(agent.publicKey()))).toBe(amount)
        }).pipe(Effect.scoped),
      480_000
    )
  }
)
