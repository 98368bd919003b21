// The queue for the next ledger, with the network's rules: one transaction per sequence account; a fee bump may replace
// it for ten times its inclusion fee; a transaction that has waited for four ledgers is dropped and its envelope
// refused for ten. An account that only pays fees for another counts as busy for the other kind of transaction (classic
// or contract), as on the network. Nothing here reads the time.
import { latin1, type PublicKey } from "../engine/xdr/Xdr.ts"
import type { Frame } from "../transaction/Frame.ts"

/** Ledgers a transaction may wait before it is dropped. */
export const PENDING_LEDGERS_MAX = 4
/** Ledgers for which a dropped envelope is refused. */
const BAN_LEDGERS = 10
/** How much more a replacement must bid. */
const REPLACEMENT_FACTOR = 10n
/** Maximum waiting transactions; others are asked to retry. */
const QUEUE_MAX = 5_000

interface QueueEntry {
  readonly frame: Frame
  readonly arrival: number
  age: number
}

/** The queue's decision before the transaction itself is validated. */
type Admission =
  | { readonly is: "duplicate" | "tryAgainLater" | "badSequence" }
  | { readonly is: "feeTooLow"; readonly leastFeeStroops: bigint }
  /**
   * May be validated; `payerBusyStroops` is the fee source's total in the queue, without the transaction that this one
   * replaces.
   */
  | { readonly is: "open"; readonly payerBusyStroops: bigint }

const name = (id: PublicKey): string => latin1(id.ed25519)

/** An account's part in queued transactions, as source or as payer. */
interface Role {
  promisedStroops: bigint
  classic: number
  soroban: number
}

export class Queue {
  readonly #waiting = new Map<string, QueueEntry>()
  readonly #roles = new Map<string, Role>()
  #bans: Array<Set<string>> = [new Set()]
  #arrivals = 0

  get size(): number {
    return this.#waiting.size
  }

  admit(frame: Frame): Admission {
    if (this.isBanned(frame)) return { is: "tryAgainLater" }
    const current = this.#waiting.get(name(frame.source))?.frame
    if (this.#isBusyElsewhere(frame)) return { is: "tryAgainLater" }
    if (current === undefined) {
      return this.#waiting.size >= QUEUE_MAX
        ? { is: "tryAgainLater" }
        : { is: "open", payerBusyStroops: this.#promised(frame.feeSource) }
    }
    if (isDuplicate(current, frame)) return { is: "duplicate" }
    if (frame.tx.seqNum < current.tx.seqNum) return { is: "badSequence" }
    if (!frame.isFeeBump || frame.tx.seqNum !== current.tx.seqNum) return { is: "tryAgainLater" }
    const leastFeeStroops = leastReplacementFee(current, frame)
    if (frame.fullFeeStroops < leastFeeStroops) return { is: "feeTooLow", leastFeeStroops }
    const freed = name(current.feeSource) === name(frame.feeSource) ? current.fullFeeStroops : 0n
    return { is: "open", payerBusyStroops: this.#promised(frame.feeSource) - freed }
  }

  /** Adds a validated transaction; removes the transaction that it replaces. */
  add(frame: Frame): void {
    const before = this.#waiting.get(name(frame.source))
    this.#remove(name(frame.source))
    this.#waiting.set(name(frame.source), { frame, arrival: this.#arrivals++, age: before?.age ?? 0 })
    this.#count(frame, 1)
  }

  #remove(source: string): void {
    const waiting = this.#waiting.get(source)
    if (waiting === undefined) return
    this.#waiting.delete(source)
    this.#count(waiting.frame, -1)
  }

  #count(frame: Frame, by: 1 | -1): void {
    for (const account of new Set([name(frame.source), name(frame.feeSource)])) {
      const role = this.#roles.get(account) ?? { promisedStroops: 0n, classic: 0, soroban: 0 }
      role[frame.isSoroban ? "soroban" : "classic"] += by
      if (account === name(frame.feeSource)) role.promisedStroops += BigInt(by) * frame.fullFeeStroops
      if (role.classic + role.soroban === 0) this.#roles.delete(account)
      else this.#roles.set(account, role)
    }
  }

  /** Refuses the envelope from now on and drops it when it waits. */
  ban(frame: Frame): void {
    this.#bans[0]!.add(frame.fullHash)
    if (this.#waiting.get(name(frame.source))?.frame.fullHash === frame.fullHash) this.#remove(name(frame.source))
  }

  isBanned(frame: Frame): boolean {
    return this.#bans.some((hashes) => hashes.has(frame.fullHash))
  }

  /** All waiting transactions, the highest bid per operation first, then the earliest. */
  candidates(): ReadonlyArray<Frame> {
    return [...this.#waiting.values()]
      .sort((a, b) => compareBids(b.frame, a.frame) || a.arrival - b.arrival)
      .map(({ frame }) => frame)
  }

  has(frame: Frame): boolean {
    return this.#waiting.get(name(frame.source))?.frame.fullHash === frame.fullHash
  }

  /**
   * After a ledger: removes the applied transactions and all others that became impossible; ages the rest, except
   * transactions deferred for lack of time.
   */
  ledgerClosed(applied: ReadonlyArray<Frame>, deferred: ReadonlyArray<Frame> = []): void {
    const isDeferred = new Set(deferred)
    for (const frame of applied) {
      const waiting = this.#waiting.get(name(frame.source))
      if (waiting !== undefined && waiting.frame.tx.seqNum <= frame.tx.seqNum) this.#remove(name(frame.source))
    }
    this.#bans = [new Set<string>(), ...this.#bans].slice(0, BAN_LEDGERS)
    for (const [source, waiting] of this.#waiting) {
      if (isDeferred.has(waiting.frame)) continue
      waiting.age++
      if (waiting.age < PENDING_LEDGERS_MAX) continue
      this.#bans[0]!.add(waiting.frame.fullHash)
      this.#remove(source)
    }
  }

  #promised(payer: PublicKey): bigint {
    return this.#roles.get(name(payer))?.promisedStroops ?? 0n
  }

  /**
   * The network keeps two queues. It refuses a transaction if its source is in the other queue, as source or as payer.
   */
  #isBusyElsewhere(frame: Frame): boolean {
    const role = this.#roles.get(name(frame.source))
    return role !== undefined && role[frame.isSoroban ? "classic" : "soroban"] > 0
  }
}

const isDuplicate = (old: Frame, frame: Frame): boolean =>
  old.isFeeBump === frame.isFeeBump
    ? old.fullHash === frame.fullHash
    : old.isFeeBump && old.innerFullHash === frame.fullHash

/** The minimum full fee for `frame` to replace `old`. */
const leastReplacementFee = (old: Frame, frame: Frame): bigint => {
  const bid = old.inclusionFeeStroops * BigInt(frame.feeOperations) * REPLACEMENT_FACTOR
  const per = BigInt(old.feeOperations)
  return (bid + per - 1n) / per + frame.resourceFeeStroops
}

const compareBids = (a: Frame, b: Frame): number => {
  const difference = a.inclusionFeeStroops * BigInt(b.feeOperations) - b.inclusionFeeStroops * BigInt(a.feeOperations)
  return difference < 0n ? -1 : difference > 0n ? 1 : 0
}
