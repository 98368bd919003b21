// Buyers that pay sellers through any replica that answers, as a balancer with readiness checks would: a payment is
// sent again until its answer is final, as a careful seller does. Every answer is recorded and compared with the
// ledger's own balances at the end.
import { Keypair } from "@stellar/stellar-sdk"
import { setTimeout as sleep } from "node:timers/promises"
import type { Random } from "../simulation/random.ts"
import { usdcBalance } from "../../runtime/redteam/balances.ts"
import { makePayment } from "../../runtime/redteam/buyer.ts"
import { postSettle } from "../support/rig/postSettle.ts"
import { until } from "../support/rig/until.ts"
import { askFriendbot, type RpcCall } from "../../runtime/redteam/rpcCall.ts"

export const price = 10_000n
/** An authorization outlives every scene: 180 ledgers. */
const lifeSeconds = 900
const endMillisMax = 300_000
const buyersCount = 24
const sellersCount = 3

/** A payment with success for its seller. */
export interface Paid {
  readonly body: unknown
  readonly transaction: string
}

/** Reasons after which the same payment is sent again. */
const again = new Set([
  "settle_ledger_temporarily_unavailable",
  "settle_ledger_transaction_status_unknown",
  "ledger_unavailable"
])

export interface TrafficOptions {
  readonly rpc: RpcCall
  readonly ledgerUrl: string
  readonly urls: ReadonlyArray<string>
  readonly random: Random
  /** The seller's key at the facilitator. */
  readonly key: () => string
}

export class Traffic {
  readonly paid: Array<Paid> = []
  /** Payments with an outcome other than settled, or without an outcome; must stay empty. */
  readonly lost: Array<string> = []
  /** Requests that were sent again because a replica did not answer. */
  unanswered = 0
  readonly #options: TrafficOptions
  readonly #buyers = Array.from({ length: buyersCount }, () => Keypair.random())
  readonly #sellers = Array.from({ length: sellersCount }, () => Keypair.random())
  readonly #received = new Map<string, bigint>()
  readonly #spent = new Map<string, bigint>()
  readonly #hashes = new Set<string>()
  #running: Array<Promise<void>> = []
  #isOn = false
  #hasQuit = false
  #clients = 0
  #doubled = 0

  constructor(options: TrafficOptions) {
    this.#options = options
  }

  readonly fund = async (): Promise<void> => {
    for (const account of [...this.#buyers, ...this.#sellers])
      await askFriendbot(this.#options.ledgerUrl, account.publicKey(), 100)
  }

  /** A signed payment of one of the buyers, with its buyer and seller. */
  readonly make = async () => {
    const { random, rpc } = this.#options
    const buyer = random.pick(this.#buyers)
    const seller = random.pick(this.#sellers).publicKey()
    const { body } = await makePayment({
      rpc,
      payer: buyer,
      payTo: seller,
      amount: price,
      maxTimeoutSeconds: lifeSeconds,
      resourceUrl: "https://shop.example/weather"
    })
    return { body, buyer: buyer.publicKey(), seller }
  }

  /** One answer of `/settle`; undefined when there was none. */
  readonly settle = async (body: unknown, key = this.#options.key(), urls = this.#options.urls): Promise<any> => {
    try {
      return await postSettle(this.#options.random.pick(urls), body, { key, timeoutMillis: 40_000 })
    } catch {
      this.unanswered += 1
      return undefined
    }
  }

  /** Sends a payment until its outcome is final; false if it was not settled. */
  readonly bring = async (
    made: Awaited<ReturnType<Traffic["make"]>>,
    key?: string,
    urls?: ReadonlyArray<string>
  ): Promise<boolean> => {
    const end = performance.now() + endMillisMax
    let last = "no answer"
    while (performance.now() < end && !this.#hasQuit) {
      const answer = await this.settle(made.body, key, urls)
      const hasHash = /^[0-9a-f]{64}$/.test(String(answer?.transaction))
      // A caller that lost the first answer gets `already_settled`, with the hash.
      if (answer?.success === true || (answer?.errorReason === "settle_ledger_already_settled" && hasHash)) {
        this.#settled(made, answer.transaction)
        return true
      }
      last = String(answer?.errorReason ?? last)
      if (answer !== undefined && !again.has(last)) {
        this.lost.push(`${last}: ${answer.errorMessage ?? ""}`)
        return false
      }
      await sleep(300)
    }
    this.lost.push(`never ended, last ${last}`)
    return false
  }

  #settled({ body, buyer, seller }: Awaited<ReturnType<Traffic["make"]>>, transaction: string): void {
    if (this.#hashes.has(transaction)) this.#doubled += 1
    this.#hashes.add(transaction)
    this.#received.set(seller, (this.#received.get(seller) ?? 0n) + price)
    this.#spent.set(buyer, (this.#spent.get(buyer) ?? 0n) + price)
    this.paid.push({ body, transaction })
  }

  /** The final answer to a payment that was settled before; does not count it. */
  readonly ended = async (body: unknown): Promise<any> => {
    const end = performance.now() + endMillisMax
    while (performance.now() < end) {
      const answer = await this.settle(body)
      if (answer !== undefined && !again.has(answer.errorReason)) return answer
      await sleep(300)
    }
    throw new Error("a payment that was settled has no end any more")
  }

  readonly start = (clients: number): void => {
    this.#clients = clients
    this.#isOn = true
    this.#running = Array.from({ length: clients }, async () => {
      while (this.#isOn) {
        await this.bring(await this.make())
        await sleep(this.#options.random.int(100, 600))
      }
    })
  }

  readonly resume = (): void => this.start(this.#clients)

  /** Begins and repeats no payments any more. */
  readonly quit = (): void => {
    this.#isOn = false
    this.#hasQuit = true
  }

  /** Returns when every payment that was begun has its outcome. */
  readonly stop = async (): Promise<void> => {
    this.#isOn = false
    await Promise.all(this.#running)
  }

  /** Returns when `count` more payments have settled. */
  readonly more = async (count: number): Promise<void> => {
    const goal = this.paid.length + count
    await until(`${count} payments settle`, async () => this.paid.length >= goal, endMillisMax)
  }

  /** Differences between ledger and callers, to the atom; empty if they agree. */
  readonly issues = async (): Promise<ReadonlyArray<string>> => {
    const { rpc } = this.#options
    const started = 1_000_000_000n
    const issues: Array<string> = []
    const compare = async (address: string, expected: bigint, caller: string) => {
      const held = await usdcBalance(rpc, address)
      if (held !== expected) issues.push(`${caller} ${address} holds ${held} and should hold ${expected}`)
    }
    for (const one of this.#sellers) {
      const address = one.publicKey()
      await compare(address, started + (this.#received.get(address) ?? 0n), "seller")
    }
    for (const one of this.#buyers) {
      const address = one.publicKey()
      await compare(address, started - (this.#spent.get(address) ?? 0n), "buyer")
    }
    if (this.#doubled > 0) issues.push(`${this.#doubled} transactions were reported for two payments`)
    for (const lost of this.lost) issues.push(`lost: ${lost}`)
    return issues
  }
}
