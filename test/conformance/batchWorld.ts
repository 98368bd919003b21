// Shared parts of the `batch-settlement` cases: shops built on the official packages at 2.27.0 and express, buyers
// built on their client, both with the scheme classes of the examples, and access to the ledger's own entries.
import assert from "node:assert/strict"
import { createRequire } from "node:module"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import {
  Address,
  Keypair,
  Networks,
  Operation,
  rpc,
  scValToNative,
  TransactionBuilder,
  xdr
} from "@stellar/stellar-sdk"
import { BatchClaims } from "../../examples/batch/BatchClaims.ts"
import { type BatchClientOptions, BatchStellarClient } from "../../examples/batch/BatchStellarClient.ts"
import { BatchStellarServer, keyAuthorizer, type ReceiverAuthorizer } from "../../examples/batch/BatchStellarServer.ts"
import type { SellerChannels } from "../../examples/batch/channels.ts"
import { channelKey, channelStateOf } from "../../plugins/x402-batch/contract.ts"
import { testnetUsdc } from "../../runtime/redteam/buyer.ts"
import { post } from "../../runtime/redteam/ask.ts"
import type { Part } from "./report.ts"
import { root, type World } from "./world.ts"

export const network = "stellar:testnet"
/** Price of one page in atomic units. */
export const price = 100n
/** Atomic units of one USDC, a buyer's balance. */
export const usdc = 10_000_000n

const official = createRequire(join(root, "test", "official", "c", "package.json"))
const load = (name: string): Promise<any> => import(pathToFileURL(official.resolve(name)).href)

export interface Shop {
  /** Address of its page; `?used=N` charges N instead of the price. */
  readonly page: string
  readonly server: BatchStellarServer
  readonly claims: BatchClaims
  readonly receiver: string
  /** Number of answers from its handler. */
  readonly served: () => number
  readonly stop: () => Promise<void>
}

export interface ShopOptions {
  readonly receiver: Keypair
  readonly channels?: SellerChannels
  readonly authorizer?: ReceiverAuthorizer
  /** Called before the page is answered. */
  readonly work?: () => Promise<void>
}

/** A seller on the official middleware; its own key is its authorizer. */
export const openShop = async (world: World, options: ShopOptions): Promise<Shop> => {
  const [{ HTTPFacilitatorClient }, { paymentMiddleware, setSettlementOverrides, x402ResourceServer }, loaded] =
    await Promise.all([load("@x402/core/server"), load("@x402/express"), load("express")])
  const express = loaded.default ?? loaded
  const receiver = options.receiver.publicKey()
  const server = new BatchStellarServer({
    receiver,
    authorizer: options.authorizer ?? keyAuthorizer(options.receiver.secret()),
    minDepositTimes: 1,
    ...(options.channels === undefined ? {} : { channels: options.channels })
  })
  const resources = new x402ResourceServer(new HTTPFacilitatorClient({ url: world.facilitator })).register(
    network,
    server
  )
  const accepts = {
    scheme: "batch-settlement",
    network,
    price: { amount: String(price), asset: testnetUsdc },
    payTo: receiver,
    maxTimeoutSeconds: 60
  }
  const app = express()
  app.use(
    paymentMiddleware({ "GET /page": { accepts, description: "A page", mimeType: "application/json" } }, resources)
  )
  let served = 0
  app.get("/page", async (request: any, response: any) => {
    await options.work?.()
    served++
    if (request.query.used !== undefined) setSettlementOverrides(response, { amount: String(request.query.used) })
    response.json({ page: true })
  })
  const listener = await new Promise<any>((resolve) => {
    const listening = app.listen(0, "127.0.0.1", () => resolve(listening))
  })
  return {
    page: `http://127.0.0.1:${listener.address().port}/page`,
    server,
    receiver,
    claims: new BatchClaims({
      server,
      facilitator: world.facilitator,
      network,
      token: testnetUsdc,
      // The cases set the ledger's clock ahead.
      now: async () => Number((await world.rpc("getLatestLedger", {})).closeTime)
    }),
    served: () => served,
    stop: () => new Promise((resolve) => listener.close(() => resolve()))
  }
}

export interface Bought {
  readonly status: number
  readonly receipt: any
  readonly required: any
  readonly text: string
}

export interface Buyer {
  readonly keypair: Keypair
  readonly client: BatchStellarClient
  readonly buy: (url: string) => Promise<Bought>
  /** Asserts that the answer's charge succeeded. */
  readonly pay: (url: string) => Promise<any>
  /** The last payment sent, decoded. */
  readonly sent: () => any
}

const decode = (header: string | null): any =>
  header === null ? undefined : JSON.parse(Buffer.from(header, "base64").toString("utf8"))

/** A buyer on the official client. */
export const makeBuyer = async (
  world: World,
  keypair: Keypair,
  options: Partial<BatchClientOptions> = {}
): Promise<Buyer> => {
  const { wrapFetchWithPayment, x402Client } = await load("@x402/fetch")
  const client = new BatchStellarClient({ secret: keypair.secret(), rpcUrl: world.ledger, ...options })
  const paying = new x402Client().register(network, client)
  paying.setSpendControls?.(false)
  let sent: string | null = null
  const payingFetch = wrapFetchWithPayment((input: RequestInfo, init?: RequestInit) => {
    const request = new Request(input, init)
    sent = request.headers.get("payment-signature") ?? sent
    return fetch(request)
  }, paying)
  const buy = async (url: string): Promise<Bought> => {
    const response: Response = await payingFetch(url)
    return {
      status: response.status,
      receipt: decode(response.headers.get("payment-response")),
      required: decode(response.headers.get("payment-required")),
      text: await response.text()
    }
  }
  return {
    keypair,
    client,
    sent: () => decode(sent),
    buy,
    pay: async (url) => {
      const { receipt, required, status, text } = await buy(url)
      assert.equal(status, 200, `${text} ${JSON.stringify(receipt ?? required?.error)}`)
      assert.equal(receipt?.success, true, JSON.stringify(receipt))
      return receipt
    }
  }
}

export interface Batch {
  readonly contract: string
  /** Terms of a shop from its 402. */
  readonly termsOf: (shop: Shop) => Promise<any>
  /** A channel's entry on the ledger. */
  readonly state: (channelId: string) => Promise<any>
  /** The contract's balance of the token. */
  readonly held: () => Promise<bigint>
  readonly settle: (payload: unknown, terms: any) => ReturnType<typeof post>
  readonly verify: (payload: unknown, terms: any) => ReturnType<typeof post>
  /** Closes empty ledgers, like months without transactions. */
  readonly closeMany: (ledgers: number) => Promise<void>
  /** Sets the ledger's clock ahead. */
  readonly advance: (seconds: number) => Promise<void>
}

const bodyOf = (payload: unknown, terms: any) => ({
  x402Version: 2,
  paymentPayload: { x402Version: 2, accepted: terms, payload },
  paymentRequirements: terms
})

const leap = async ({ ledger }: World, by: string): Promise<void> => {
  const response = await fetch(`${ledger}/advance?${by}`, { method: "POST" })
  assert.equal(response.status, 200, await response.text())
  await fetch(`${ledger}/close`, { method: "POST" })
}

/** Reads the facilitator's announcement, and the ledger. */
export const batchOf = async (world: World): Promise<Batch> => {
  const { kinds }: any = await (await fetch(`${world.facilitator}/supported`)).json()
  const kind = kinds.find((one: any) => one.scheme === "batch-settlement" && one.network === network)
  if (kind === undefined) throw new Error("the facilitator does not offer batch-settlement")
  const contract = kind.extra.batchContract
  const server = new rpc.Server(world.ledger, { allowHttp: true })
  const reader = await world.account(0)
  return {
    contract,
    termsOf: async ({ page }) => decode((await fetch(page)).headers.get("payment-required")).accepts[0],
    state: async (channelId) => {
      const { entries } = await world.rpc("getLedgerEntries", { keys: [channelKey(contract, channelId)] })
      if (entries[0] === undefined) return undefined
      const entry: any = xdr.LedgerEntryData.schema.decode(Buffer.from(entries[0].xdr, "base64") as never)
      return channelStateOf(entry.contractData.val)
    },
    held: async () => {
      const source = await server.getAccount(reader.publicKey())
      const asked = new TransactionBuilder(source, { fee: "100", networkPassphrase: Networks.TESTNET })
        .addOperation(
          Operation.invokeContractFunction({
            contract: testnetUsdc,
            function: "balance",
            args: [new Address(contract).toScVal()]
          })
        )
        .setTimeout(60)
        .build()
      const simulated = await server.simulateTransaction(asked)
      if (!rpc.Api.isSimulationSuccess(simulated)) throw new Error("the token did not return a balance")
      return scValToNative(simulated.result!.retval) as bigint
    },
    settle: (payload, terms) => post(`${world.facilitator}/settle`, bodyOf(payload, terms)),
    verify: (payload, terms) => post(`${world.facilitator}/verify`, bodyOf(payload, terms)),
    closeMany: (ledgers) => leap(world, `ledgers=${ledgers}`),
    advance: (seconds) => leap(world, `seconds=${seconds}`)
  }
}

export interface Cases {
  readonly world: World
  readonly part: Part
  readonly batch: Batch
}

export const word = (reason: string) => `invalid_batch_settlement_stellar_${reason}`

/** A shop of a new receiver, closed at the end. */
export const inShop = async (
  { world }: Cases,
  work: (shop: Shop) => Promise<void>,
  options: Partial<Parameters<typeof openShop>[1]> = {}
): Promise<void> => {
  const shop = await openShop(world, { receiver: await world.account(0), ...options })
  try {
    await work(shop)
  } finally {
    await shop.stop()
  }
}
