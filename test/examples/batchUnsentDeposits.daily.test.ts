// The attack with a deposit that is never sent: its voucher builds on a total that only the deposit would cover. The
// buyer sends it to a seller that verifies it and then cancels the request, as after an error of its handler. Tested
// against a seller with its own record and key, and against the facilitator's store: the charges before it stay
// claimable.
import { assert, it } from "@effect/vitest"
import { Keypair } from "@stellar/stellar-sdk"
import { Effect } from "effect"
import { BatchClaims } from "../../examples/batch/BatchClaims.ts"
import { BatchStellarServer, keyAuthorizer } from "../../examples/batch/BatchStellarServer.ts"
import { channelClient } from "../../examples/batch/channelClient.ts"
import { remoteAuthorizer, remoteChannels, setClaimPolicy, supportedKind } from "../../examples/batch/remoteChannels.ts"
import { facilitatorClient } from "../../examples/seller-http.ts"
import { testnetUsdc } from "../../runtime/redteam/buyer.ts"
import { eventually } from "../support/eventually.ts"
import { startBatch } from "../plugins/x402-batch/world.ts"

const network = "ledger:testnet"
const apiKey = "shop-secret-0123456789"
const environment = {
  FACILITATOR_API_KEYS: `shop:${apiKey}`,
  BATCH_AUTHORIZER_SECRET: "a secret for the authorizers of this test"
}

const makeWorld = Effect.fnUntraced(function* (kind: "own" | "store") {
  const facilitator = yield* startBatch({
    channels: 5,
    closeMillis: 500,
    environment,
    set: ["batch_store.poll_seconds=1"]
  })
  const options = { facilitator: facilitator.url, apiKey, network }
  const authorizer =
    kind === "own" ? keyAuthorizer(Keypair.random().secret()) : yield* Effect.promise(() => remoteAuthorizer(options))
  const receiver = (yield* facilitator.account(0n)).publicKey()
  const server = new BatchStellarServer({
    receiver,
    authorizer,
    minDepositTimes: 1,
    ...(kind === "own" ? {} : { channels: remoteChannels(options) })
  })
  const payer = yield* facilitator.account(10_000n)
  const { batch } = facilitator
  const channel = batch.channel(payer, receiver, Keypair.random(), { receiverAuthorizer: authorizer.address })
  const terms = yield* Effect.promise(async () =>
    server.enhancePaymentRequirements(
      { ...batch.body(channel, {}, 100n).paymentRequirements, extra: {} },
      await supportedKind(options)
    )
  )
  const client = channelClient(server, facilitatorClient(options))
  const sold = async (payload: unknown) => {
    const paymentPayload = { x402Version: 2, accepted: terms, payload }
    const verdict: any = await client.verify(paymentPayload, terms)
    return { paymentPayload, verdict }
  }
  const buy = async (payload: unknown) => {
    const { paymentPayload, verdict } = await sold(payload)
    assert.strictEqual(verdict.isValid, true, JSON.stringify(verdict))
    for (let attempt = 0; ; attempt++) {
      const receipt: any = await client.settle(paymentPayload, terms, "a-key-of-this-sale-0123456789")
      if (receipt.success === true) return
      assert.strictEqual(receipt.errorReason, "settlement_pending", JSON.stringify(receipt))
      assert.isBelow(attempt, 20)
    }
  }
  /** A request that is verified, and whose handler fails: nothing is settled. */
  const cancel = async (payload: unknown) => {
    const { paymentPayload, verdict } = await sold(payload)
    await server.schemeHooks.onVerifiedPaymentCanceled({ paymentPayload })
    return verdict
  }
  return { batch, buy, cancel, channel, facilitator, options, receiver, server }
})

for (const kind of ["own", "store"] as const)
  it.live(`an unsent deposit leaves the charges of a seller with ${kind} records claimable`, () =>
    Effect.gen(function* () {
      const { batch, buy, cancel, channel, facilitator, options, receiver, server } = yield* makeWorld(kind)
      yield* Effect.promise(async () => {
        await buy(await batch.deposit(channel, 1_000n, 100n))
        await buy(batch.pay(channel, 200n))
        const before = await server.channels.get(channel.channelId)
        // The deposit would cover the base of 3,000. The channel holds 1,000.
        const verdict = await cancel(await batch.deposit(channel, 5_000n, 3_100n))
        assert.match(String(verdict.invalidReason), /cumulative_amount_mismatch/)
        const after = await server.channels.get(channel.channelId)
        for (const member of ["chargedCumulativeAmount", "signedMaxClaimable", "signature"] as const)
          assert.strictEqual(after?.[member], before?.[member], member)
      })
      if (kind === "own")
        yield* Effect.promise(async () => {
          const claims = new BatchClaims({ server, token: testnetUsdc, ...options })
          await claims.claim()
          await claims.settle()
        })
      else yield* Effect.promise(() => setClaimPolicy(options, { token: testnetUsdc, claimEverySeconds: 1 }))
      yield* eventually(facilitator.balance(receiver), (balance) => balance === 200n)
    }).pipe(Effect.scoped)
  )
