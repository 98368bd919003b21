// One run of a seller with channels: six buyers, honest and hostile, buy, refund and withdraw, while answers are lost,
// nodes lag, entries are archived, processes crash, records are restored from a backup, and seller and facilitators are
// down for longer than the delay. Real are the seller's records and decisions (`channels.ts`), its server class, its
// claims, every signature, the facilitator's comparison of a voucher with a state, and the watch's comparison with the
// ledger. After each ledger, the claimable amount of each channel must cover the amount of the delivered content.
import { Keypair } from "@stellar/stellar-sdk"
import { StrKey } from "@stellar/stellar-sdk/base"
import { type Channel, type ChannelConfig } from "../../../examples/batch/channels.ts"
import { signerOf } from "../../../examples/batch/vouchers.ts"
import { Coverage } from "../Coverage.ts"
import { makeRandom } from "../random.ts"
import { type BuyerKind, buyerKinds, ChannelBuyer } from "./ChannelBuyer.ts"
import { closeMillis, contract, delaySeconds } from "./ChannelLedger.ts"
import { ChannelSeller } from "./ChannelSeller.ts"
import { ChannelWorld } from "./ChannelWorld.ts"

export interface ChannelReport {
  readonly seed: number
  readonly violations: ReadonlyArray<string>
  readonly coverage: ReadonlyMap<string, number>
}

const stormMillis = 3_600_000
const price = 10n
/** Time in which a living seller answers a withdrawal: a turn of its claims, with some lost answers. */
const answerSeconds = 400

const secrets = Array.from({ length: buyerKinds.length + 1 }, (_, at) =>
  Keypair.fromRawEd25519Seed(Buffer.alloc(32, at + 1)).secret()
)
const signers = secrets.map(signerOf)
const smallOrderKey = StrKey.encodeEd25519PublicKey(Uint8Array.from({ length: 32 }, (_, at) => (at === 0 ? 1 : 0)))
const [receiver, token] = [signers.at(-1)!.address, contract]

const configOf = (kind: BuyerKind, at: number): ChannelConfig => ({
  payer: signers[at]!.address,
  payerAuthorizer: kind === "poisoner" ? smallOrderKey : signers[at]!.address,
  receiver,
  receiverAuthorizer: receiver,
  token,
  withdrawDelay: delaySeconds,
  salt: at.toString(16).padStart(64, "0")
})
const configs = buyerKinds.map(configOf)

class Run {
  readonly world: ChannelWorld
  readonly seller: ChannelSeller
  readonly buyers: ReadonlyArray<ChannelBuyer>
  readonly coverage = new Coverage()
  /** Channels with a withdrawal during an outage, or with a signed refund that a restored record does not show. */
  readonly exempt = new Set<string>()
  #backup: Map<string, Channel> | undefined
  isOver = false

  constructor(seed: number) {
    this.world = new ChannelWorld(makeRandom(seed), this.coverage, configs)
    this.seller = new ChannelSeller(this.world, { receiver, secret: secrets.at(-1)!, token }, price)
    this.buyers = buyerKinds.map(
      (kind, at) => new ChannelBuyer(this.world, this.seller, { kind, config: configs[at]!, signer: signers[at]! })
    )
    this.world.onRefund = (channel) => this.buyers.find(({ id }) => id === channel)!.sabotage()
  }

  #close(): void {
    const { ledger, time } = this.world
    const withdrawing = this.buyers.flatMap(({ id }) => {
      const since = ledger.stateOf(id)?.withdrawRequestedAt ?? 0
      return since === 0 ? [] : [[id, since] as const]
    })
    ledger.close()
    for (const [id] of withdrawing) {
      const isEnded = ledger.stateOf(id)?.withdrawRequestedAt === 0
      const upSeconds = this.seller.isUp ? (time.now - this.seller.upSince) / 1_000 : 0
      if (isEnded && upSeconds < answerSeconds) this.exempt.add(id)
    }
    for (const buyer of this.buyers) this.#check(buyer)
    if (!this.isOver) time.after(closeMillis, () => this.#close())
  }

  /** The amount of delivered content is claimable, by the seller's records and the ledger. */
  #check({ config, id, kind }: ChannelBuyer): void {
    const { ledger } = this.world
    const served = this.seller.served.get(id) ?? 0n
    if (this.seller.stale.has(id) || this.exempt.has(id)) return
    const record = this.seller.records.records.get(id)
    const { balance = 0n, totalClaimed = 0n } = ledger.stateOf(id) ?? {}
    const { chargedCumulativeAmount = "0", signature = "", signedMaxClaimable = "0" } = record ?? {}
    const [charged, max] = [BigInt(chargedCumulativeAmount), BigInt(signedMaxClaimable)]
    const isValid = record !== undefined && ledger.accepts({ channel: id, key: config.payerAuthorizer, max, signature })
    // The seller claims the whole charge. The contract refuses a claim above the voucher or the balance.
    const isClaimable = isValid && charged <= max && charged <= balance
    const claimable = isClaimable && charged > totalClaimed ? charged : totalClaimed
    if (claimable < served)
      this.world.broken.push(`${kind} ${id.slice(0, 6)}: ${served} served, ${claimable} claimable of ${balance}`)
  }

  #planAccidents(): void {
    const { ledger, random, time } = this.world
    const { chance, int, pick } = random
    const at = (run: () => void) => time.after(int(60_000, stormMillis - 600_000), run)
    for (let count = int(0, 3); count > 0; count--)
      at(() => {
        const { id } = pick(this.buyers)
        if (ledger.stateOf(id) === undefined) return
        ledger.archived.add(id)
        this.coverage.count("channel archived")
      })
    for (let count = int(0, 2); count > 0; count--) at(() => this.#restart(int(1_000, 20_000), chance(0.6)))
    if (chance(0.3)) at(() => this.#restart((delaySeconds + int(60, 600)) * 1_000, false, chance(0.5)))
    if (chance(0.7)) at(() => (this.#backup = new Map(this.seller.records.records)))
  }

  #restart(downMillis: number, isRestored: boolean, isDown = false): void {
    if (!this.seller.isUp) return
    this.seller.crash()
    this.world.isDown = isDown
    const isLong = downMillis > delaySeconds * 1_000
    this.coverage.count(isLong ? "channel outage" : "channel seller restarted")
    for (const buyer of isLong ? this.buyers : []) void buyer.useOutage()
    this.world.time.after(downMillis, () => {
      this.world.isDown = false
      const backup = isRestored ? this.#backup : undefined
      if (backup !== undefined) this.#restored()
      this.seller.restart(backup)
    })
  }

  /** A backup from before the signature of a refund does not show it. */
  #restored(): void {
    this.coverage.count("channel records restored")
    const { leaked, seconds } = this.world.ledger
    for (const { act } of leaked) if (act?.kind === "refund" && act.expires >= seconds) this.exempt.add(act.channel)
  }

  /** Every delivered amount was claimed, or its loss was reported. */
  #checkEnd(): void {
    for (const { id, isAmbiguous, isServed, kind } of this.buyers) {
      if (kind === "honest" && !isServed && !isAmbiguous)
        this.world.broken.push("an honest buyer is not served any more")
      if (this.seller.stale.has(id)) continue
      const served = this.seller.served.get(id) ?? 0n
      const { totalClaimed = 0n } = this.world.ledger.stateOf(id) ?? {}
      const lost = this.seller.lost.get(id) ?? 0n
      if (totalClaimed + lost < served)
        this.world.broken.push(`${kind}: ${served} served, ${totalClaimed} claimed, ${lost} reported as lost`)
    }
  }

  async live(): Promise<void> {
    const { time } = this.world
    const end = time.now + stormMillis
    this.#planAccidents()
    time.after(closeMillis, () => this.#close())
    await Promise.all(this.buyers.map((buyer) => buyer.live(() => time.now >= end)))
    while (!this.seller.isUp) await this.world.sleep(60_000)
    this.world.isCalm = true
    await Promise.all(this.buyers.map((buyer) => (buyer.kind === "honest" ? buyer.calm() : undefined)))
    // Long enough for the claims of every channel.
    await this.world.sleep(1_500_000)
    this.isOver = true
    this.#checkEnd()
  }
}

export const simulateChannels = async (seed: number): Promise<ChannelReport> => {
  const run = new Run(seed)
  await run.world.run(run.live())
  return { seed, violations: [...new Set(run.world.broken)], coverage: run.coverage.counts }
}
