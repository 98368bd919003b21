// The batch contract on the simulated ledger: channels with deposits, claims, refunds and withdrawals, and receivers
// that are paid the claimed amounts. The contract's own document defines the allowed calls. A claim that does not raise
// the claimed amount is simulated as a failing call, since its record must end as failed.

/** One call of the contract. A deposit and a withdrawal carry a nonce of their payer; the others carry none. */
export type BatchAct =
  | { readonly kind: "deposit"; readonly channel: string; readonly amount: bigint }
  | { readonly kind: "claim"; readonly channel: string; readonly total: bigint }
  | { readonly kind: "sweep"; readonly receiver: string }
  | {
      readonly kind: "refund"
      readonly channel: string
      readonly amount: bigint
      readonly refundNonce: number
      /** The last ledger or close time at which its signature is valid. */
      readonly expires: number
    }
  | { readonly kind: "withdrawStart"; readonly channel: string }
  | { readonly kind: "withdrawEnd"; readonly channel: string }

export interface BatchChannel {
  readonly payer: string
  readonly receiver: string
  deposited: bigint
  claimed: bigint
  refunded: bigint
  withdrawn: bigint
  refundNonce: number
  withdrawStartedIn: number | undefined
}

/** Ledgers between a withdrawal's start and its end. */
const delayLedgers = 4
/** Account of the contract in movements. */
export const batchAccount = "batch-contract"

const channelsOfWorld = ["batch-a", "batch-b", "batch-c"]

/** True if a call needs no authorization on the ledger. */
export const isNonceless = (act: BatchAct | undefined): boolean =>
  act !== undefined && ["claim", "sweep", "refund"].includes(act.kind)

/** The amount that was neither claimed nor returned. */
export const heldOf = ({ claimed, deposited, refunded, withdrawn }: BatchChannel): bigint =>
  deposited - claimed - refunded - withdrawn

const openedBy = (payer: string, receiver: string): BatchChannel => ({
  payer,
  receiver,
  deposited: 0n,
  claimed: 0n,
  refunded: 0n,
  withdrawn: 0n,
  refundNonce: 0,
  withdrawStartedIn: undefined
})

export class SimulatedBatch {
  readonly channels: ReadonlyMap<string, BatchChannel>
  /** Payers without a trustline: no payment reaches them. */
  readonly unpayable = new Set<string>()
  readonly #delay: number

  /** Time is counted in ledgers; with other names and another delay, in the unit of that delay. */
  constructor(names: ReadonlyArray<string> = channelsOfWorld, delay = delayLedgers) {
    this.#delay = delay
    this.channels = new Map(names.map((name, index) => [name, openedBy(`payer-${name}`, `seller-${index % 2}`)]))
  }

  /** Amounts paid to receivers. */
  readonly settled = new Map<string, bigint>()

  /** The amount claimed for a receiver and not paid yet. */
  unsettled(receiver: string): bigint {
    const claimed = [...this.channels.values()].reduce(
      (sum, one) => sum + (one.receiver === receiver ? one.claimed : 0n),
      0n
    )
    return claimed - (this.settled.get(receiver) ?? 0n)
  }

  allows(act: BatchAct, ledger: number): boolean {
    return this.#effect(act, ledger) !== undefined
  }

  /** Executes the call and returns the amount that moves. Undefined if the contract refuses. */
  apply(act: BatchAct, ledger: number): bigint | undefined {
    return this.#effect(act, ledger)?.()
  }

  #effect(act: BatchAct, ledger: number): (() => bigint) | undefined {
    if (act.kind === "sweep") {
      const due = this.unsettled(act.receiver)
      if (due <= 0n) return undefined
      return () => {
        this.settled.set(act.receiver, (this.settled.get(act.receiver) ?? 0n) + due)
        return due
      }
    }
    const channel = this.channels.get(act.channel)!
    const held = heldOf(channel)
    switch (act.kind) {
      case "deposit":
        return () => {
          channel.deposited += act.amount
          return act.amount
        }
      case "claim":
        if (act.total <= channel.claimed || act.total > channel.claimed + held) return undefined
        return () => {
          channel.claimed = act.total
          return 0n
        }
      case "refund": {
        const amount = act.amount < held ? act.amount : held
        if (act.refundNonce !== channel.refundNonce || amount <= 0n || ledger > act.expires) return undefined
        if (this.unpayable.has(channel.payer)) return undefined
        return () => {
          channel.refunded += amount
          channel.refundNonce += 1
          if (amount === held) channel.withdrawStartedIn = undefined
          return amount
        }
      }
      case "withdrawStart":
        if (channel.withdrawStartedIn !== undefined || held <= 0n) return undefined
        return () => {
          channel.withdrawStartedIn = ledger
          return 0n
        }
      case "withdrawEnd":
        if (channel.withdrawStartedIn === undefined || ledger < channel.withdrawStartedIn + this.#delay)
          return undefined
        if (held > 0n && this.unpayable.has(channel.payer)) return undefined
        return () => {
          channel.withdrawn += held
          channel.withdrawStartedIn = undefined
          channel.refundNonce += 1
          return held
        }
    }
  }
}
