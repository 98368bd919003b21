// One URL that offers x402 and the Machine Payments Protocol: the official clients of both buy from it, and a
// credential with an unknown settle gets its page later. Part of `npm run conformance -- reach`.
import assert from "node:assert/strict"
import { createServer } from "node:http"
import { join } from "node:path"
import { makeSell, toNode } from "../../examples/seller/sellRequest.mjs"
import { testnetUsdc } from "../../runtime/redteam/buyer.ts"
import { answering, startWay } from "../support/facilitatorWay.ts"
import { installSet, startSet } from "./officialSet.ts"
import type { Part } from "./report.ts"
import { root, type World } from "./world.ts"

const price = 1_000n

export const reachMpp = async (world: World, part: Part, say: (line: string) => void): Promise<void> => {
  await Promise.all([installSet("c", say), installSet("mpp", say)])
  const { makeBuyer } = await import(join(root, "test/official/mpp/buyer.mjs"))
  const payTo = (await world.account(0)).publicKey()
  const buyer = await world.account(10)
  const way = await startWay(world.facilitator)
  const sell = makeSell({
    ...{ payTo, asset: testnetUsdc, amount: String(price), maxTimeoutSeconds: 300 },
    ...{ facilitator: way.url, patience: 300, log: () => {} },
    mpp: { secret: "a secret for the challenges of conformance" }
  })
  let made = 0
  const server = createServer(
    toNode((request) => sell(request, async () => ({ asked: await request.text(), made: ++made })))
  )
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const url = `http://127.0.0.1:${(server.address() as { port: number }).port}/page`
  const official = await startSet("c", world, payTo, "stellar:testnet")
  const mppx = await makeBuyer({
    keypair: buyer,
    rpcUrl: process.env["STELLAR_MPP"] === undefined ? world.ledger : world.ledgerHttps
  })
  const receiptOf = (response: Response) =>
    JSON.parse(Buffer.from(response.headers.get("payment-receipt") ?? "", "base64url").toString())
  try {
    await part.check("the official x402 client buys from a URL with both protocols", async () => {
      const bought = await official.buy({ path: url, secret: (await world.account(10)).secret() })
      assert.equal(bought.error, undefined)
      assert.deepEqual([bought.status, JSON.parse(bought.body)], [200, { asked: "", made: 1 }])
      assert.equal(bought.receipt.success, true)
    })
    await part.check("the official MPP client buys from the same URL, also by POST", async () => {
      for (const [asked, init] of [["", {}] as const, ["a body", { method: "POST", body: "a body" }] as const]) {
        const response: Response = await mppx.fetch(url, init)
        assert.deepEqual([response.status, ((await response.json()) as any).asked], [200, asked])
        assert.match(receiptOf(response).reference, /^[0-9a-f]{64}$/)
      }
    })
    await part.check("an MPP credential with an unknown settle gets its page later", async () => {
      const first: Response = await mppx.rawFetch(url)
      const payment = await mppx.preparePayment(first)
      const init = payment.setCredential({}, await payment.createCredential())
      way.order("settle", answering(500, "", true))
      assert.equal((await fetch(url, init)).status, 503)
      way.order("settle")
      assert.equal((await fetch(url, init)).status, 200)
    })
    await part.check("each purchase of both protocols moved its price once", async () => {
      assert.equal(await world.balance(payTo), 4n * price)
      assert.equal(await world.balance(buyer.publicKey()), 10n * 10_000_000n - 3n * price)
    })
  } finally {
    server.closeAllConnections()
    server.close()
    await official.stop()
    await way.close()
  }
}
