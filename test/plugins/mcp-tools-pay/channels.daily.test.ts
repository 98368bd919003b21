// Agents pay a seller of `batch-settlement` over HTTP: one deposit, fully reserved, then one voucher per call; the rest
// is refunded when the tool server ends. Another process accepts the seller's total only with proof.
import { expect, layer } from "@effect/vitest"
import { Keypair } from "@stellar/stellar-sdk"
import { Effect, Fiber } from "effect"
import { mkdtempSync, readdirSync, readFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { BatchStellarServer, keyAuthorizer } from "../../../examples/batch/BatchStellarServer.ts"
import { startBatchSeller } from "../../../examples/batch/startBatchSeller.ts"
import { signPrepared } from "../../../examples/client/prepared.mjs"
import { encodeReference } from "../../../plugins/mcp-tools/Reference.ts"
import { makeBatch } from "../../support/batchBuyer.ts"
import { testnetUsdc } from "../../../runtime/redteam/buyer.ts"
import { eventually } from "../../support/eventually.ts"
import { setting } from "../../support/rig/settings.ts"
import { runJson } from "../../support/runCommand.ts"
import { queryDeclaration, verified } from "../catalog/support.ts"
import { call, connectHttp, substitute } from "../mcp-tools/support.ts"
import { enabled, query } from "./httpWorld.ts"
import { payingSet, PayWorld, sealed } from "./payWorld.ts"
import { folder, processKey, start } from "./toolsProcess.ts"

const price = 1_000n

/** Lists a page by a payment that is only verified. */
const list = Effect.fnUntraced(function* (url: string, accepted: any, contract: string) {
  const { facilitator } = yield* PayWorld
  const lister = yield* facilitator.account(100_000n)
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
})

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
  const contract: string = accepted.extra.batchContract
  yield* list(url, accepted, contract)
  const set = [enabled, `batch_payments.contract=${contract}`, "batch_payments.max_deposit=50000"]
  return {
    server,
    receiver,
    contract,
    required,
    ref: encodeReference({ type: "http", url, toolName: "" }),
    set: [...set, "batch_payments.deposit_calls=5"]
  }
})

layer(PayWorld.layerPatient, { excludeTestServices: true, timeout: 240_000 })("a seller of batch-settlement", (it) => {
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
          // A seller that reports an empty channel gets no second deposit: the balance comes from the ledger.
          const honest = server.enrichPaymentRequiredResponse
          server.enrichPaymentRequiredResponse = async (context: any) => {
            await honest(context)
            for (const { extra } of context.requirements) {
              if (extra.channelState !== undefined) extra.channelState.balance = "0"
            }
          }
          yield* settled(other)
          // This process has just signed for the same total as the other's voucher, and cannot see whether the seller
          // accepted its own.
          const unsure = yield* call(one, "x402_fetch_resource", { ref, query: query() })
          expect(unsure.body["code"], JSON.stringify(unsure.body)).toBe("SETTLEMENT_UNKNOWN")
          yield* settled(one)
          expect(before - (yield* facilitator.balance(agent.publicKey()))).toBe(5_000n)

          // A total without a voucher of ours as its proof is not accepted.
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
          // One more deposit, by the first process. The other asks for the refund too, with a total that the seller
          // corrects.
          yield* settled(one)
        })
      )
      expect(before - (yield* facilitator.balance(agent.publicKey()))).toBe(6_000n)
    }).pipe(Effect.scoped)
  )

  it.effect("is paid one price a call, whatever it shows as the total before it", () =>
    Effect.gen(function* () {
      const { paying } = yield* PayWorld
      const { ref, server, set } = yield* startListed
      yield* Effect.scoped(
        Effect.gen(function* () {
          const client = yield* paying(set)
          const buy = (asked = query()) => call(client, "x402_fetch_resource", { ref, query: asked })
          for (const _ of [1, 2]) expect((yield* buy()).body["receipt"]?.settledAmount).toBe("1000")
          // The voucher that the seller has just received, shown as the proof of an earlier total.
          const shown: Array<string> = []
          let more = 0n
          const { enrichPaymentRequiredResponse: honest } = server
          const { onBeforeVerify } = server.schemeHooks
          server.enrichPaymentRequiredResponse = async ({ paymentPayload, requirements }: any) => {
            if (paymentPayload === undefined) return
            const { maxClaimableAmount: max, signature } = paymentPayload.payload.voucher
            shown.push(max)
            const [state] = await server.channels.list()
            requirements[0].extra.channelState = { ...state, chargedCumulativeAmount: max }
            requirements[0].extra.voucherState = { signedMaxClaimable: String(BigInt(max) + more), signature }
          }
          server.schemeHooks.onBeforeVerify = async () => ({ abort: true, reason: "another_total" }) as any
          const asked = query()
          expect((yield* buy(asked)).body["code"]).toBe("SETTLEMENT_UNKNOWN")
          expect((yield* buy(asked)).body["code"]).toBe("SETTLEMENT_UNKNOWN")
          // A larger amount with the same bytes in a voucher's digest.
          more = 1n << 128n
          expect((yield* buy()).body["code"]).toBe("PAYMENT_REJECTED")
          expect([...new Set(shown)]).toEqual(["3000"])
          server.enrichPaymentRequiredResponse = honest
          server.schemeHooks.onBeforeVerify = onBeforeVerify
        })
      )
    }).pipe(Effect.scoped)
  )

  it.effect("is not believed when it says that less is deposited", () =>
    Effect.gen(function* () {
      const { paying } = yield* PayWorld
      const { ref, server, set } = yield* startListed
      yield* Effect.scoped(
        Effect.gen(function* () {
          const client = yield* paying(set)
          const buy = () => call(client, "x402_fetch_resource", { ref, query: query() })
          for (const _ of [1, 2]) expect((yield* buy()).body["receipt"]?.settledAmount).toBe("1000")
          const { enrichPaymentRequiredResponse: honest } = server
          const { onBeforeVerify } = server.schemeHooks
          const sent: Array<string> = []
          server.enrichPaymentRequiredResponse = async ({ paymentPayload, requirements }: any) => {
            if (paymentPayload === undefined) return
            sent.push(paymentPayload.payload.type)
            const [state] = await server.channels.list()
            const { signature, signedMaxClaimable } = state!
            requirements[0].extra.channelState = { ...state, chargedCumulativeAmount: "1000", balance: "0" }
            requirements[0].extra.voucherState = { signedMaxClaimable, signature }
          }
          server.schemeHooks.onBeforeVerify = async () => ({ abort: true, reason: "another_total" }) as any
          expect((yield* buy()).body["code"]).toBe("PAYMENT_REJECTED")
          expect(sent).toEqual(["voucher", "voucher"])
          server.enrichPaymentRequiredResponse = honest
          server.schemeHooks.onBeforeVerify = onBeforeVerify
        })
      )
    }).pipe(Effect.scoped)
  )

  it.effect("is sent the same voucher again after a lost answer, and asked nothing where the content came", () =>
    Effect.gen(function* () {
      const { agent, facilitator, paying } = yield* PayWorld
      const { ref, server, set } = yield* startListed
      const before = yield* facilitator.balance(agent.publicKey())
      yield* Effect.scoped(
        Effect.gen(function* () {
          const client = yield* paying(set)
          const buy = (asked = query()) => call(client, "x402_fetch_resource", { ref, query: asked })
          expect((yield* buy()).body["receipt"]?.settledAmount).toBe("1000")
          const { onBeforeVerify } = server.schemeHooks
          const sent: Array<string> = []
          let answer = (context: any): Promise<any> => onBeforeVerify(context)
          server.schemeHooks.onBeforeVerify = async (context: any) => {
            sent.push(context.paymentPayload.payload.voucher.maxClaimableAmount)
            return answer(context)
          }
          answer = () => Promise.reject(new Error("the answer is lost"))
          const lost = query()
          expect((yield* buy(lost)).body["code"]).toBe("SETTLEMENT_UNKNOWN")
          answer = onBeforeVerify
          const again = yield* buy(lost)
          expect(again.body, JSON.stringify(again.body)).toMatchObject({
            json: { page: "paid by a voucher" },
            receipt: { settledAmount: "1000", status: "settled", source: "seller" }
          })
          expect(sent).toEqual(["2000", "2000"])

          // The content comes after its caller has left.
          let open = () => {}
          const gate = new Promise<void>((resolve) => (open = resolve))
          answer = (context) => gate.then(() => onBeforeVerify(context))
          const [left, cancel] = [query(), new AbortController()]
          const asked = client
            .callTool({ name: "x402_fetch_resource", arguments: { ref, query: left } }, undefined, {
              signal: cancel.signal
            })
            .catch(() => undefined)
          yield* eventually(
            Effect.sync(() => sent.length),
            (length) => length === 3
          )
          cancel.abort()
          yield* Effect.promise(() => asked)
          yield* Effect.promise(() => client.ping())
          open()
          yield* eventually(
            Effect.promise(() => server.channels.list()),
            ([channel]) => channel?.chargedCumulativeAmount === "3000"
          )
          const kept = yield* buy(left)
          expect(kept.body, JSON.stringify(kept.body)).toMatchObject({
            json: { page: "paid by a voucher" },
            receipt: { settledAmount: "1000", status: "settled" }
          })
          expect(sent).toEqual(["2000", "2000", "3000"])
        })
      )
      expect(before - (yield* facilitator.balance(agent.publicKey()))).toBe(3_000n)
    }).pipe(Effect.scoped)
  )

  it.effect("is asked for an open voucher's answer before the next voucher is signed", () =>
    Effect.gen(function* () {
      const { agent, facilitator, paying } = yield* PayWorld
      const { ref, server, set } = yield* startListed
      const before = yield* facilitator.balance(agent.publicKey())
      yield* Effect.scoped(
        Effect.gen(function* () {
          const client = yield* paying(set)
          const buy = (asked = query()) => call(client, "x402_fetch_resource", { ref, query: asked })
          expect((yield* buy()).body["receipt"]?.settledAmount).toBe("1000")
          const { onBeforeVerify } = server.schemeHooks
          const sent: Array<string> = []
          let isLost = true
          server.schemeHooks.onBeforeVerify = async (context: any) => {
            sent.push(context.paymentPayload.payload.voucher.maxClaimableAmount)
            return isLost ? Promise.reject(new Error("the answer is lost")) : onBeforeVerify(context)
          }
          const [lost, next] = [query(), query()]
          expect((yield* buy(lost)).body["code"]).toBe("SETTLEMENT_UNKNOWN")
          expect((yield* buy(next)).body).toMatchObject({
            code: "UPSTREAM_TIMEOUT",
            message: expect.stringContaining("nothing was signed for this one")
          })
          expect(sent).toEqual(["2000", "2000"])
          isLost = false
          expect((yield* buy(next)).body["receipt"]?.settledAmount).toBe("1000")
          expect(sent).toEqual(["2000", "2000", "2000", "3000"])
          const { body } = yield* buy(lost)
          expect(body, JSON.stringify(body)).toMatchObject({
            json: { page: "paid by a voucher" },
            receipt: { settledAmount: "1000", status: "settled" }
          })
          expect(sent).toHaveLength(4)
        })
      )
      expect(before - (yield* facilitator.balance(agent.publicKey()))).toBe(3_000n)
    }).pipe(Effect.scoped)
  )

  it.effect("is paid while another origin with its terms leaves a voucher unanswered", () =>
    Effect.gen(function* () {
      const { paying } = yield* PayWorld
      const { contract, ref, required, server, set } = yield* startListed
      const copied = yield* substitute((request, response) => {
        const isPaid = request.headers["payment-signature"] !== undefined
        const resource = { url: new URL(request.url ?? "/", copied).href.replace(/[?].*/, "") }
        response.writeHead(isPaid ? 500 : 402, { "content-type": "application/json" })
        response.end(JSON.stringify({ ...required, resource }))
      })
      yield* list(`${copied}/page`, required.accepts[0], contract)
      const copy = encodeReference({ type: "http", url: `${copied}/page`, toolName: "" })
      yield* Effect.scoped(
        Effect.gen(function* () {
          const client = yield* paying(set)
          const buy = (of: string) =>
            Effect.map(call(client, "x402_fetch_resource", { ref: of, query: query() }), ({ body }) => body)
          expect((yield* buy(ref))["receipt"]?.settledAmount).toBe("1000")
          expect((yield* buy(copy))["code"]).toBe("SETTLEMENT_UNKNOWN")
          const next = yield* buy(ref)
          expect(next["receipt"]?.settledAmount, JSON.stringify(next)).toBe("1000")
          const [channel] = yield* Effect.promise(() => server.channels.list())
          expect(channel?.chargedCumulativeAmount).toBe("2000")
        })
      )
    }).pipe(Effect.scoped)
  )

  it.effect("shows its person what a deposit moves, and explains the amount decided on", () =>
    Effect.gen(function* () {
      const { paying } = yield* PayWorld
      const { contract, ref, set } = yield* startListed
      const folder = mkdtempSync(join(tmpdir(), "tollkeeper-words-"))
      const rule = 'policy.rules=[{name: deposits, above: "4000", outcome: approve}]'
      const client = yield* paying([...set, rule], undefined, folder)
      const explained = yield* call(client, "x402_explain_payment", { ref })
      expect(explained.body, JSON.stringify(explained.body)).toMatchObject({
        amount: "5000",
        price: "1000",
        depositTo: contract,
        decision: "approve"
      })
      expect((yield* call(client, "x402_fetch_resource", { ref, query: query() })).body["code"]).toBe(
        "PAYMENT_REJECTED"
      )
      const [name] = readdirSync(join(folder, "tools-approvals"))
      const { bought } = JSON.parse(readFileSync(join(folder, "tools-approvals", name!), "utf8"))
      expect(bought.moves).toContain("a deposit of 0.0005 USDC (5000 atomic units)")
      for (const words of [contract, "0.0001 USDC", "refunded", "without the seller after"])
        expect(bought.moves).toContain(words)
    }).pipe(Effect.scoped)
  )

  it.effect(
    "refunds after a restart what a killed process had deposited",
    () =>
      Effect.gen(function* () {
        const { agent, facilitator } = yield* PayWorld
        const { ref, set } = yield* startListed
        const before = yield* facilitator.balance(agent.publicKey())
        const [keystore, state] = [sealed(agent.secret()), yield* folder]
        const own = set.filter((one) => one !== enabled)
        const first = yield* start(keystore, state, undefined, own)
        const client = yield* connectHttp(first.url, processKey)
        const { body } = yield* call(client, "x402_fetch_resource", { ref, query: query() })
        expect(body["receipt"]?.deposited, JSON.stringify(body)).toBe("5000")
        yield* first.kill
        expect(before - (yield* facilitator.balance(agent.publicKey()))).toBe(5_000n)
        yield* start(keystore, state, undefined, [...own, "batch_payments.refund_idle_seconds=1"])
        yield* eventually(facilitator.balance(agent.publicKey()), (now) => before - now === 1_000n)
      }).pipe(Effect.scoped),
    240_000
  )

  it.effect(
    "ends by one command after its process was killed: by a refund, or without the seller",
    () =>
      Effect.gen(function* () {
        const { agent, facilitator } = yield* PayWorld
        const { ref, server, set } = yield* startListed
        const before = yield* facilitator.balance(agent.publicKey())
        const [keystore, state] = [sealed(agent.secret()), yield* folder]
        const own = set.filter((one) => one !== enabled)
        const paidOnce = Effect.gen(function* () {
          const started = yield* start(keystore, state, undefined, own)
          const client = yield* connectHttp(started.url, processKey)
          const { body } = yield* call(client, "x402_fetch_resource", { ref, query: query() })
          yield* started.kill
          return body["receipt"]
        })
        const settings = setting(
          ...payingSet(facilitator),
          `facilitator.base_url=${facilitator.url}`,
          "signer.mode=encrypted-key",
          `signer.keystore_file=${keystore.file}`,
          "budget.store=file",
          ...own
        )
        const command = (...words: ReadonlyArray<string>) =>
          runJson(["channels", "--agent", ...words, "--state", state, ...settings], {
            TOOLS_KEYSTORE_KEY: keystore.key
          })
        expect((yield* paidOnce)?.deposited).toBe("5000")
        const [{ channelId }] = yield* command("list")
        // What is not claimed yet is the seller's to claim, and its payer may withdraw it: a refund claims it first.
        expect(yield* command("refund", channelId)).toMatchObject({ outcome: "refunded", amount: "4000" })
        expect(before - (yield* facilitator.balance(agent.publicKey()))).toBe(1_000n)
        expect(yield* command("list")).toEqual([])
        expect(yield* command("refund", channelId)).toMatch(/no channel of this id is stored/)

        expect((yield* paidOnce)?.deposited).toBe("5000")
        server.schemeHooks.onBeforeVerify = async () => ({ abort: true, reason: "later" }) as any
        expect(yield* command("refund", channelId)).toMatch(/the seller does not refund; withdraw it instead/)
        expect(yield* command("withdraw", channelId)).toMatchObject({ outcome: "withdrawal started", amount: "5000" })
        expect(yield* command("withdraw", channelId)).toMatchObject({ outcome: "withdrawal not due" })
        yield* facilitator.ledger.advanceSeconds(901)
        expect(yield* command("withdraw", channelId)).toMatchObject({ outcome: "withdrawn", amount: "5000" })
        expect(before - (yield* facilitator.balance(agent.publicKey()))).toBe(1_000n)
        expect(yield* command("list")).toEqual([])
      }).pipe(Effect.scoped),
    240_000
  )

  it.effect("is asked again for a refund that the ledger does not show", () =>
    Effect.gen(function* () {
      const { agent, facilitator, paying } = yield* PayWorld
      const { ref, server, set } = yield* startListed
      const before = yield* facilitator.balance(agent.publicKey())
      const honest = { ...server.schemeHooks }
      yield* Effect.scoped(
        Effect.gen(function* () {
          const client = yield* paying([...set, "batch_payments.refund_idle_seconds=1"])
          const { body } = yield* call(client, "x402_fetch_resource", { ref, query: query() })
          expect(body["receipt"]?.settledAmount).toBe("1000")
          // The seller reports a refund that it has not made.
          let lies = 0
          server.schemeHooks.onBeforeVerify = async () => ({ skip: true, result: { isValid: true } }) as any
          server.schemeHooks.onAfterVerify = async () => undefined
          server.schemeHooks.onBeforeSettle = async () => {
            lies += 1
            return { skip: true, result: { success: true, transaction: "", network: "ledger:testnet" } } as any
          }
          yield* eventually(
            Effect.sync(() => lies),
            (asked) => asked > 0
          )
          Object.assign(server.schemeHooks, honest)
          yield* eventually(facilitator.balance(agent.publicKey()), (now) => before - now === 1_000n)
        })
      )
    }).pipe(Effect.scoped)
  )

  it.effect("corrects a process that begins again by what that had signed for before", () =>
    Effect.gen(function* () {
      const { paying } = yield* PayWorld
      const { ref, server, set } = yield* startListed
      const folder = mkdtempSync(join(tmpdir(), "tollkeeper-channels-"))
      const { onBeforeVerify } = server.schemeHooks
      const buy = Effect.scoped(
        Effect.gen(function* () {
          const client = yield* paying([...set, "budget.store=file"], undefined, folder)
          const { body } = yield* call(client, "x402_fetch_resource", { ref, query: query() })
          // It is not refunded at the end.
          server.schemeHooks.onBeforeVerify = async () => ({ abort: true, reason: "later" }) as any
          return body["receipt"]?.settledAmount ?? body
        })
      )
      for (const _ of [1, 2, 3]) {
        expect(yield* buy).toBe("1000")
        server.schemeHooks.onBeforeVerify = onBeforeVerify
      }
    }).pipe(Effect.scoped)
  )

  it.effect("is paid by two windows of one folder, one call at a time", () =>
    Effect.gen(function* () {
      const { paying } = yield* PayWorld
      const { ref, server, set } = yield* startListed
      const folder = mkdtempSync(join(tmpdir(), "tollkeeper-windows-"))
      yield* Effect.scoped(
        Effect.gen(function* () {
          const window = paying([...set, "budget.store=file"], undefined, folder)
          const windows = [yield* window, yield* window] as const
          const buy = (client: Parameters<typeof call>[0]) =>
            Effect.map(call(client, "x402_fetch_resource", { ref, query: query() }), ({ body }) => body)
          for (const one of windows) {
            const body = yield* buy(one)
            expect(body["receipt"]?.settledAmount, JSON.stringify(body)).toBe("1000")
          }
          // The first window's answer is delayed after its charge, while the second one wants to pay.
          const { onBeforeSettle } = server.schemeHooks
          const [isCharged, isLate] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
          server.schemeHooks.onBeforeSettle = async (context: any) => {
            const answer = await onBeforeSettle(context)
            server.schemeHooks.onBeforeSettle = onBeforeSettle
            isCharged.resolve()
            await isLate.promise
            return answer
          }
          const first = yield* Effect.forkChild(buy(windows[0]))
          yield* Effect.promise(() => isCharged.promise)
          const second = yield* Effect.forkChild(buy(windows[1]))
          yield* Effect.sleep("1 second")
          isLate.resolve()
          for (const body of [yield* Fiber.join(first), yield* Fiber.join(second)])
            expect(body["receipt"]?.settledAmount, JSON.stringify(body)).toBe("1000")
          const [channel] = yield* Effect.promise(() => server.channels.list())
          expect(channel?.chargedCumulativeAmount).toBe("4000")
        })
      )
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
          const buy = Effect.suspend(() => call(client, "x402_fetch_resource", { ref, query: query() }))
          for (let at = 1; at <= 5; at++) {
            const { body } = yield* buy
            expect(body["receipt"]?.settledAmount, JSON.stringify(body)).toBe("1000")
          }
          // The payer's account withdraws the money that the seller did not claim.
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
            expect.stringMatching(/needs a larger deposit/)
          ])
        })
      )
      expect(yield* facilitator.balance(agent.publicKey())).toBe(before)
    }).pipe(Effect.scoped)
  )
})
