// Agents pay a seller of `batch-settlement` over HTTP: one deposit, reserved whole, then a voucher a call; what is left
// comes back when the tool server ends. Another process takes the seller's total by proof, and never by its word.
import { expect, layer } from "@effect/vitest"
import { Keypair } from "@stellar/stellar-sdk"
import { Effect } from "effect"
import { BatchStellarServer, keyAuthorizer } from "../../../examples/batch/BatchStellarServer.ts"
import { startBatchSeller } from "../../../examples/batch/startBatchSeller.ts"
import { signPrepared } from "../../../examples/prepared.mjs"
import { encodeReference } from "../../../plugins/mcp-tools/Reference.ts"
import { makeBatch } from "../../support/batchBuyer.ts"
import { testnetUsdc } from "../../support/buyer.ts"
import { queryDeclaration, verified } from "../catalog/support.ts"
import { call } from "../mcp-tools/support.ts"
import { enabled, query } from "./httpWorld.ts"
import { PayWorld } from "./payWorld.ts"

const price = 1_000n

/** A listed seller of one page. */
const startListed = Effect.gen(function* () {
  const { facilitator } = yield* PayWorld
  const receiver = (yield* facilitator.account(0n)).publicKey()
  const server = new BatchStellarServer({
    receiver,
    authorizer: keyAuthorizer(Keypair.random().secret()),
    minDepositTimes: 2
  })
  const seller = yield* Effect.acquireRelease(
    Effect.promise(() =>
      startBatchSeller({
        server,
        facilitator: facilitator.url,
        network: "stellar:testnet",
        asset: testnetUsdc,
        price
      })
    ),
    (one) => Effect.promise(() => one.close())
  )
  const url = `${seller.url}/page`
  const required: any = yield* Effect.promise(() => fetch(url).then((answer) => answer.json()))
  const [accepted] = required.accepts
  const lister = yield* facilitator.account(100_000n)
  const contract: string = accepted.extra.batchContract
  const payload = yield* Effect.promise(() =>
    signPrepared(accepted, {
      secret: lister.secret(),
      facilitator: facilitator.url,
      maxAmount: 10_000n,
      batch: { contracts: [contract], channels: new Map() }
    })
  )
  const extensions = { catalog: queryDeclaration() }
  const paymentPayload = { x402Version: 2, payload, resource: { url }, accepted, extensions }
  const { outcome } = yield* verified(facilitator, { x402Version: 2, paymentPayload, paymentRequirements: accepted })
  expect(outcome?.["status"], JSON.stringify(outcome)).toBe("success")
  const set = [enabled, `batch_payments.contract=${contract}`, "batch_payments.max_deposit=50000"]
  return {
    server,
    receiver,
    contract,
    ref: encodeReference({ type: "http", url, toolName: "" }),
    set: [...set, "batch_payments.deposit_calls=5"]
  }
})

layer(PayWorld.layer, { excludeTestServices: true, timeout: 240_000 })("a seller of batch-settlement", (it) => {
  it.effect("is paid by one deposit and vouchers, and what is left is refunded at the end", () =>
    Effect.gen(function* () {
      const { agent, facilitator, paying } = yield* PayWorld
      const { receiver, ref, server, set } = yield* startListed
      const before = yield* facilitator.balance(agent.publicKey())
      const buy = (client: Parameters<typeof call>[0]) => call(client, "x402_fetch_resource", { ref, query: query() })
      yield* Effect.scoped(
        Effect.gen(function* () {
          const client = yield* paying(set)
          const first = yield* buy(client)
          expect(first.body["receipt"], JSON.stringify(first.body)).toMatchObject({
            scheme: "batch-settlement",
            payTo: receiver,
            deposited: "5000",
            settledAmount: "1000",
            transaction: expect.stringMatching(/^[0-9a-f]{64}$/),
            status: "settled"
          })
          expect(before - (yield* facilitator.balance(agent.publicKey()))).toBe(5_000n)
          const second = yield* buy(client)
          expect(second.body["receipt"], JSON.stringify(second.body)).toMatchObject({
            settledAmount: "1000",
            transaction: null,
            status: "settled",
            source: "seller"
          })
          expect(second.body["receipt"]).not.toHaveProperty("deposited")
          for (let at = 3; at <= 6; at++) {
            const { body } = yield* buy(client)
            expect(body["receipt"]?.settledAmount, JSON.stringify(body)).toBe("1000")
          }
          expect(before - (yield* facilitator.balance(agent.publicKey()))).toBe(10_000n)
          const [channel] = yield* Effect.promise(() => server.channels.list())
          expect(channel?.chargedCumulativeAmount).toBe("6000")
        })
      )
      expect(before - (yield* facilitator.balance(agent.publicKey()))).toBe(6_000n)
    }).pipe(Effect.scoped)
  )

  it.effect("corrects a process that knows less by our own voucher, and never by its word", () =>
    Effect.gen(function* () {
      const { agent, facilitator, paying } = yield* PayWorld
      const { ref, server, set } = yield* startListed
      const before = yield* facilitator.balance(agent.publicKey())
      yield* Effect.scoped(
        Effect.gen(function* () {
          const [one, other] = [yield* paying(set), yield* paying(set)]
          const settled = (client: Parameters<typeof call>[0]) =>
            Effect.map(call(client, "x402_fetch_resource", { ref, query: query() }), ({ body }) =>
              expect(body["receipt"]?.settledAmount, JSON.stringify(body)).toBe("1000")
            )
          yield* settled(one)
          yield* settled(one)
          // A seller that calls the channel empty gets no second deposit: the balance is the ledger's.
          const honest = server.enrichPaymentRequiredResponse
          server.enrichPaymentRequiredResponse = async (context: any) => {
            await honest(context)
            for (const { extra } of context.requirements) {
              if (extra.channelState !== undefined) extra.channelState.balance = "0"
            }
          }
          yield* settled(other)
          yield* settled(one)
          expect(before - (yield* facilitator.balance(agent.publicKey()))).toBe(5_000n)

          // A total that no voucher of ours proves is not taken.
          const { onBeforeVerify } = server.schemeHooks
          server.enrichPaymentRequiredResponse = async ({ paymentPayload, requirements }: any) => {
            if (paymentPayload === undefined) return
            const { voucher } = paymentPayload.payload
            const [state] = await server.channels.list()
            requirements[0].extra.channelState = { ...state, chargedCumulativeAmount: "4900" }
            requirements[0].extra.voucherState = { signedMaxClaimable: "4900", signature: voucher.signature }
          }
          server.schemeHooks.onBeforeVerify = async () => ({ abort: true, reason: "another_total" }) as any
          const refused = yield* call(one, "x402_fetch_resource", { ref, query: query() })
          expect([refused.isError, refused.body["code"]], JSON.stringify(refused.body)).toEqual([
            true,
            "PAYMENT_REJECTED"
          ])
          server.enrichPaymentRequiredResponse = honest
          server.schemeHooks.onBeforeVerify = onBeforeVerify
          yield* settled(one)
          const [channel] = yield* Effect.promise(() => server.channels.list())
          expect(channel?.chargedCumulativeAmount).toBe("5000")
          // One more deposit, by the one; the other asks for the refund too, by a total that the seller corrects.
          yield* settled(one)
        })
      )
      expect(before - (yield* facilitator.balance(agent.publicKey()))).toBe(6_000n)
    }).pipe(Effect.scoped)
  )

  it.effect("is not paid beyond budget, policy, contract and deposit of the operator", () =>
    Effect.gen(function* () {
      const { agent, facilitator, paying } = yield* PayWorld
      const { ref, server, set } = yield* startListed
      const before = yield* facilitator.balance(agent.publicKey())
      const rule = "{name: large, above: 4999, outcome: deny}"
      const cases: ReadonlyArray<readonly [ReadonlyArray<string>, string]> = [
        [[enabled], "PAYMENT_REJECTED"],
        [[...set, "budget.max_per_session=4999"], "BUDGET_EXCEEDED"],
        [[...set, `policy.rules=[${rule}]`], "PAYMENT_REJECTED"],
        [[...set, `batch_payments.contract=${testnetUsdc}`], "PAYMENT_REJECTED"],
        [[...set, "batch_payments.max_deposit=1999"], "PAYMENT_REJECTED"]
      ]
      for (const [settings, code] of cases) {
        const client = yield* paying(settings)
        const { body } = yield* call(client, "x402_fetch_resource", { ref, query: query() })
        expect([settings.at(-1), body["code"]], JSON.stringify(body)).toEqual([settings.at(-1), code])
      }
      expect(yield* facilitator.balance(agent.publicKey())).toBe(before)
      expect(yield* Effect.promise(() => server.channels.list())).toEqual([])
    }).pipe(Effect.scoped)
  )

  it.effect("gets no larger deposit than the policy decided on, whatever was charged and withdrawn before", () =>
    Effect.gen(function* () {
      const { agent, facilitator, paying } = yield* PayWorld
      const { contract, ref, server, set } = yield* startListed
      const before = yield* facilitator.balance(agent.publicKey())
      yield* Effect.scoped(
        Effect.gen(function* () {
          const client = yield* paying(set)
          const buy = call(client, "x402_fetch_resource", { ref, query: query() })
          for (let at = 1; at <= 5; at++) {
            const { body } = yield* buy
            expect(body["receipt"]?.settledAmount, JSON.stringify(body)).toBe("1000")
          }
          // The payer's account withdraws what the seller did not claim.
          const [stored] = yield* Effect.promise(() => server.channels.list())
          const keys = { payer: agent, payerAuthorizer: agent, receiverAuthorizer: agent }
          const channel = { config: stored!.channelConfig, channelId: stored!.channelId, ...keys }
          const batch = makeBatch(facilitator.rpc, contract)
          for (const stage of ["Start", "End"] as const) {
            const payload = yield* Effect.promise(() => batch.withdraw(channel, stage))
            const { json, text } = yield* facilitator.settle(batch.body(channel, payload, 0n))
            expect(json.success, text).toBe(true)
            yield* facilitator.ledger.advanceSeconds(901)
          }
          expect(yield* facilitator.balance(agent.publicKey())).toBe(before)
          const { body } = yield* buy
          expect([body["code"], body["message"]], JSON.stringify(body)).toEqual([
            "PAYMENT_REJECTED",
            expect.stringMatching(/lacks more/)
          ])
        })
      )
      expect(yield* facilitator.balance(agent.publicKey())).toBe(before)
    }).pipe(Effect.scoped)
  )
})
