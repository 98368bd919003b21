// A ledger small enough to be run twenty thousand times: accounts with sequence numbers, authorizations that move money
// once, a queue that drops, delays and forgets, closes at uneven intervals. It keeps the network's own promises and no
// others.
import type { Random } from "./random.ts"

/** What the ledger needs to know of an envelope; registered when it is signed. */
export interface Submission {
  readonly innerHash: string
  readonly outerHash: string
  readonly kind: "payment" | "cancel"
  readonly channel: string
  readonly sequence: bigint
  readonly ledgerMax: number
  readonly feeStroops: bigint
  /** The authorization a payment carries; a cancel has none. */
  readonly authorization: string | undefined
  readonly authorizationExpiresLedger: number
}

export interface Included extends Submission {
  readonly ledger: number
  readonly closedAtSeconds: number
  readonly succeeded: boolean
  readonly feeChargedStroops: bigint
}

export interface LedgerFaults {
  /** A queued transaction is lost. */
  readonly drop: number
  /** A queued transaction is passed over in a close. */
  readonly passOver: number
  /** An included payment fails. */
  readonly fail: number
}

/** Ledgers a queued transaction lives in a node's queue. */
const queueLedgers = 4

export class SimulatedLedger {
  sequence = 1_000
  closedAtMillis: number
  readonly channels = new Map<string, bigint>()
  /** Authorizations that moved money, and by which transaction; `elsewhere` for one that is not ours. */
  readonly spent = new Map<string, string>()
  readonly included = new Map<string, Included>()
  readonly log: Array<Included> = []
  faults: LedgerFaults = { drop: 0, passOver: 0, fail: 0 }
  readonly #queue = new Map<string, { submission: Submission; since: number }>()
  readonly #random: Random

  constructor(random: Random, nowMillis: number) {
    this.#random = random
    this.closedAtMillis = nowMillis
  }

  /** What a node's queue says; `Taken` is PENDING. */
  submit(submission: Submission): "Taken" | "Duplicate" | "BadSeq" | "TooLate" {
    if (this.included.has(submission.outerHash) || this.included.has(submission.innerHash)) return "Duplicate"
    if (submission.ledgerMax <= this.sequence) return "TooLate"
    if (submission.sequence !== this.channels.get(submission.channel)! + 1n) return "BadSeq"
    const queued = this.#queue.get(submission.channel)
    if (queued?.submission.outerHash === submission.outerHash) return "Duplicate"
    if (queued !== undefined && queued.submission.feeStroops * 10n > submission.feeStroops) return "BadSeq"
    if (!this.#random.chance(this.faults.drop))
      this.#queue.set(submission.channel, { submission, since: this.sequence })
    return "Taken"
  }

  /** Somebody else uses an authorization. */
  spendElsewhere(authorization: string): void {
    if (!this.spent.has(authorization)) this.spent.set(authorization, "elsewhere")
  }

  close(nowMillis: number): void {
    this.sequence += 1
    this.closedAtMillis = nowMillis
    for (const [channel, { since, submission }] of [...this.#queue]) {
      if (this.#random.chance(this.faults.passOver)) {
        if (this.sequence - since > queueLedgers) this.#queue.delete(channel)
        continue
      }
      this.#queue.delete(channel)
      if (submission.sequence !== this.channels.get(channel)! + 1n || this.sequence >= submission.ledgerMax) continue
      this.channels.set(channel, submission.sequence)
      this.#include(submission)
    }
  }

  #include(submission: Submission): void {
    const { authorization } = submission
    const isUsable =
      authorization !== undefined &&
      !this.spent.has(authorization) &&
      this.sequence <= submission.authorizationExpiresLedger &&
      !this.#random.chance(this.faults.fail)
    if (isUsable) this.spent.set(authorization, submission.innerHash)
    const included: Included = {
      ...submission,
      ledger: this.sequence,
      closedAtSeconds: Math.floor(this.closedAtMillis / 1_000),
      succeeded: authorization === undefined || isUsable,
      feeChargedStroops: 100n + BigInt(this.#random.int(0, Number(submission.feeStroops) - 100))
    }
    this.included.set(submission.innerHash, included)
    this.included.set(submission.outerHash, included)
    this.log.push(included)
  }
}
