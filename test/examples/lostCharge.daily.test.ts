// A seller of channels that loses its store's answer to a charge, which was made: the request is pending, and the same
// payment gets its page, charged once. A refusal would ask the buyer to pay for it again.
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { createServer } from "node:http"
import { BatchStellarClient } from "../../examples/batch/BatchStellarClient.ts"
import { BatchStellarServer } from "../../examples/batch/BatchStellarServer.ts"
import { remoteAuthorizer, remoteChannels } from "../../examples/batch/remoteChannels.ts"
import { startBatchSeller } from "../../examples/batch/startBatchSeller.ts"
import { decode, encode } from "../../examples/client/keptPayments.mjs"
import { testnetUsdc } from "../../runtime/redteam/buyer.ts"
import { startBatch } from "../plugins/x402-batch/world.ts"

const network = "ledger:testnet"

/** A connection to the store that makes each charge and loses its answer while `state.isCut`. */
const startCutting = (target: string) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const state = { isCut: false, charges: 0 }
      const server = createServer((request, response) => {
        const chunks: Array<Buffer> = []
        request.on("data", (chunk) => chunks.push(chunk))
        request.on("end", async () => {
          const given = await fetch(target + request.url, {
            method: request.method!,
            headers: { "content-type": "application/json" },
            body: Buffer.concat(chunks)
          })
          const text = await given.text()
          const isCharge = request.url!.endsWith("/channels/charge")
          if (isCharge) state.charges += 1
          if (isCharge && state.isCut) return void request.socket.destroy()
          response.writeHead(given.status, { "content-type": "application/json", connection: "close" }).end(text)
        })
      })
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
      return { state, server, url: `http://127.0.0.1:${(server.address() as { port: number }).port}` }
    }),
    ({ server }) =>
      Effect.sync(() => {
        server.closeAllConnections()
        server.close()
      })
  )

// Deno's server cannot cut a connection.
it.live.skipIf("Deno" in globalThis)("a lost answer to a charge is pending, and the payment gets its page", () =>
  Effect.gen(function* () {
    const facilitator = yield* startBatch({
      closeMillis: 500,
      set: ["batch_store.allow_keyless=true"],
      environment: { BATCH_AUTHORIZER_SECRET: "a secret for the authorizers of this test" }
    })
    const way = yield* startCutting(facilitator.url)
    const store = { facilitator: way.url, network }
    const receiver = (yield* facilitator.account(0n)).publicKey()
    const authorizer = yield* Effect.promise(() => remoteAuthorizer(store))
    const server = new BatchStellarServer({ receiver, authorizer, channels: remoteChannels(store), minDepositTimes: 1 })
    const shop = yield* Effect.acquireRelease(
      Effect.promise(() =>
        startBatchSeller({
          server,
          facilitator: facilitator.url,
          network,
          asset: testnetUsdc,
          price: 100n,
          maxTimeoutSeconds: 300
        })
      ),
      (one) => Effect.promise(() => one.close())
    )
    const url = `${shop.url}/page`
    const asked = yield* Effect.promise(() => fetch(url))
    const terms = decode(asked.headers.get("payment-required")).accepts[0]
    const buyer = yield* facilitator.account(10_000n)
    const client = new BatchStellarClient({ secret: buyer.secret(), rpcUrl: facilitator.ledgerUrl, depositTimes: 5 })
    for (const [at, type] of ["deposit", "voucher", "voucher"].entries())
      yield* Effect.promise(async () => {
        const { payload } = await client.createPaymentPayload(2, terms)
        assert.strictEqual(payload.type, type)
        const paymentPayload = { x402Version: 2, accepted: terms, payload }
        const headers = { "payment-signature": encode(paymentPayload), connection: "close" }
        way.state.isCut = true
        way.state.charges = 0
        const lost = await fetch(url, { headers })
        assert.deepStrictEqual(
          [type, lost.status, decode(lost.headers.get("payment-response"))?.errorReason],
          [type, 503, "settlement_pending"]
        )
        assert.isAbove(way.state.charges, 0)
        way.state.isCut = false
        const page = await fetch(url, { headers })
        const settleResponse = decode(page.headers.get("payment-response"))
        assert.deepStrictEqual([type, page.status, settleResponse?.success], [type, 200, true])
        await client.schemeHooks.onPaymentResponse({ paymentPayload, requirements: terms, settleResponse })
        const [channel] = await server.channels.list()
        assert.strictEqual(channel?.chargedCumulativeAmount, String(100 * (at + 1)))
      })
  }).pipe(Effect.scoped)
)
