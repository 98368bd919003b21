// The batch contract on a simulated ledger, with close times, for the simulation of sellers: transactions wait for the
// next close, every submitted refund is public from then on, and nodes show a state as of one of the last ledgers. An
// archived entry is missing from a node's reads until a transaction restores it.
import { verifyEd25519 } from "../../../kernel/ledger/Ed25519.ts"
import { Crypto } from "../../../kernel/platform/Crypto.ts"
import { authorizerKeyOf, bytesOfHex, type ChannelState, voucherDigest } from "../../../plugins/x402-batch/contract.ts"
import { placeOf } from "../../../examples/batch/vouchers.ts"
import * as NodeCrypto from "../../../runtime/platform/nodeCrypto.ts"
import { Effect } from "effect"
import type { Random } from "../random.ts"
import { type BatchAct, heldOf, SimulatedBatch } from "../SimulatedBatch.ts"
import type { VirtualTime } from "../VirtualTime.ts"

export const network = "stellar:testnet"
export const contract = "CAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAD2KM"
export const place = placeOf(network, contract)
export const delaySeconds = 900
export const closeMillis = 5_000

const crypto = Effect.runSync(Effect.provide(Crypto, NodeCrypto.layer))

/** A claim's entry; the authorizer has signed its total. */
export interface Claim {
  readonly channel: string
  readonly key: string
  readonly max: bigint
  readonly signature: string
  readonly total: bigint
}

/** A transaction: the claims first, then the call. Succeeds or fails as a whole. */
export interface Transaction {
  readonly claims: ReadonlyArray<Claim>
  readonly act?: BatchAct
}

interface Closed {
  readonly seconds: number
  readonly states: ReadonlyMap<string, ChannelState>
}

export class ChannelLedger {
  readonly batch: SimulatedBatch
  readonly archived = new Set<string>()
  /** Submitted refunds. Anyone may submit them again. */
  readonly leaked: Array<Transaction> = []
  readonly #accepted = new Map<string, boolean>()
  readonly #time: VirtualTime
  readonly #random: Random
  readonly #queue: Array<{ readonly transaction: Transaction; readonly end: (succeeded: boolean) => void }> = []
  #closed: ReadonlyArray<Closed>

  constructor(time: VirtualTime, random: Random, channels: ReadonlyArray<string>) {
    this.#time = time
    this.#random = random
    this.batch = new SimulatedBatch(channels, delaySeconds)
    this.#closed = [this.#snapshot()]
  }

  get seconds(): number {
    return this.#closed.at(-1)!.seconds
  }

  stateOf(channel: string): ChannelState | undefined {
    const one = this.batch.channels.get(channel)!
    if (one.deposited === 0n) return undefined
    const balance = heldOf(one) + one.claimed
    const { claimed: totalClaimed, refundNonce, withdrawStartedIn: since } = one
    return { balance, totalClaimed, withdrawRequestedAt: since ?? 0, refundNonce: BigInt(refundNonce) }
  }

  /** The state as of `lag` ledgers ago, and its close time. */
  shown(channel: string, lag: number): { readonly state: ChannelState | undefined; readonly asOf: number } {
    const { seconds, states } = this.#closed[Math.max(0, this.#closed.length - 1 - lag)]!
    return { state: this.archived.has(channel) ? undefined : states.get(channel), asOf: seconds }
  }

  /** Whether the ledger accepts the voucher of a claim. */
  accepts({ channel, key, max, signature }: Omit<Claim, "total">): boolean {
    const name = `${channel} ${max} ${signature}`
    const known = this.#accepted.get(name)
    if (known !== undefined) return known
    const digest = voucherDigest(place, channel, max)
    const isAccepted = verifyEd25519(crypto, authorizerKeyOf(key), digest, bytesOfHex(signature))
    this.#accepted.set(name, isAccepted)
    return isAccepted
  }

  /** Whether the next ledger would execute it. */
  allows({ act, claims }: Transaction): boolean {
    return claims.every((one) => this.#mayClaim(one)) && (act === undefined || this.batch.allows(act, this.seconds))
  }

  /** Resolves with the transaction's end. */
  submit(transaction: Transaction): Promise<boolean> {
    if (transaction.act?.kind === "refund") this.leaked.push(transaction)
    return new Promise((end) => this.#queue.push({ transaction, end }))
  }

  close(): void {
    const seconds = Math.floor(this.#time.now / 1_000)
    const queue = this.#queue.splice(0)
    while (queue.length > 0) {
      const [{ end, transaction }] = queue.splice(this.#random.int(0, queue.length - 1), 1) as [(typeof queue)[number]]
      end(this.#execute(transaction, seconds))
    }
    this.#closed = [...this.#closed.slice(-5), this.#snapshot(seconds)]
  }

  #snapshot(seconds = Math.floor(this.#time.now / 1_000)): Closed {
    const shown = [...this.batch.channels.keys()].map((channel) => [channel, this.stateOf(channel)] as const)
    return { seconds, states: new Map(shown.flatMap(([id, state]) => (state === undefined ? [] : [[id, state]]))) }
  }

  #mayClaim(claim: Claim): boolean {
    const state = this.stateOf(claim.channel)
    if (state === undefined) return false
    if (claim.total <= state.totalClaimed) return true
    return claim.total <= claim.max && claim.total <= state.balance && this.accepts(claim)
  }

  #execute({ act, claims }: Transaction, seconds: number): boolean {
    if (!claims.every((one) => this.#mayClaim(one))) return false
    // Claims are undone by a failing call, so it is tried on the claimed totals first.
    const before = claims.map(({ channel }) => this.batch.channels.get(channel)!.claimed)
    for (const { channel, total } of claims) this.batch.apply({ kind: "claim", channel, total }, seconds)
    const succeeded = act === undefined || this.batch.apply(act, seconds) !== undefined
    if (!succeeded) claims.forEach(({ channel }, at) => (this.batch.channels.get(channel)!.claimed = before[at]!))
    for (const one of claims) this.archived.delete(one.channel)
    if (act !== undefined && "channel" in act && succeeded) this.archived.delete(act.channel)
    return succeeded
  }
}
