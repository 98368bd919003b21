// The neutral dialect of the specification, which no published package implements: our own seller and buyer (from the
// guides), the terms of the 402 in its body and in its header, and the same refusals, in the neutral spelling.
import assert from "node:assert/strict"
import { buy } from "../../examples/buyer.ts"
import { startSeller } from "../../examples/seller-http.ts"
import { makePayment, testnetUsdc } from "../../runtime/redteam/buyer.ts"
import { awaitTransaction } from "../../runtime/redteam/rpcCall.ts"
import { assertRefusedSettle, assertRefusedVerify, post } from "../../runtime/redteam/ask.ts"
import { refusalCases } from "./refusalCases.ts"
import type { Part } from "./report.ts"
import { startTap } from "./tap.ts"
import type { World } from "./world.ts"

const price = 10_000n
const network = "ledger:testnet"
const concurrentBuyers = 20

export const neutralCases = async (world: World, part: Part): Promise<void> => {
  const payTo = (await world.account(0)).publicKey()
  const tap = await startTap(world.facilitator)
  const seller = await startSeller({ facilitator: tap.url, payTo, asset: testnetUsdc, amount: String(price), network })
  const url = `${seller.url}/weather?city=Riga`
  const purchase = (secret: string) => buy(url, { secret, rpcUrl: world.ledger, maxAmount: 1_000_000n })
  try {
    await part.check(
      "an unpaid request is answered 402 with PaymentRequired in the body and in the header [S14]",
      async () => {
        const response = await fetch(url)
        assert.equal(response.status, 402)
        const body: any = await response.json()
        assert.deepEqual(JSON.parse(Buffer.from(response.headers.get("payment-required")!, "base64").toString()), body)
        assert.equal(body.accepts[0].network, network)
        assert.ok(body.extensions.catalog)
      }
    )

    const buyer = await world.account(1)
    let receipt: any
    await part.check("the same request with a signed payment is served, with the receipt [S7][S15][S16]", async () => {
      const paid = await purchase(buyer.secret())
      assert.equal(paid.response.status, 200, await paid.response.clone().text())
      assert.deepEqual(await paid.response.json(), { city: "Riga", celsius: 17 })
      receipt = paid.receipt
      assert.equal(receipt.success, true)
      assert.equal(receipt.network, network)
      assert.equal(receipt.payer, buyer.publicKey())
      assert.deepEqual([tap.of("/verify").length, tap.of("/settle").length], [1, 1])
    })
    await part.check("the ledger has it, and the price moved without a fee [S10][S57]", async () => {
      assert.equal((await awaitTransaction(world.rpc, receipt.transaction)).status, "SUCCESS")
      assert.equal(await world.balance(payTo), price)
      assert.equal(await world.balance(buyer.publicKey()), 10_000_000n - price)
    })
    await part.check("a replay is answered already settled, with the hash, and pays nothing", async () => {
      const { body } = tap.of("/settle").at(-1)!
      const answer = await post(`${world.facilitator}/settle`, body)
      assertRefusedSettle(answer, ["settle_ledger_already_settled"])
      assert.equal(answer.json.transaction, receipt.transaction)
      assertRefusedVerify(await post(`${world.facilitator}/verify`, body), [
        "invalid_ledger_enforcing_simulation_failed",
        "settle_ledger_already_settled"
      ])
      assert.equal(await world.balance(payTo), price)
    })

    await part.check(`${concurrentBuyers} concurrent buyers are all paid and served`, async () => {
      const buyers = await Promise.all(Array.from({ length: concurrentBuyers }, () => world.account(1)))
      const paid = await Promise.all(buyers.map((one) => purchase(one.secret())))
      assert.deepEqual(
        paid.map(({ response }) => response.status),
        buyers.map(() => 200)
      )
      for (const one of paid)
        assert.equal((await awaitTransaction(world.rpc, one.receipt.transaction)).status, "SUCCESS")
      for (const one of buyers) assert.equal(await world.balance(one.publicKey()), 10_000_000n - price)
      assert.equal(await world.balance(payTo), price * BigInt(concurrentBuyers + 1))
    })

    for (const credentials of ["address", "addressV2"] as const) {
      await part.check(`an authorization with ${credentials} credentials settles`, async () => {
        const payer = await world.account(1)
        const { body, simulationError } = await makePayment({
          rpc: world.rpc,
          payer,
          payTo,
          amount: price,
          network,
          tamper: { credentials }
        })
        assert.equal(simulationError, undefined)
        const answer = await post(`${world.facilitator}/settle`, body)
        assert.equal(answer.json?.success, true, answer.text)
      })
    }

    await refusalCases(part, world, payTo, price, async () => {
      const payer = await world.account(1)
      return (await makePayment({ rpc: world.rpc, payer, payTo, amount: price, network, maxTimeoutSeconds: 300 })).body
    })
  } finally {
    await seller.close()
    await tap.stop()
  }
}
