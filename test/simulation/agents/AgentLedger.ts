// The ledger that agents pay on: authorizations by their nonce, ledgers that close, and nodes that lag, are unreachable
// or include slowly. A nonce entry exists only as long as its authorization lives, as on the network.
import { Effect, Option, Result } from "effect"
import { LedgerRpc, LedgerUnavailable } from "../../../kernel/ledger/LedgerRpc.ts"
import { authOf } from "../../../kernel/stellar/ContractCall.ts"
import { credentialsOf } from "../../../kernel/stellar/AuthEntry.ts"
import { type Envelope, readEnvelope, transactionIn } from "../../../kernel/stellar/Envelope.ts"
import type { Random } from "../random.ts"
import { sorobanDataXdr } from "../simulatedScheme.ts"
import type { VirtualTime } from "../VirtualTime.ts"

/** A payment as a seller receives it. */
export interface Signed {
  readonly identifier: string
  readonly payer: string
  readonly nonce: bigint
  readonly expirationLedger: number
  readonly payTo: string
  readonly asset: string
  readonly amount: bigint
  readonly envelope: Envelope
}

export interface Landed extends Signed {
  readonly hash: string
  readonly ledger: number
}

interface Submitted extends Signed {
  readonly fromLedger: number
}

const closeMillis = 5_000
/** Number of ledgers in one scan. */
const scanMax = 25

/** The authorization in a signed envelope. */
export const authorizationIn = (text: string) => {
  const envelope = Result.getOrThrow(readEnvelope(text))
  const entry = transactionIn(envelope)!.operations.flatMap(authOf)[0]!
  const { nonce, signatureExpirationLedger } = credentialsOf(entry)!
  return { envelope, nonce: BigInt(nonce), expirationLedger: signatureExpirationLedger }
}

/** A call of one process to a node. */
type Call = <A>(
  operation: string,
  read: Effect.Effect<A, LedgerUnavailable>,
  away: () => LedgerUnavailable
) => Effect.Effect<A, LedgerUnavailable>

export class AgentLedger {
  sequence = 1_000
  readonly landed: Array<Landed> = []
  readonly #submitted: Array<Submitted> = []
  readonly #random: Random
  readonly #time: VirtualTime
  readonly #startMillis: number
  #isQuiet = false
  /** Maximum number of ledgers that nodes lag. */
  readonly #lagMax: number
  readonly #isBusy: boolean
  /** Number of ledgers that nodes retain. */
  readonly retention: number

  constructor(random: Random, time: VirtualTime) {
    this.#random = random
    this.#time = time
    this.#startMillis = time.now
    this.#lagMax = random.pick([0, 1, 4])
    this.#isBusy = random.chance(0.3)
    this.retention = random.chance(0.1) ? 70 : 17_280
  }

  heal(): void {
    this.#isQuiet = true
  }

  close(): void {
    this.sequence += 1
    for (const one of this.#submitted.splice(0)) {
      if (one.expirationLedger < this.sequence || this.isSpent(one)) continue
      if (one.fromLedger > this.sequence) this.#submitted.push(one)
      else this.landed.push({ ...one, hash: this.#hash(), ledger: this.sequence })
    }
  }

  get pending(): number {
    return this.#submitted.length
  }

  submit(payment: Signed): void {
    const wait = this.#isBusy && !this.#isQuiet ? this.#random.int(1, 12) : 1
    this.#submitted.push({ ...payment, fromLedger: this.sequence + wait })
  }

  isSpent({ nonce }: { readonly nonce: bigint }): boolean {
    return this.landed.some((one) => one.nonce === nonce)
  }

  /** True if a payment can no longer move money in any later ledger. */
  isDead(payment: { readonly nonce: bigint; readonly expirationLedger: number }): boolean {
    return !this.isSpent(payment) && this.sequence >= payment.expirationLedger
  }

  #hash(): string {
    return Buffer.from(this.#random.bytes(32)).toString("hex")
  }

  /** The ledger's RPC, through the nodes of one process. */
  rpcOf(call: Call): LedgerRpc["Service"] {
    const asked = <A>(operation: string, answer: (latest: number) => A | LedgerUnavailable) => {
      const away = () => new LedgerUnavailable({ operation, message: "away" })
      const read = Effect.suspend((): Effect.Effect<A, LedgerUnavailable> => {
        const lag = this.#isQuiet ? 0 : this.#random.int(0, this.#lagMax)
        const value = answer(this.sequence - lag)
        return value instanceof LedgerUnavailable ? Effect.fail(value) : Effect.succeed(value)
      })
      return call(operation, read, away)
    }
    const oldest = (latest: number) => Math.max(900, latest - this.retention)
    const executed = ({ amount, asset, hash, ledger, payer, payTo }: Landed) => ({
      ledger,
      closedAtSeconds: this.#closedAt(ledger),
      innerHash: hash,
      outerHash: hash,
      feeChargedStroops: 100n,
      succeeded: true,
      transfers: Option.some([{ contract: asset, from: payer, to: payTo, amount }])
    })
    return {
      latestLedger: asked("getLatestLedger", (sequence) => ({
        sequence,
        closedAtSeconds: this.#closedAt(sequence),
        protocolVersion: 23,
        endpoint: 0
      })),
      simulate: () =>
        asked("simulateTransaction", (latestLedger) => ({
          _tag: "Simulated" as const,
          latestLedger,
          resourceFeeStroops: 100n,
          sorobanDataXdr,
          eventsXdr: [],
          authXdr: []
        })),
      transaction: (hash: string) =>
        asked("getTransaction", (latestLedger) => {
          const oldestLedger = oldest(latestLedger)
          const found = this.landed.find((one) => one.hash === hash)
          return found !== undefined && found.ledger <= latestLedger && found.ledger >= oldestLedger
            ? { _tag: "Included" as const, latestLedger, executed: executed(found) }
            : { _tag: "NotFound" as const, latestLedger, oldestLedger }
        }),
      scan: ({ fromLedger, matches, toLedger = Infinity }) =>
        asked("getTransactions", (latest) => {
          const oldestLedger = oldest(latest)
          if (fromLedger < oldestLedger || fromLedger > latest)
            return new LedgerUnavailable({ operation: "getTransactions", message: "outside its range" })
          const scannedTo = Math.min(toLedger, latest, fromLedger + scanMax - 1)
          const found = this.landed
            .filter(({ hash, ledger }) => ledger >= fromLedger && ledger <= scannedTo && matches(hash))
            .map((one) => ({ envelope: one.envelope, executed: executed(one) }))
          return { scannedTo, oldestLedger, found }
        }),
      nonceSpent: (_: string, nonce: bigint) =>
        asked("getLedgerEntries", (latestLedger) => {
          const found = this.landed.find((one) => one.nonce === nonce && one.ledger <= latestLedger)
          // After its lifetime the entry no longer exists.
          const isLive = found !== undefined && latestLedger <= found.expirationLedger
          return {
            latestLedger,
            spent: isLive,
            inLedger: isLive ? Option.some(found.ledger) : Option.none<number>()
          }
        })
    } as Partial<LedgerRpc["Service"]> as LedgerRpc["Service"]
  }

  #closedAt(sequence: number): number {
    return Math.floor((this.#startMillis + (sequence - 1_000) * closeMillis) / 1_000)
  }

  /** Closes ledgers from now on. */
  start(): void {
    const tick = () => {
      this.close()
      this.#time.after(closeMillis, tick)
    }
    this.#time.after(closeMillis, tick)
  }
}
