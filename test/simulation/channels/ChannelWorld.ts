// One seed's world of a seller with channels: its ledger, two facilitators, and the clocks and platform that the
// seller's promises run on. The platform's ed25519 is the most permissive one that we support: it accepts keys of
// small order, as Node 22 and Deno do.
import nodeCrypto, { type KeyObject } from "node:crypto"
import { syncBuiltinESMExports } from "node:module"
import { channelIdIn } from "../../../examples/batch/vouchers.ts"
import type { ChannelConfig } from "../../../examples/batch/channels.ts"
import type { Coverage, Occurrence } from "../Coverage.ts"
import type { Random } from "../random.ts"
import { VirtualTime } from "../VirtualTime.ts"
import { ChannelFacilitator } from "./ChannelFacilitator.ts"
import { ChannelLedger, contract, network } from "./ChannelLedger.ts"

/** The key and the signature that verify for every message without a check for small order. */
export const smallOrderSignature = `01${"00".repeat(63)}`
const smallOrderKey = `01${"00".repeat(31)}`

const lenientVerify =
  (verify: typeof nodeCrypto.verify): any =>
  (algorithm: null, data: Uint8Array, key: KeyObject, signature: Buffer) => {
    if (signature.toString("hex") !== smallOrderSignature) return verify(algorithm, data, key, signature)
    return key.export({ format: "der", type: "spki" }).toString("hex").endsWith(smallOrderKey)
  }

export class ChannelWorld {
  readonly time = new VirtualTime(Date.UTC(2026, 0, 2))
  readonly random: Random
  readonly coverage: Coverage
  readonly ledger: ChannelLedger
  readonly facilitators: ReadonlyArray<ChannelFacilitator>
  readonly broken: Array<string> = []
  /** The facilitators are down. */
  isDown = false
  isCalm = false
  /** Called when a refund of a channel is about to be submitted. */
  onRefund: (channel: string) => void = () => {}
  readonly idOf = (config: ChannelConfig): string => channelIdIn(network, contract, config)

  constructor(random: Random, coverage: Coverage, configs: ReadonlyArray<ChannelConfig>) {
    this.random = random
    this.coverage = coverage
    this.ledger = new ChannelLedger(this.time, random, configs.map(this.idOf))
    this.facilitators = [new ChannelFacilitator(this, 0), new ChannelFacilitator(this, 2)]
  }

  count(what: Occurrence): void {
    this.coverage.count(what)
  }

  sleep(millis: number): Promise<void> {
    return new Promise((wake) => this.time.after(millis, wake))
  }

  /** One way of a call: it takes time, and may be lost. */
  async travel(): Promise<void> {
    const { chance, int } = this.random
    await this.sleep(!this.isCalm && chance(0.1) ? int(1_000, 8_000) : int(1, 60))
    if (this.isDown || (!this.isCalm && chance(0.04))) throw new Error("no answer")
  }

  /** The settle of a claim over HTTP. */
  async #post({ paymentPayload, paymentRequirements }: any, headers: any): Promise<unknown> {
    const facilitator = this.random.pick(this.facilitators)
    const answer = await facilitator.settle(paymentPayload, paymentRequirements, headers["idempotency-key"])
    return { status: 200, headers: new Headers(), text: async () => JSON.stringify(answer) }
  }

  /** Runs promises on the virtual clock until `life` ends. */
  async run<A>(life: Promise<A>): Promise<A> {
    const { fetch, setTimeout: wait } = globalThis
    const before = { now: Date.now, performance: performance.now, verify: nodeCrypto.verify }
    const { time } = this
    Date.now = () => time.now
    performance.now = () => time.now
    globalThis.setTimeout = ((wake: () => void, millis = 0) => time.after(millis, wake)) as never
    globalThis.fetch = ((_url: string, { body, headers }: any) => this.#post(JSON.parse(body), headers)) as never
    nodeCrypto.verify = lenientVerify(before.verify)
    syncBuiltinESMExports()
    try {
      let isOver = false
      void life.finally(() => (isOver = true)).catch(() => undefined)
      await time.runPromises(() => isOver)
      return await life
    } finally {
      Date.now = before.now
      performance.now = before.performance
      Object.assign(globalThis, { fetch, setTimeout: wait })
      nodeCrypto.verify = before.verify
      syncBuiltinESMExports()
    }
  }
}
