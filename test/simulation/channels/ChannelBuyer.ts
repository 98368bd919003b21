// A buyer of the simulation, with one channel. An honest one follows the client's rules: it never lowers a total that
// was answered, and accepts a higher one only with a voucher of its own. The others also attack: they let a refund fail
// and submit it themselves, withdraw without the seller, replay vouchers, pay with a key of small order, or build a
// voucher on a deposit that they never send.
import type { ChannelConfig } from "../../../examples/batch/channels.ts"
import { isVoucherOf, type Signer, signVoucher } from "../../../examples/batch/vouchers.ts"
import { closeMillis, delaySeconds, place } from "./ChannelLedger.ts"
import { type ChannelSeller, failing } from "./ChannelSeller.ts"
import { type ChannelWorld, smallOrderSignature } from "./ChannelWorld.ts"

export const buyerKinds = ["honest", "honest", "refunder", "withdrawer", "replayer", "poisoner", "inflater"] as const
export type BuyerKind = (typeof buyerKinds)[number]

const larger = (a: bigint, b: bigint): bigint => (a > b ? a : b)
/** Calls that one deposit pays. */
const depositTimes = 12n

export class ChannelBuyer {
  readonly kind: BuyerKind
  readonly id: string
  readonly config: ChannelConfig
  /** Set once it was served after the storm. */
  isServed = false
  #total = 0n
  #balance = 0n
  #signed = 0n
  #sent: Array<any> = []
  readonly #world: ChannelWorld
  readonly #seller: ChannelSeller
  readonly #signer: Signer
  readonly #price: bigint

  constructor(
    world: ChannelWorld,
    seller: ChannelSeller,
    of: { readonly kind: BuyerKind; readonly config: ChannelConfig; readonly signer: Signer }
  ) {
    this.#world = world
    this.#seller = seller
    this.#signer = of.signer
    this.#price = BigInt(seller.terms.amount)
    this.kind = of.kind
    this.config = of.config
    this.id = world.idOf(of.config)
  }

  #voucher(max: bigint) {
    if (this.kind !== "poisoner") return signVoucher(this.#signer, place, this.id, max)
    this.#world.count("channel voucher of small order")
    return { channelId: this.id, maxClaimableAmount: String(max), signature: smallOrderSignature }
  }

  async #send(payload: object, used: bigint): Promise<any> {
    const payment = {
      x402Version: 2,
      accepted: this.#seller.terms,
      payload: { channelConfig: this.config, ...payload }
    }
    this.#sent.push(payment)
    return this.#ask(payment, used)
  }

  /** The answer; undefined if it is lost, or its process died. */
  async #ask(payment: unknown, used: bigint): Promise<any> {
    const asked = this.#seller.ask(structuredClone(payment), used).catch(() => undefined)
    return Promise.race([asked, this.#world.sleep(60_000)])
  }

  /** The balance from the ledger; the claimed amount counts as charged. */
  #reread(): void {
    const { balance = 0n, totalClaimed = 0n } = this.#world.ledger.stateOf(this.id) ?? {}
    this.#balance = balance
    this.#total = larger(this.#total, totalClaimed)
  }

  #learn({ accepts, reason, receipt }: any, max: bigint): void {
    if (receipt !== undefined) {
      this.#total = larger(this.#total, BigInt(receipt.extra.channelState.chargedCumulativeAmount ?? max))
      return
    }
    const { channelState, voucherState } = accepts[0].extra
    if (channelState === undefined) return this.#reread()
    const [charged, signedMax] = [BigInt(channelState.chargedCumulativeAmount), voucherState.signedMaxClaimable]
    const own = { channelId: this.id, maxClaimableAmount: signedMax, signature: voucherState.signature }
    const isProven = charged <= BigInt(signedMax) && isVoucherOf(this.config.payerAuthorizer, place, own)
    if (isProven) this.#total = larger(this.#total, charged)
    else if (/mismatch/.test(String(reason))) this.#reread()
  }

  /** One call; whether it was served. `balance`: what the buyer pretends to have. */
  async call(balance?: bigint): Promise<boolean> {
    const { chance, int, pick } = this.#world.random
    const used = chance(0.8) ? this.#price : BigInt(int(0, Number(this.#price)))
    const max = this.#total + this.#price
    if (max > this.#balance) this.#reread()
    if (balance !== undefined) this.#balance = balance
    const missing = max > this.#balance
    const amount = this.#price * depositTimes
    this.#signed = larger(this.#signed, max)
    const voucher = this.#voucher(max)
    const deposit = { amount: String(amount), authorization: {} }
    const payload = missing ? { type: "deposit", voucher, deposit } : { type: "voucher", voucher }
    const answers = await Promise.all([
      this.#send(payload, used),
      ...(this.kind === "replayer" ? [this.#replay(pick(this.#sent))] : [])
    ])
    if (missing) this.#reread()
    if (answers[0] !== undefined) this.#learn(answers[0], max)
    return answers[0]?.receipt !== undefined
  }

  async #replay(payment: any): Promise<undefined> {
    if (payment.payload.type !== "voucher") return
    this.#world.count("channel voucher replayed")
    await this.#ask(payment, this.#price)
  }

  async #refund(): Promise<void> {
    const { chance, int } = this.#world.random
    const left = this.#balance - this.#total
    const amount = chance(0.5) && left > 1n ? { amount: String(int(1, Number(left))) } : {}
    const answer = await this.#send({ type: "refund", voucher: this.#voucher(this.#total), ...amount }, 0n)
    if (answer?.receipt !== undefined) this.#world.count("channel refunded")
    // A node that is behind still shows the balance before the refund.
    if (chance(0.5)) {
      this.#world.count("channel refund spent again")
      for (let calls = int(1, 3); calls > 0; calls--) await this.call(this.#total + left)
    }
    this.#reread()
  }

  /** Sends a deposit to a request that fails, with a voucher whose base only that deposit would cover. */
  async #inflate(): Promise<void> {
    const base = this.#price * BigInt(this.#world.random.int(20, 200))
    const max = this.#total + base + this.#price
    const deposit = { amount: String(max), authorization: {} }
    this.#world.count("channel deposit unsent")
    await this.#send({ type: "deposit", voucher: this.#voucher(max), deposit }, failing)
  }

  /** Submits a public refund of its own channel, without the facilitator. */
  async #submitLeaked(): Promise<void> {
    const { ledger, random } = this.#world
    const own = ledger.leaked.filter(({ act }) => act?.kind === "refund" && act.channel === this.id)
    if (own.length === 0) return
    if (await ledger.submit(random.pick(own))) this.#world.count("channel refund leaked")
    this.#reread()
  }

  /** Withdraws without the seller and, if it can, without being seen. */
  async #withdraw(): Promise<void> {
    const { ledger, random } = this.#world
    const isNew = ledger.stateOf(this.id)?.withdrawRequestedAt === 0 && random.chance(0.3)
    await this.#step(isNew ? "withdrawStart" : "withdrawEnd")
  }

  async #step(kind: "withdrawStart" | "withdrawEnd"): Promise<void> {
    if (await this.#world.ledger.submit({ claims: [], act: { kind, channel: this.id } }))
      this.#world.count(kind === "withdrawStart" ? "channel withdrawal started" : "channel withdrawal ended")
    this.#reread()
  }

  /** The seller is down: the whole withdrawal may remain unseen. */
  async useOutage(): Promise<void> {
    if (this.kind !== "withdrawer") return
    await this.#step("withdrawStart")
    await this.#world.sleep(delaySeconds * 1_000)
    await this.#step("withdrawEnd")
  }

  /** Removes the trustline while a refund of the channel is submitted, and opens it again later. */
  sabotage(): void {
    const { ledger, random, time } = this.#world
    const payer = ledger.batch.channels.get(this.id)!.payer
    if (this.kind !== "refunder" || !random.chance(0.6)) return
    // The facilitator has simulated it already; the transaction waits for the next close.
    time.after(0, () => {
      ledger.batch.unpayable.add(payer)
      this.#world.count("channel refund failed")
      time.after(random.int(closeMillis, 200_000), () => ledger.batch.unpayable.delete(payer))
    })
  }

  async live(until: () => boolean): Promise<void> {
    const { chance, int } = this.#world.random
    while (!until()) {
      await this.#world.sleep(chance(0.6) ? int(1_000, 60_000) : int(60_000, 400_000))
      if (this.kind === "refunder" && chance(0.25)) await this.#refund()
      else if (this.kind === "refunder" && chance(0.3)) await this.#submitLeaked()
      else if (this.kind === "withdrawer" && chance(0.4)) await this.#withdraw()
      else if (this.kind === "inflater" && chance(0.3)) await this.#inflate()
      else await this.call()
    }
  }

  /** Whether a restored record shows this total as signed, but not as charged: it was copied while a call was open. */
  get isAmbiguous(): boolean {
    const { chargedCumulativeAmount = "0", signedMaxClaimable = "0" } = this.#seller.records.records.get(this.id) ?? {}
    return this.#total > BigInt(chargedCumulativeAmount) && this.#total <= BigInt(signedMaxClaimable)
  }

  /** After the storm an honest buyer is served, once a pending refund or reservation has ended. */
  async calm(): Promise<void> {
    for (let tries = 0; tries < 40 && !this.isServed; tries++) {
      this.isServed = await this.call()
      await this.#world.sleep(20_000)
    }
  }
}
