// A ledger small enough to be run twenty thousand times: accounts with sequence numbers, nonces that are spent once
// while their entry lives, a queue that drops, delays and loses transactions, closes at uneven intervals, and limited
// room when many bid. It keeps exactly the network's own promises. Strangers use channels and authorizations too. It
// keeps its history, so that a lagging node can be simulated.
import type { Random } from "./random.ts"
import { type BatchAct, isNonceless, SimulatedBatch } from "./SimulatedBatch.ts"

/** A payer's authorization: it moves money once, for the first submitter. */
export interface Authorization {
  readonly number: number
  readonly key: string
  readonly scheme: string
  readonly payer: string
  readonly payTo: string
  /** The payer's nonce; another authorization may have the same one. */
  readonly nonce: bigint
  readonly amountMax: bigint
  /** The amount that settling moves: below the maximum for the scheme with a maximum. */
  readonly amount: bigint
  readonly expiresLedger: number
  /** No node accepts an envelope that carries it. */
  readonly isUnacceptable: boolean
  /** Its effect on the batch contract; absent for a transfer. */
  readonly act?: BatchAct
}

/** The ledger's view of an envelope; registered when it is signed. */
export interface Submission {
  readonly innerHash: string
  readonly outerHash: string
  readonly kind: "payment" | "cancel"
  readonly channel: string
  readonly sequence: bigint
  readonly ledgerMax: number
  /** Unix seconds. */
  readonly timeMax: bigint
  readonly feeStroops: bigint
  readonly inclusionStroops: bigint
  /** Base64 XDR. */
  readonly envelope: string
  /** The payment's authorization; a cancel has none. */
  readonly authorization: Authorization | undefined
}

export interface Included extends Submission {
  readonly ledger: number
  readonly closedAtSeconds: number
  readonly succeeded: boolean
  /** The amount moved; undefined for a failed transaction or one that moves nothing. */
  readonly moved: bigint | undefined
  readonly feeChargedStroops: bigint
}

/** A stranger's transaction that used an authorization. */
export interface Foreign {
  readonly hash: string
  readonly authorization: Authorization
  readonly moved: bigint
  readonly ledger: number
  readonly closedAtSeconds: number
}

/** A stranger's transaction on one of our channels. */
export interface Usurpation {
  readonly hash: string
  readonly channel: string
  readonly sequence: bigint
  readonly ledger: number
}

export interface LedgerFaults {
  /** A queued transaction is lost. */
  readonly drop: number
  /** A queued transaction is skipped in a close. */
  readonly passOver: number
  /** An included payment fails. */
  readonly fail: number
}

/** Surge pricing: a bid below the floor is refused, and a ledger has room for `capacity` transactions. */
export interface Surge {
  readonly floorStroops: bigint
  readonly capacity: number
}

/** The temporary entry of a spent nonce; its key does not contain an expiry. */
interface NonceEntry {
  readonly ledger: number
  readonly liveUntil: number
  readonly by: string
}

/** A channel's account, valid from a ledger on. */
interface AccountState {
  readonly ledger: number
  readonly sequence: bigint
}

export type Submitted =
  | { readonly _tag: "Taken" | "Duplicate" }
  | { readonly _tag: "Refused"; readonly code: string; readonly requiredStroops?: bigint }

/** Number of ledgers that a transaction stays in a node's queue. */
const queueLedgers = 4
const firstLedger = 1_000

const nonceKey = ({ nonce, payer }: { readonly nonce: bigint; readonly payer: string }): string => `${payer}:${nonce}`

export class SimulatedLedger {
  sequence = firstLedger
  closedAtMillis: number
  readonly channels = new Map<string, bigint>()
  /** The transaction that moved money, by its number: its inner hash, or a stranger's. */
  readonly movedBy = new Map<number, string>()
  readonly included = new Map<string, Included>()
  readonly batch = new SimulatedBatch()
  /** Every successful call of the batch contract, in order. */
  readonly batchLog: Array<{ readonly act: BatchAct; readonly moved: bigint; readonly ledger: number }> = []
  readonly log: Array<Included> = []
  readonly foreign: Array<Foreign> = []
  readonly usurpations: Array<Usurpation> = []
  faults: LedgerFaults = { drop: 0, passOver: 0, fail: 0 }
  surge: Surge | undefined
  /** Minimum number of ledgers that a nonce's entry lives: on the network it may outlive its authorization. */
  nonceLedgersMin = 0
  /** A network that has halted closes nothing. */
  isHalted = false
  readonly #history = new Map<string, Array<AccountState>>()
  readonly #nonces = new Map<string, Array<NonceEntry>>()
  readonly #closeTimes: Array<number> = []
  readonly #queue = new Map<string, { submission: Submission; since: number }>()
  readonly #strangers: Array<Authorization> = []
  readonly #usurped: Array<string> = []
  readonly #random: Random

  constructor(random: Random, nowMillis: number) {
    this.#random = random
    this.closedAtMillis = nowMillis
    this.#closeTimes.push(Math.floor(nowMillis / 1_000))
  }

  addChannel(address: string, sequence: bigint): void {
    this.channels.set(address, sequence)
    this.#history.set(address, [{ ledger: 0, sequence }])
  }

  /** The answer of a node's queue. */
  submit(submission: Submission): Submitted {
    if (this.included.has(submission.outerHash) || this.included.has(submission.innerHash)) return { _tag: "Duplicate" }
    if (submission.authorization?.isUnacceptable === true) return { _tag: "Refused", code: "txMalformed" }
    if (submission.ledgerMax <= this.sequence || submission.timeMax * 1_000n <= BigInt(this.closedAtMillis))
      return { _tag: "Refused", code: "txTooLate" }
    if (submission.sequence !== this.channels.get(submission.channel)! + 1n)
      return { _tag: "Refused", code: "txBadSeq" }
    const floor = this.surge?.floorStroops ?? 0n
    const resourceStroops = submission.feeStroops - submission.inclusionStroops
    if (submission.inclusionStroops < floor)
      return { _tag: "Refused", code: "txInsufficientFee", requiredStroops: floor + resourceStroops }
    const queued = this.#queue.get(submission.channel)?.submission
    if (queued?.outerHash === submission.outerHash) return { _tag: "Duplicate" }
    if (queued !== undefined && queued.inclusionStroops * 10n > submission.inclusionStroops)
      return { _tag: "Refused", code: "txInsufficientFee", requiredStroops: queued.inclusionStroops * 10n }
    if (!this.#random.chance(this.faults.drop))
      this.#queue.set(submission.channel, { submission, since: this.sequence })
    return { _tag: "Taken" }
  }

  /** A stranger uses an authorization in the next ledger, if it is still valid. */
  spendElsewhere(authorization: Authorization): void {
    this.#strangers.push(authorization)
  }

  /** A stranger with its key uses the channel in the next ledger. */
  usurp(channel: string): void {
    this.#usurped.push(channel)
  }

  close(nowMillis: number): void {
    if (this.isHalted) return
    this.sequence += 1
    this.closedAtMillis = nowMillis
    this.#closeTimes.push(Math.floor(nowMillis / 1_000))
    for (const authorization of this.#strangers.splice(0)) this.#spend(authorization)
    for (const channel of this.#usurped.splice(0)) this.#usurpNow(channel)
    let room = this.surge?.capacity ?? Infinity
    const byBid = ([, a]: [string, { submission: Submission }], [, b]: [string, { submission: Submission }]) =>
      Number(b.submission.inclusionStroops - a.submission.inclusionStroops)
    const queue = this.surge === undefined ? [...this.#queue] : [...this.#queue].sort(byBid)
    for (const [channel, { since, submission }] of queue) {
      if (room <= 0 || this.#random.chance(this.faults.passOver)) {
        if (this.sequence - since > queueLedgers) this.#queue.delete(channel)
        continue
      }
      this.#queue.delete(channel)
      const isLate = this.sequence >= submission.ledgerMax || submission.timeMax * 1_000n <= BigInt(nowMillis)
      if (submission.sequence !== this.channels.get(channel)! + 1n || isLate) continue
      room -= 1
      this.#use(channel, submission.sequence)
      this.#include(submission)
    }
  }

  #usurpNow(channel: string): void {
    const sequence = this.channels.get(channel)! + 1n
    this.usurpations.push({ hash: `usurper-${this.usurpations.length}`, channel, sequence, ledger: this.sequence })
    this.#use(channel, sequence)
  }

  #use(channel: string, sequence: bigint): void {
    this.channels.set(channel, sequence)
    this.#history.get(channel)!.push({ ledger: this.sequence, sequence })
  }

  #isSpendable(authorization: Authorization): boolean {
    const { act, expiresLedger } = authorization
    if (act !== undefined && !this.batch.allows(act, this.sequence)) return false
    return (
      isNonceless(act) || (this.sequence <= expiresLedger && this.spentAt(authorization, this.sequence) === undefined)
    )
  }

  /** The amount that moves. */
  #move(authorization: Authorization, by: string): bigint {
    const { act } = authorization
    const moved = act === undefined ? authorization.amount : this.batch.apply(act, this.sequence)!
    this.movedBy.set(authorization.number, by)
    if (act !== undefined) this.batchLog.push({ act, moved, ledger: this.sequence })
    if (isNonceless(act)) return moved
    const entries = this.#nonces.get(nonceKey(authorization)) ?? []
    const liveUntil = Math.max(authorization.expiresLedger, this.sequence + this.nonceLedgersMin)
    entries.push({ ledger: this.sequence, liveUntil, by })
    this.#nonces.set(nonceKey(authorization), entries)
    return moved
  }

  #spend(authorization: Authorization): void {
    if (!this.#isSpendable(authorization)) return
    const hash = `stranger-${this.foreign.length}`
    const moved = this.#move(authorization, hash)
    const closedAtSeconds = this.closeTimeOf(this.sequence)
    this.foreign.push({ hash, authorization, moved, ledger: this.sequence, closedAtSeconds })
  }

  #include(submission: Submission): void {
    const { authorization } = submission
    const isUsable =
      authorization !== undefined && this.#isSpendable(authorization) && !this.#random.chance(this.faults.fail)
    const moved = isUsable ? this.#move(authorization, submission.innerHash) : undefined
    const most = Number(submission.feeStroops)
    const included: Included = {
      ...submission,
      ledger: this.sequence,
      closedAtSeconds: this.closeTimeOf(this.sequence),
      succeeded: authorization === undefined || isUsable,
      moved,
      feeChargedStroops: 100n + BigInt(this.#random.int(0, most - 100))
    }
    this.included.set(submission.innerHash, included)
    this.included.set(submission.outerHash, included)
    this.log.push(included)
  }

  // History

  closeTimeOf(ledger: number): number {
    return this.#closeTimes[Math.max(0, ledger - firstLedger)] ?? this.#closeTimes.at(-1)!
  }

  /** The account as of a ledger. */
  accountAt(channel: string, ledger: number): AccountState | undefined {
    return this.#history.get(channel)?.findLast((state) => state.ledger <= ledger)
  }

  /** The live entry of the nonce as of a ledger. */
  spentAt(nonce: { readonly nonce: bigint; readonly payer: string }, ledger: number): NonceEntry | undefined {
    return this.#nonces.get(nonceKey(nonce))?.findLast((entry) => entry.ledger <= ledger && ledger <= entry.liveUntil)
  }

  /** The first use of the nonce. */
  spentEver(nonce: { readonly nonce: bigint; readonly payer: string }): string | undefined {
    return this.#nonces.get(nonceKey(nonce))?.[0]?.by
  }

  /** True while some later ledger could still include the envelope and move its money. */
  canStillMove({ authorization, channel, ledgerMax, sequence, timeMax }: Submission): boolean {
    return (
      authorization !== undefined &&
      this.sequence + 1 < ledgerMax &&
      BigInt(this.closedAtMillis) < timeMax * 1_000n &&
      this.channels.get(channel)! < sequence &&
      (isNonceless(authorization.act) || this.#hasNonce(authorization))
    )
  }

  #hasNonce(authorization: Authorization): boolean {
    return (
      this.sequence < authorization.expiresLedger &&
      (this.spentAt(authorization, this.sequence)?.liveUntil ?? 0) < authorization.expiresLedger
    )
  }
}
