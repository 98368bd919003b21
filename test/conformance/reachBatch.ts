// The buyers without an SDK at a seller of `batch-settlement`: one deposit by /prepare, three requests, and the
// seller's charges, to the atom. Part of `npm run conformance -- reach`.
import assert from "node:assert/strict"
import { execFile } from "node:child_process"
import { join } from "node:path"
import { promisify } from "node:util"
import { Keypair } from "@stellar/stellar-sdk"
import { BatchStellarServer, keyAuthorizer } from "../../examples/batch/BatchStellarServer.ts"
import { startBatchSeller } from "../../examples/batch/startBatchSeller.ts"
import { pay } from "../../examples/client/prepared.mjs"
import { testnetUsdc } from "../../runtime/redteam/buyer.ts"
import type { Part } from "./report.ts"
import { pythonProgram } from "./reachSellers.ts"
import { root, type World } from "./world.ts"

const price = 1_000n
const deposited = 10n * price
const times = 3

export const reachBatch = async (world: World, part: Part, payTo: string): Promise<void> => {
  const authorizer = keyAuthorizer(Keypair.random().secret())
  const server = new BatchStellarServer({ receiver: payTo, authorizer })
  const network = "stellar:testnet"
  const seller = await startBatchSeller({ server, facilitator: world.facilitator, network, asset: testnetUsdc, price })
  const page = `${seller.url}/page`
  const required: any = await (await fetch(page)).json()
  const contract: string = required.accepts[0].extra.batchContract
  const byNode = async (secret: string) => {
    const batch = { contracts: [contract], depositTimes: 1, channels: new Map() }
    const shared = { facilitator: world.facilitator, maxAmount: 10_000n, rpcUrl: world.ledger, batch }
    let status = 0
    for (let at = 0; at < times; at++) status = (await pay(page, { ...shared, secret })).response.status
    return status
  }
  const byPython = async (secret: string) => {
    const env = {
      ...process.env,
      BUYER_SECRET: secret,
      FACILITATOR_URL: world.facilitator,
      LEDGER_RPC_URL: world.ledger,
      BATCH_CONTRACT: contract,
      MAX_AMOUNT: "1000",
      TIMES: String(times)
    }
    const words = [join(root, "examples/python/buy.py"), page]
    const { stdout } = await promisify(execFile)(pythonProgram!, words, { env })
    return JSON.parse(stdout).status as number
  }
  const buyers = [
    ["Node, /prepare", byNode, deposited],
    // Its deposit covers a hundred calls.
    ...(pythonProgram === undefined ? [] : [["Python", byPython, 100n * price] as const])
  ] as const
  try {
    for (const [name, buy, deposit] of buyers)
      await part.check(`${name} pays three requests by one deposit into a channel`, async () => {
        const account = await world.account(10)
        const before = await world.balance(account.publicKey())
        assert.equal(await buy(account.secret()), 200)
        assert.equal(before - (await world.balance(account.publicKey())), deposit)
        const channels = await server.channels.list()
        const own = channels.find(({ channelConfig }) => channelConfig.payer === account.publicKey())
        assert.equal(own?.chargedCumulativeAmount, String(BigInt(times) * price))
      })
  } finally {
    await seller.close()
  }
}
