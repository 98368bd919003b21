// Agents pay an MCP tool by `batch-settlement`: our reference seller, with one deposit and a voucher for each call. The
// same bounds hold as over HTTP, the rest is refunded, and an answer that contradicts its voucher stops the channel.
import { expect, layer } from "@effect/vitest"
import { Keypair } from "@stellar/stellar-sdk"
import { Effect } from "effect"
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { BatchStellarServer, keyAuthorizer } from "../../../examples/batch/BatchStellarServer.ts"
import { signPrepared } from "../../../examples/client/prepared.mjs"
import { startMcpSeller } from "../../../examples/seller-mcp.ts"
import { encodeReference } from "../../../plugins/mcp-tools/Reference.ts"
import { testnetUsdc } from "../../../runtime/redteam/buyer.ts"
import { verified } from "../catalog/support.ts"
import { call, connectHttp } from "../mcp-tools/support.ts"
import { pay, PayWorld } from "./payWorld.ts"

/** A listed seller of the tool `forecast`, and the settings of an agent that may pay it. */
const startListed = Effect.gen(function* () {
  const { facilitator } = yield* PayWorld
  const payTo = (yield* facilitator.account(0n)).publicKey()
  const authorizer = keyAuthorizer(Keypair.random().secret())
  const channels = new BatchStellarServer({ receiver: payTo, authorizer, minDepositTimes: 2 })
  const offered = { asset: testnetUsdc, amount: "1000", network: "stellar:testnet" }
  const seller = yield* Effect.acquireRelease(
    Effect.promise(() => startMcpSeller({ facilitator: facilitator.url, payTo, channels, ...offered })),
    (one) => Effect.promise(() => one.close())
  )
  const direct = yield* connectHttp(seller.url)
  const { body: required } = yield* call(direct, "forecast", { city: "Riga" })
  const [accepted] = required["accepts"]
  const contract: string = accepted.extra.batchContract
  const lister = yield* facilitator.account(100_000n)
  const signed = { secret: lister.secret(), facilitator: facilitator.url, maxAmount: 10_000n }
  const payload = yield* Effect.promise(() =>
    signPrepared(accepted, { ...signed, batch: { contracts: [contract], channels: new Map() } })
  )
  const { extensions, resource } = required
  const paymentPayload = { x402Version: 2, payload, resource, accepted, extensions }
  const { outcome } = yield* verified(facilitator, { x402Version: 2, paymentPayload, paymentRequirements: accepted })
  expect(outcome?.["status"], JSON.stringify(outcome)).toBe("success")
  const ref = encodeReference({ type: "mcp", url: seller.url, toolName: "forecast" })
  const set = [`batch_payments.contract=${contract}`, "batch_payments.max_deposit=50000"]
  return { channels, ref, set: [...set, "batch_payments.deposit_calls=5"] }
})

const charged = (channels: BatchStellarServer) =>
  Effect.promise(async () => (await channels.channels.list()).map((one) => one.chargedCumulativeAmount))

layer(PayWorld.layer, { excludeTestServices: true, timeout: 240_000 })("an MCP tool sold by channels", (it) => {
  it.effect("is paid by one deposit and vouchers, once each, and the rest is refunded", () =>
    Effect.gen(function* () {
      const { agent, facilitator, paying } = yield* PayWorld
      const { channels, ref, set } = yield* startListed
      const before = yield* facilitator.balance(agent.publicKey())
      const explained = yield* call(yield* paying(set), "x402_explain_payment", { ref })
      expect(explained.body, JSON.stringify(explained.body)).toMatchObject({ amount: "5000", price: "1000" })
      yield* Effect.scoped(
        Effect.gen(function* () {
          const client = yield* paying(set)
          const first = yield* pay(client, ref, { city: "Riga" })
          expect(first.body["receipt"], JSON.stringify(first.body)).toMatchObject({
            ...{ scheme: "batch-settlement", deposited: "5000", settledAmount: "1000", status: "settled" }
          })
          const second = yield* pay(client, ref, { city: "Oslo" })
          expect(second.body, JSON.stringify(second.body)).toMatchObject({
            structuredContent: { city: "Oslo" },
            receipt: { settledAmount: "1000", transaction: null, source: "seller" }
          })
          // The same call gets the stored content and pays nothing.
          yield* pay(client, ref, { city: "Oslo" })
          expect(yield* charged(channels)).toEqual(["2000"])
          expect(before - (yield* facilitator.balance(agent.publicKey()))).toBe(5_000n)
        })
      )
      expect(before - (yield* facilitator.balance(agent.publicKey()))).toBe(2_000n)
    }).pipe(Effect.scoped)
  )

  it.effect("gets the same voucher again after a lost answer, and no second payment", () =>
    Effect.gen(function* () {
      const { paying } = yield* PayWorld
      const { channels, ref, set } = yield* startListed
      yield* Effect.scoped(
        Effect.gen(function* () {
          const client = yield* paying([...set, "network_security.paid_call_timeout_ms=5000"])
          const first = yield* pay(client, ref, { city: "Riga" })
          expect(first.body["receipt"]?.status, JSON.stringify(first.body)).toBe("settled")
          const { onBeforeSettle } = channels.schemeHooks
          const charging = Promise.withResolvers<void>()
          // The agent waits for five seconds only.
          channels.schemeHooks.onBeforeSettle = async (context: any) => {
            const answer = await onBeforeSettle(context)
            await charging.promise
            return answer
          }
          const lost = yield* pay(client, ref, { city: "Oslo" })
          expect(lost.body["code"], JSON.stringify(lost.body)).toBe("SETTLEMENT_UNKNOWN")
          channels.schemeHooks.onBeforeSettle = onBeforeSettle
          charging.resolve()
          const again = yield* pay(client, ref, { city: "Oslo" })
          expect(again.body["receipt"]?.settledAmount, JSON.stringify(again.body)).toBe("1000")
          const next = yield* pay(client, ref, { city: "Bern" })
          expect(next.body["receipt"]?.settledAmount, JSON.stringify(next.body)).toBe("1000")
          expect(yield* charged(channels)).toEqual(["3000"])
        })
      )
    }).pipe(Effect.scoped)
  )

  it.effect("corrects a process that begins again, also by vouchers sold before", () =>
    Effect.gen(function* () {
      const { paying } = yield* PayWorld
      const { channels, ref, set } = yield* startListed
      const folder = mkdtempSync(join(tmpdir(), "tollkeeper-mcp-channels-"))
      const { onBeforeVerify } = channels.schemeHooks
      const buy = (city: string) =>
        Effect.scoped(
          Effect.gen(function* () {
            const client = yield* paying([...set, "budget.store=file"], undefined, folder)
            const { body } = yield* pay(client, ref, { city })
            // It is not refunded at the end.
            channels.schemeHooks.onBeforeVerify = async () => ({ abort: true, reason: "later" }) as any
            return body["receipt"]?.settledAmount ?? body
          })
        )
      for (const city of ["Riga", "Oslo", "Bern"]) {
        expect([city, yield* buy(city)]).toEqual([city, "1000"])
        channels.schemeHooks.onBeforeVerify = onBeforeVerify
      }
      expect(yield* charged(channels)).toEqual(["3000"])
    }).pipe(Effect.scoped)
  )

  it.effect("pays other calls again three minutes after a call that only fails", () =>
    Effect.gen(function* () {
      const { paying } = yield* PayWorld
      const { channels, ref, set } = yield* startListed
      const folder = mkdtempSync(join(tmpdir(), "tollkeeper-mcp-failing-"))
      yield* Effect.scoped(
        Effect.gen(function* () {
          const client = yield* paying([...set, "budget.store=file"], undefined, folder)
          const buy = (city: string) => Effect.map(pay(client, ref, { city }), ({ body }) => body)
          expect((yield* buy("Riga"))["receipt"]?.settledAmount).toBe("1000")
          const { onBeforeVerify } = channels.schemeHooks
          const failing = new Set<string>()
          let isFailing = true
          channels.schemeHooks.onBeforeVerify = async (context: any) => {
            const { id } = context.paymentPayload.extensions["payment-identifier"].info
            if (isFailing) failing.add(id)
            return failing.has(id) ? Promise.reject(new Error("it fails")) : onBeforeVerify(context)
          }
          expect((yield* buy("Oslo"))["code"]).toBe("SETTLEMENT_UNKNOWN")
          isFailing = false
          expect(yield* buy("Bern")).toMatchObject({ code: "UPSTREAM_TIMEOUT" })
          const file = join(folder, "tools", "reservations.json")
          const rows = JSON.parse(readFileSync(file, "utf8"))
          for (const row of rows) row.createdAtMillis -= 180_000
          writeFileSync(file, JSON.stringify(rows))
          const bern = yield* buy("Bern")
          expect(bern["receipt"]?.settledAmount, JSON.stringify(bern)).toBe("1000")
          expect(yield* charged(channels)).toEqual(["2000"])
        })
      )
    }).pipe(Effect.scoped)
  )

  it.effect("is not paid beyond the operator's bounds", () =>
    Effect.gen(function* () {
      const { agent, facilitator, paying } = yield* PayWorld
      const { channels, ref, set } = yield* startListed
      const before = yield* facilitator.balance(agent.publicKey())
      const cases: ReadonlyArray<readonly [ReadonlyArray<string>, string]> = [
        [[], "PAYMENT_REJECTED"],
        [[...set, "budget.max_per_session=4999"], "BUDGET_EXCEEDED"],
        [[...set, "policy.rules=[{name: large, above: 4999, outcome: deny}]"], "PAYMENT_REJECTED"],
        [[...set, `batch_payments.contract=${testnetUsdc}`], "PAYMENT_REJECTED"],
        [[...set, "batch_payments.max_deposit=1999"], "PAYMENT_REJECTED"]
      ]
      for (const [settings, code] of cases) {
        const { body } = yield* pay(yield* paying(settings), ref, { city: "Riga" })
        expect([settings.at(-1), body["code"]], JSON.stringify(body)).toEqual([settings.at(-1), code])
      }
      expect(yield* facilitator.balance(agent.publicKey())).toBe(before)
      expect(yield* charged(channels)).toEqual([])
    }).pipe(Effect.scoped)
  )

  it.effect("is paid nothing more after an answer that contradicts its voucher", () =>
    Effect.gen(function* () {
      const { paying } = yield* PayWorld
      const { channels, ref, set } = yield* startListed
      const client = yield* paying(set)
      yield* pay(client, ref, { city: "Riga" })
      const { onBeforeSettle } = channels.schemeHooks
      channels.schemeHooks.onBeforeSettle = async (context: any) => {
        const answer = await onBeforeSettle(context)
        if (answer?.skip === true) answer.result.extra.channelState.chargedCumulativeAmount = "4000"
        return answer
      }
      const answered = yield* pay(client, ref, { city: "Oslo" })
      expect(answered.body["receipt"]?.settledAmount, JSON.stringify(answered.body)).toBe("1000")
      channels.schemeHooks.onBeforeSettle = onBeforeSettle
      const next = yield* pay(client, ref, { city: "Bern" })
      expect([next.body["code"], next.body["message"]]).toEqual([
        "PAYMENT_REJECTED",
        expect.stringMatching(/contradicts the voucher/)
      ])
      expect(yield* charged(channels)).toEqual(["2000"])
    }).pipe(Effect.scoped)
  )
})
