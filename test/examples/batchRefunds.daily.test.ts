// The attack with a signed but unpaid refund: its payer has the signature, as after a transaction that failed on the
// ledger, continues to buy, and submits the refund later. Tested against a seller with its own record and key, and
// against a seller that leaves both to the facilitator's store: charged amounts stay claimable.
import { assert, it } from "@effect/vitest"
import { Keypair } from "@stellar/stellar-sdk"
import { Effect } from "effect"
import { createServer } from "node:http"
import { BatchStellarClient } from "../../examples/batch/BatchStellarClient.ts"
import { BatchStellarServer, keyAuthorizer } from "../../examples/batch/BatchStellarServer.ts"
import { remoteAuthorizer, remoteChannels } from "../../examples/batch/remoteChannels.ts"
import { startBatchSeller } from "../../examples/batch/startBatchSeller.ts"
import { channelKey, channelStateOf } from "../../plugins/x402-batch/contract.ts"
import { listen } from "../../examples/seller-http.ts"
import { decode, encode } from "../../examples/seller/outcome.mjs"
import { testnetUsdc } from "../../runtime/redteam/buyer.ts"
import { startBatch } from "../plugins/x402-batch/world.ts"
import { xdr } from "@stellar/stellar-sdk"

const network = "ledger:testnet"
const price = 100n
const apiKey = "shop-secret-0123456789"
const environment = {
  FACILITATOR_API_KEYS: `shop:${apiKey}`,
  BATCH_AUTHORIZER_SECRET: "a secret for the authorizers of this test"
}

/** Forwards requests, except the settle of a refund: it keeps that, and answers as after a failed transaction. */
const leakingProxy = (facilitator: string) => {
  const leaked: Array<string> = []
  const server = createServer(async (request, response) => {
    const chunks: Array<Buffer> = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const body = Buffer.concat(chunks).toString()
    const isRefund = request.url === "/settle" && body.includes('"refundNonce"')
    if (isRefund) leaked.push(body)
    const { authorization = "" } = request.headers
    const init = { method: request.method!, headers: { "content-type": "application/json", authorization } }
    const failed = { success: false, errorReason: "settle_ledger_transaction_failed", transaction: "", network }
    const answer = isRefund
      ? Response.json(failed)
      : await fetch(`${facilitator}${request.url}`, { ...init, ...(request.method === "POST" ? { body } : {}) })
    response.writeHead(answer.status, { "content-type": "application/json" }).end(await answer.text())
  })
  return listen(server, 0).then(({ close, url }) => ({ close, leaked, url }))
}

const makeWorld = Effect.fnUntraced(function* (kind: "own" | "store") {
  // A deposit's lifetime is counted in ledgers of five seconds, so it is shorter on ledgers that close faster.
  const facilitator = yield* startBatch({ channels: 5, closeMillis: 500, environment })
  const proxy = yield* Effect.acquireRelease(
    Effect.promise(() => leakingProxy(facilitator.url)),
    (one) => Effect.promise(() => one.close())
  )
  const store = { facilitator: facilitator.url, apiKey, network }
  const authorizer =
    kind === "own" ? keyAuthorizer(Keypair.random().secret()) : yield* Effect.promise(() => remoteAuthorizer(store))
  const server = new BatchStellarServer({
    receiver: (yield* facilitator.account(0n)).publicKey(),
    authorizer,
    minDepositTimes: 1,
    ...(kind === "own" ? {} : { channels: remoteChannels(store) })
  })
  const shop = yield* Effect.acquireRelease(
    Effect.promise(() =>
      startBatchSeller({
        server,
        facilitator: proxy.url,
        network,
        asset: testnetUsdc,
        price,
        apiKey,
        maxTimeoutSeconds: 300
      })
    ),
    (one) => Effect.promise(() => one.close())
  )
  const url = `${shop.url}/page`
  const terms = decode((yield* Effect.promise(() => fetch(url))).headers.get("payment-required")).accepts[0]
  const buyer = yield* facilitator.account(10_000n)
  const client = new BatchStellarClient({
    secret: buyer.secret(),
    rpcUrl: facilitator.ledgerUrl,
    depositTimes: 10
  })
  const buy = async (): Promise<string> => {
    const { payload } = await client.createPaymentPayload(2, terms)
    const paymentPayload = { x402Version: 2, accepted: terms, payload }
    const response = await fetch(url, { headers: { "payment-signature": encode(paymentPayload) } })
    const settleResponse = decode(response.headers.get("payment-response"))
    const paymentRequired = decode(response.headers.get("payment-required"))
    const context = { paymentPayload, requirements: terms, settleResponse, paymentRequired }
    await client.schemeHooks.onPaymentResponse(context)
    return response.status === 200 ? payload.type : paymentRequired.error
  }
  const channelId = client.channelIdOf(terms)
  /** The charged amount, and the maximum total claim. */
  const books = async () => {
    const keys = [channelKey(facilitator.contract, channelId)]
    const { entries } = await facilitator.rpc("getLedgerEntries", { keys })
    const entry: any = xdr.LedgerEntryData.schema.decode(Buffer.from(entries[0].xdr, "base64") as never)
    const { balance } = channelStateOf(entry.contractData.val)!
    return { balance, charged: BigInt((await server.channels.get(channelId))!.chargedCumulativeAmount) }
  }
  const submit = (body: string) => facilitator.settle(JSON.parse(body), { authorization: `Bearer ${apiKey}` })
  return { books, buy, client, facilitator, leaked: proxy.leaked, submit, url }
})

for (const kind of ["own", "store"] as const) {
  it.live(`a failed refund is pending at a seller with ${kind} records: nothing is sold below it`, () =>
    Effect.gen(function* () {
      const { books, buy, client, facilitator, leaked, submit, url } = yield* makeWorld(kind)
      yield* Effect.promise(async () => {
        assert.deepStrictEqual([await buy(), await buy()], ["deposit", "voucher"])
        await client.refund(url).then(() => assert.fail("it was refunded"), String)
        assert.match(await buy(), /channel_busy/)
        assert.deepStrictEqual(await books(), { balance: 1_000n, charged: 200n })
      })
      // The payer submits it itself: the charged amount is still there, and the buyer continues with a deposit.
      const submitted = yield* submit(leaked[0]!)
      assert.strictEqual(submitted.json.success, true, submitted.text)
      yield* Effect.promise(async () => {
        assert.deepStrictEqual(await books(), { balance: 200n, charged: 200n })
        // The ledger shows less than the buyer's record: the official client asks again.
        assert.match(await buy(), /cumulative_exceeds_balance/)
        assert.strictEqual(await buy(), "deposit")
        // The next refund is never submitted: after it expires the channel continues to sell, and the refund no longer
        // counts.
        await client.refund(url).then(() => assert.fail("it was refunded"), String)
        assert.match(await buy(), /channel_busy/)
        await fetch(`${facilitator.ledgerUrl}/advance?seconds=400`, { method: "POST" })
        const until = performance.now() + 30_000
        for (let bought = await buy(); bought !== "voucher"; bought = await buy())
          assert.isBelow(performance.now(), until, bought)
      })
      const late = yield* submit(leaked[1]!)
      assert.match(late.json.errorReason, /payload_authorization_valid_before/, late.text)
      const { balance, charged } = yield* Effect.promise(books)
      assert.deepStrictEqual([balance, charged], [1_200n, 400n])
    }).pipe(Effect.scoped)
  )
}
