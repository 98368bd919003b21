// The seller of the simulation: the scheme's server class, its records over a storage that survives a crash, and its
// claims. A crash loses every request. A restart may find an older backup of the records.
import { BatchClaims } from "../../../examples/batch/BatchClaims.ts"
import { BatchStellarServer, keyAuthorizer } from "../../../examples/batch/BatchStellarServer.ts"
import { channelClient } from "../../../examples/batch/channelClient.ts"
import {
  type Channel,
  channelsOver,
  type ChannelStorage,
  type SellerChannels
} from "../../../examples/batch/channels.ts"
import type { Client } from "../../../examples/seller/outcome.mjs"
import type { ChannelWorld } from "./ChannelWorld.ts"
import { contract, delaySeconds, network } from "./ChannelLedger.ts"
import { changeOf } from "../../../plugins/batch-store/watchWithdrawals.ts"

/** How often the seller claims; a failed claim is repeated sooner. */
const claimMillis = 200_000
const againMillis = 30_000

/** The charge of a request whose handler fails after the payment was verified. */
export const failing = -1n

export interface Parties {
  readonly receiver: string
  readonly secret: string
  readonly token: string
}

/** Records of a seller with its own key. */
export class Records {
  records = new Map<string, Channel>()
  readonly channels: SellerChannels

  constructor(world: ChannelWorld) {
    const storage: ChannelStorage = {
      get: async (id) => this.records.get(id),
      list: async () => [...this.records.values()],
      updateChannel: async (id, update) => {
        await world.sleep(world.random.int(0, 30))
        const current = this.records.get(id)
        const next = update(current)
        if (next === undefined) this.records.delete(id)
        else this.records.set(id, next)
        return { channel: next, status: next === current ? "unchanged" : "updated" }
      }
    }
    this.channels = channelsOver(storage)
  }
}

export class ChannelSeller {
  readonly records: Records
  readonly terms: any
  /** Amount of delivered content, by channel. */
  readonly served = new Map<string, bigint>()
  /** Reported losses, by channel. */
  readonly lost = new Map<string, bigint>()
  /** Channels with a record from before their last sale. */
  readonly stale = new Set<string>()
  isUp = true
  upSince: number
  readonly #world: ChannelWorld
  readonly #parties: Parties
  #life = 0
  #client: Client
  #server: BatchStellarServer
  #claims: BatchClaims

  constructor(world: ChannelWorld, parties: Parties, price: bigint) {
    this.#world = world
    this.#parties = parties
    this.records = new Records(world)
    this.upSince = world.time.now
    const { receiver, token } = parties
    const start = this.#start()
    this.#client = start.client
    this.#server = start.server
    this.#claims = start.claims
    this.terms = {
      ...{ scheme: "batch-settlement", network, asset: token, amount: String(price), payTo: receiver },
      maxTimeoutSeconds: 60,
      extra: {
        ...{ batchContract: contract, receiverAuthorizer: this.#server.authorizer.address },
        ...{ withdrawDelay: delaySeconds, areFeesSponsored: true }
      }
    }
  }

  /** Of this process: an earlier process can no longer answer its calls. */
  #start() {
    const life = ++this.#life
    const world = this.#world
    const { receiver, secret, token } = this.#parties
    const server = new BatchStellarServer({
      ...{ receiver, authorizer: keyAuthorizer(secret), channels: this.records.channels, withdrawDelay: delaySeconds },
      stateTtlMillis: world.random.pick([0, 60_000])
    })
    const alive = <A>(answer: Promise<A>): Promise<A> =>
      answer.finally(() => (this.#life === life ? undefined : new Promise(() => undefined)))
    const one = () => world.random.pick(world.facilitators)
    const client = channelClient(server, {
      verify: (payment, terms) => alive(one().verify(payment, terms)),
      settle: (payment, terms, key) => alive(one().settle(payment, terms, key))
    })
    const claims = new BatchClaims({
      ...{ server, facilitator: "http://facilitator", network, token, contract },
      now: () => world.ledger.seconds
    })
    world.time.after(world.random.int(0, againMillis), () => void this.#turns(life))
    return { client, server, claims }
  }

  crash(): void {
    this.isUp = false
    this.#life++
  }

  restart(backup?: Map<string, Channel>): void {
    if (backup !== undefined) {
      for (const [id, { chargedCumulativeAmount }] of this.records.records)
        if (BigInt(backup.get(id)?.chargedCumulativeAmount ?? 0) < BigInt(chargedCumulativeAmount)) this.stale.add(id)
      this.records.records = new Map(backup)
    }
    const start = this.#start()
    this.#client = start.client
    this.#server = start.server
    this.#claims = start.claims
    this.isUp = true
    this.upSince = this.#world.time.now
  }

  async #turns(life: number): Promise<void> {
    while (this.#life === life) {
      await this.#watch()
      const isDone = await this.#claims.claim().then(
        () => true,
        () => false
      )
      await this.#world.sleep(isDone ? claimMillis : againMillis)
    }
  }

  /** Reads the ledger's state of the channels, and reports what a payer has withdrawn. */
  async #watch(): Promise<void> {
    for (const [id, record] of this.records.records) {
      const state = this.#world.ledger.stateOf(id)
      if (state === undefined) continue
      const { chargedCumulativeAmount: charged, refundNonce, withdrawRequestedAt } = record
      const lost = String(this.lost.get(id) ?? 0n)
      const change = changeOf({ charged, refundNonce: String(refundNonce), withdrawRequestedAt, lost }, state)
      if (change === undefined) continue
      if (change > BigInt(lost)) {
        this.lost.set(id, change)
        this.#world.count("channel loss reported")
      }
      const { balance, totalClaimed } = state
      await this.records.channels.sync(id, {
        ...{ balance: String(balance), totalClaimed: String(totalClaimed) },
        ...{ withdrawRequestedAt: state.withdrawRequestedAt, refundNonce: Number(state.refundNonce) },
        asOf: this.#world.ledger.seconds
      })
    }
  }

  /** The answer to a request with a payment: a receipt, or new terms with the reason. No answer from a dead process. */
  async ask(payment: any, used: bigint): Promise<any> {
    const life = this.#life
    const [client, server] = [this.#client, this.#server]
    const answered = await this.#sell(client, server, payment, used)
    if (this.#life !== life) throw new Error("no answer")
    return answered
  }

  async #sell(client: Client, server: BatchStellarServer, paymentPayload: any, used: bigint): Promise<any> {
    const refuse = async (reason: unknown) => {
      const accepts = [structuredClone(this.terms)]
      await server.enrichPaymentRequiredResponse({ paymentPayload, requirements: accepts, error: reason })
      return { reason, accepts }
    }
    const verified = await client.verify(paymentPayload, this.terms)
    if (verified.isValid !== true) return refuse(verified.invalidReason)
    await this.#world.sleep(this.#world.random.int(0, 2_000))
    if (used === failing) {
      await server.schemeHooks.onVerifiedPaymentCanceled({ paymentPayload })
      return refuse("the handler failed")
    }
    const isRefund = paymentPayload.payload.type === "refund"
    const amount = isRefund ? this.terms.amount : String(used)
    const receipt = await client.settle(paymentPayload, { ...this.terms, amount }, `${Math.random()}`)
    if (receipt.success !== true) return refuse(receipt.errorReason)
    if (!isRefund) this.#delivered(paymentPayload.payload.voucher.channelId, used)
    return { receipt }
  }

  #delivered(id: string, used: bigint): void {
    if (!this.isUp) return
    this.#world.count("channel call served")
    const served = (this.served.get(id) ?? 0n) + used
    this.served.set(id, served)
    // A buyer may replay old vouchers to a restored record; the next honest one raises it.
    if (BigInt(this.records.records.get(id)!.chargedCumulativeAmount) >= served) this.stale.delete(id)
  }
}
