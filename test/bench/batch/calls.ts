// Paid calls of many buyers at one seller, one after another: the time of a call, from signing its voucher to having
// the page, and the ledger transactions of all of them with their deposits, claim and settlement. Checks the balances.
import { BatchStellarClient } from "../../../examples/batch/BatchStellarClient.ts"
import { decode, encode } from "../../../examples/seller/outcome.mjs"
import { usdcBalance } from "../../../runtime/redteam/balances.ts"
import { median } from "../payments/median.ts"
import type { Subject } from "../payments/world.ts"
import { type ShopOrder, startShop } from "./shop.ts"
import type { BatchWorld } from "./world.ts"

export interface CallFigures {
  readonly calls: number
  /** Milliseconds of calls by voucher. */
  readonly p50: number
  readonly p99: number
  readonly transactions: number
}

const price = 100n

/** With a `stateTtlMillis` of 0 the facilitator verifies each voucher. */
export const paidCalls = async (
  world: BatchWorld,
  subject: Subject,
  calls: number,
  salt: string,
  stateTtlMillis: number
): Promise<CallFigures> => {
  const { buyers, ledgerUrl, rpc, seller } = world
  const order: ShopOrder = {
    facilitator: `http://127.0.0.1:${subject.port}`,
    receiver: seller.publicKey(),
    authorizer: seller.secret(),
    price: String(price),
    stateTtlMillis
  }
  const shop = await startShop(order)
  try {
    const before = await usdcBalance(rpc, seller.publicKey())
    const accepted = (decode((await fetch(shop.page)).headers.get("payment-required")!) as any).accepts[0]
    const depositTimes = Math.ceil(calls / buyers.length)
    const clients = buyers.map(
      (buyer) => new BatchStellarClient({ secret: buyer.secret(), rpcUrl: ledgerUrl, salt, depositTimes })
    )
    const transactions = new Set<string>()
    const call = async (client: BatchStellarClient): Promise<void> => {
      const { payload } = await client.createPaymentPayload(2, accepted)
      const paymentPayload = { x402Version: 2, accepted, payload }
      const response = await fetch(shop.page, { headers: { "payment-signature": encode(paymentPayload) } })
      const receipt: any = decode(response.headers.get("payment-response") ?? "")
      await response.arrayBuffer()
      if (receipt?.success !== true) throw new Error(`a call was not paid: ${response.status}`)
      await client.schemeHooks.onPaymentResponse({ paymentPayload, requirements: accepted, settleResponse: receipt })
      if (receipt.transaction !== "") transactions.add(receipt.transaction)
    }
    await Promise.all(clients.map(call))
    const times: Array<number> = []
    for (let made = clients.length; made < calls; made++) {
      const from = performance.now()
      await call(clients[made % clients.length]!)
      times.push(performance.now() - from)
    }
    for (const hash of await shop.close()) transactions.add(hash)
    const paid = (await usdcBalance(rpc, seller.publicKey())) - before
    if (paid !== BigInt(calls) * price) throw new Error(`${calls} calls paid ${paid}, not ${BigInt(calls) * price}`)
    const sorted = times.toSorted((a, b) => a - b)
    return {
      calls,
      p50: median(times),
      p99: sorted[Math.floor(sorted.length * 0.99)] ?? Number.NaN,
      transactions: transactions.size
    }
  } finally {
    shop.stop()
  }
}
