// Our packed packages and the newest official ones on one server: either side's buyer buys from either side's page, and
// our package verifies the receipts of both. Part of `npm run conformance -- reach`.
import assert from "node:assert/strict"
import { once } from "node:events"
import { mkdtemp, rm } from "node:fs/promises"
import { createRequire } from "node:module"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { testnetUsdc } from "../../runtime/redteam/buyer.ts"
import { installPackages } from "../support/packages.ts"
import { installSet, startSet } from "./officialSet.ts"
import { provenOf } from "./receiptCases.ts"
import type { Part } from "./report.ts"
import { root, type World } from "./world.ts"

const price = 10_000n
const network = "stellar:testnet"
const pages = { ours: "the packed seller's page", official: "the official middleware's page" }

/** An Express server with a page of each side. */
const startBoth = async ({ makeSell, toNode }: any, facilitator: string, payTo: string) => {
  const official = createRequire(join(root, "test/official/c/package.json"))
  const { HTTPFacilitatorClient } = official("@x402/core/server")
  const { paymentMiddleware, x402ResourceServer } = official("@x402/express")
  const { ExactStellarScheme } = official("@x402/stellar/exact/server")
  // The two properties that its newest published version lacks.
  const scheme = Object.assign(new ExactStellarScheme(), {
    defaultAssetTransferMethod: "default",
    paymentFlows: { default: { supported: ["authorization"], default: "authorization" } }
  })
  const server = new x402ResourceServer(new HTTPFacilitatorClient({ url: facilitator })).register(network, scheme)
  const accepts = { scheme: "exact", network, price: "$0.001", payTo }
  const sell = makeSell({ payTo, asset: testnetUsdc, amount: String(price), maxTimeoutSeconds: 300, facilitator })
  const app = official("express")()
  app.get(
    "/ours",
    toNode((request: Request) => sell(request, () => ({ page: "ours" })))
  )
  app.use(paymentMiddleware({ "GET /official": { accepts, description: "A page" } }, server))
  app.get("/official", (_: unknown, response: any) => response.json({ page: "official" }))
  const listener = app.listen(0, "127.0.0.1")
  await once(listener, "listening")
  return { url: `http://127.0.0.1:${listener.address().port}`, listener }
}

export const reachPacked = async (world: World, part: Part, say: (line: string) => void): Promise<void> => {
  await installSet("c", say)
  const project = await mkdtemp(join(tmpdir(), "tollkeeper-packed-"))
  await installPackages(project)
  const { resolve } = createRequire(join(project, "package.json"))
  const load = (name: string): Promise<any> => import(pathToFileURL(resolve(`@tollkeeper/${name}`)).href)
  const [seller, { pay }, { verify }] = [await load("seller"), await load("client"), await load("receipts")]
  const payTo = (await world.account(0)).publicKey()
  const set = await startSet("c", world, payTo, network)
  const { listener, url } = await startBoth(seller, world.facilitator, payTo)
  const buyer = await world.account(10)
  const did = await (await fetch(`${world.facilitator}/.well-known/did.json`)).json()
  const isBought = async (page: string, status: number, body: string, receipt: any) => {
    assert.deepEqual([status, JSON.parse(body)], [200, { page }], JSON.stringify(receipt))
    const claims = await verify(await provenOf(world, receipt.transaction), did)
    assert.ok(JSON.stringify(claims).includes(receipt.transaction))
  }
  try {
    for (const [page, name] of Object.entries(pages)) {
      await part.check(`the packed client buys ${name}`, async () => {
        const limits = { maxAmount: price, facilitator: world.facilitator }
        const { receipt, response } = await pay(`${url}/${page}`, { secret: buyer.secret(), ...limits })
        await isBought(page, response.status, await response.text(), receipt)
      })
      await part.check(`the newest official client buys ${name}`, async () => {
        const { body, error, receipt, status } = await set.buy({ path: `${url}/${page}`, secret: buyer.secret() })
        assert.equal(error, undefined)
        await isBought(page, status, body, receipt)
      })
    }
    assert.equal(await world.balance(payTo), 4n * price)
  } finally {
    listener.closeAllConnections()
    listener.close()
    await set.stop()
    await rm(project, { recursive: true })
  }
}
