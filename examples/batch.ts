// `npm run pay -- --batch`: a thousand paid calls of one buyer by `batch-settlement`. Prints the number of ledger
// transactions, the time of a call, and the location of the money before, between and after: deposited, claimed,
// settled, refunded.
import { Address, Keypair, Networks, Operation, rpc, scValToNative, TransactionBuilder } from "@stellar/stellar-sdk"
import { BatchClaims } from "./batch/BatchClaims.ts"
import { BatchStellarClient } from "./batch/BatchStellarClient.ts"
import { BatchStellarServer, keyAuthorizer } from "./batch/BatchStellarServer.ts"
import { startBatchSeller } from "./batch/startBatchSeller.ts"
import { decode, encode } from "./client/keptPayments.mjs"

export interface BatchDemonstration {
  readonly facilitator: string
  /** The ledger's RPC. */
  readonly ledger: string
  readonly asset: string
  readonly buyer: Keypair
  readonly seller: Keypair
  readonly say: (line?: string) => void
  /** Default 1,000. */
  readonly calls?: number
}

const network = "ledger:testnet"
const price = 100n
const inUnits = (units: bigint) => `${units} units`.padStart(16)

/** Reads balances of the token, also a contract's. */
const makeBalances = (ledger: string, asset: string, reader: string) => {
  const server = new rpc.Server(ledger, { allowHttp: new URL(ledger).protocol === "http:" })
  return async (owner: string): Promise<bigint> => {
    const call = Operation.invokeContractFunction({
      contract: asset,
      function: "balance",
      args: [new Address(owner).toScVal()]
    })
    const asked = new TransactionBuilder(await server.getAccount(reader), {
      fee: "100",
      networkPassphrase: Networks.TESTNET
    })
      .addOperation(call)
      .setTimeout(60)
      .build()
    const simulated = await server.simulateTransaction(asked)
    if (!rpc.Api.isSimulationSuccess(simulated)) throw new Error("the token answers no balance")
    return BigInt(scValToNative(simulated.result!.retval) as bigint)
  }
}

const percentile = (sorted: ReadonlyArray<number>, share: number) => sorted[Math.floor(sorted.length * share)] ?? 0

/** Runs the demonstration; true if every call was paid and the balances are correct. */
export const payByBatch = async (options: BatchDemonstration): Promise<boolean> => {
  const { asset, buyer, calls = 1_000, facilitator, ledger, say, seller } = options
  const server = new BatchStellarServer({
    receiver: seller.publicKey(),
    authorizer: keyAuthorizer(seller.secret()),
    minDepositTimes: 1
  })
  const shop = await startBatchSeller({ server, facilitator, network, asset, price })
  const url = `${shop.url}/page`
  const client = new BatchStellarClient({ secret: buyer.secret(), rpcUrl: ledger, depositTimes: calls + 200 })
  const claims = new BatchClaims({ server, facilitator, network, token: asset })
  const balanceOf = makeBalances(ledger, asset, buyer.publicKey())
  const accepted = decode((await fetch(url)).headers.get("payment-required")).accepts[0]
  const transactions: Array<string> = []
  const contract = accepted.extra.batchContract
  const before = await balanceOf(contract)
  const where = async (when: string) => {
    const [payer, held, receiver] = [
      await balanceOf(buyer.publicKey()),
      (await balanceOf(contract)) - before,
      await balanceOf(seller.publicKey())
    ]
    say(`   ${when.padEnd(24)} buyer ${inUnits(payer)}   channel ${inUnits(held)}   seller ${inUnits(receiver)}`)
    return { payer, held, receiver }
  }

  /** One paid call; the transaction that it took, if any. */
  const call = async (): Promise<string> => {
    const { payload } = await client.createPaymentPayload(2, accepted)
    const paymentPayload = { x402Version: 2, accepted, payload }
    const response = await fetch(url, { headers: { "payment-signature": encode(paymentPayload) }, redirect: "manual" })
    const receipt = decode(response.headers.get("payment-response"))
    await response.arrayBuffer()
    if (response.status !== 200 || receipt?.success !== true)
      throw new Error(`a call was not paid: ${receipt?.errorReason ?? response.status}`)
    await client.schemeHooks.onPaymentResponse({
      paymentPayload,
      requirements: accepted,
      settleResponse: receipt
    })
    return receipt.transaction
  }

  try {
    say(`${calls} paid calls by batch-settlement, ${price} units each, at ${url}`)
    say()
    const first = await where("before")
    transactions.push(await call())
    await where("after the deposit")
    const times: Array<number> = []
    for (let number = 1; number < calls; number++) {
      const started = performance.now()
      const transaction = await call()
      times.push(performance.now() - started)
      if (transaction !== "") transactions.push(transaction)
    }
    await where(`after ${calls} calls`)
    transactions.push(...(await claims.claim()))
    await where("after the claim")
    transactions.push(await claims.settle())
    await where("after the settlement")
    transactions.push((await client.refund(url)).transaction)
    const last = await where("after the refund")
    const sorted = [...times].sort((a, b) => a - b)
    const [half, most] = [percentile(sorted, 0.5), percentile(sorted, 0.99)]
    say()
    say(`   ${transactions.length} ledger transactions: deposit, claim, settlement and refund`)
    say(`   a paid call took ${half.toFixed(1)} ms (median), ${most.toFixed(1)} ms (99 of 100)`)
    const due = BigInt(calls) * price
    return last.receiver - first.receiver === due && first.payer - last.payer === due && last.held === 0n
  } finally {
    await shop.close()
  }
}
