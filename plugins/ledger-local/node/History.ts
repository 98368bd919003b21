// The closed ledgers and their transactions, within the retention. A transaction is found by its hash and, when it was
// bumped, also by the hash of the bump. Whole ledgers are dropped, oldest first, so all transactions of the reported
// oldest ledger are still here.
import type { KeyString } from "../engine/state/LedgerKeys.ts"

export interface TransactionRecord {
  /** Hex of the envelope's hash. */
  readonly hash: string
  /** Hex of the transaction's own hash; equal to `hash` without a fee bump. */
  readonly innerHash: string
  readonly envelope: Uint8Array
  readonly result: Uint8Array
  readonly meta: Uint8Array
  readonly feeChanges: Uint8Array
  readonly refundChanges: Uint8Array
  readonly succeeded: boolean
  readonly isFeeBump: boolean
  readonly isSoroban: boolean
  /** From 1, within its ledger. */
  readonly order: number
  readonly ledger: number
  /** Seconds. */
  readonly closeTime: bigint
  readonly inclusionFeeStroops: bigint
}

export interface LedgerRecord {
  readonly sequence: number
  readonly closeTime: bigint
  readonly hash: Uint8Array
  readonly previousHash: Uint8Array
  /** SHA-256 of the set of transactions as XDR; see `transactionSet.ts`. */
  readonly transactionSetHash: Uint8Array
  /** SHA-256 of their results as XDR. */
  readonly resultHash: Uint8Array
  readonly feePoolStroops: bigint
  readonly lastOfferId: bigint
  readonly transactions: ReadonlyArray<TransactionRecord>
  /** Keys of the expired temporary entries, and of their TTL entries, that left the state with this ledger. */
  readonly evicted: ReadonlyArray<KeyString>
}

export interface Retention {
  readonly ledgersMax: number
  readonly transactionsMax: number
}

export class History {
  readonly #ledgers = new Map<number, LedgerRecord>()
  readonly #byHash = new Map<string, TransactionRecord>()
  #retention: Retention
  #transactions = 0
  #oldest = 0
  #latest = 0

  constructor(retention: Retention) {
    this.#retention = retention
  }

  get oldest(): LedgerRecord {
    return this.#ledgers.get(this.#oldest)!
  }

  get latest(): LedgerRecord {
    return this.#ledgers.get(this.#latest)!
  }

  get transactionCount(): number {
    return this.#transactions
  }

  add(ledger: LedgerRecord): void {
    if (this.#ledgers.size === 0) this.#oldest = ledger.sequence
    this.#ledgers.set(ledger.sequence, ledger)
    this.#latest = ledger.sequence
    this.#transactions += ledger.transactions.length
    for (const transaction of ledger.transactions) {
      this.#byHash.set(transaction.hash, transaction)
      this.#byHash.set(transaction.innerHash, transaction)
    }
    this.#forget()
  }

  /** Changes how much is kept; a lower limit takes effect immediately. */
  retain(retention: Retention): void {
    this.#retention = retention
    this.#forget()
  }

  ledger(sequence: number): LedgerRecord | undefined {
    return this.#ledgers.get(sequence)
  }

  /** Ledgers from `from` on, oldest first. */
  *from(from: number): Generator<LedgerRecord> {
    for (let sequence = Math.max(from, this.#oldest); sequence <= this.#latest; sequence++)
      yield this.#ledgers.get(sequence)!
  }

  /** By the hex of either hash. */
  transaction(hash: string): TransactionRecord | undefined {
    return this.#byHash.get(hash)
  }

  #forget(): void {
    const { ledgersMax, transactionsMax } = this.#retention
    while (this.#ledgers.size > 1 && (this.#ledgers.size > ledgersMax || this.#transactions > transactionsMax)) {
      const gone = this.#ledgers.get(this.#oldest)!
      this.#ledgers.delete(this.#oldest)
      this.#oldest++
      this.#transactions -= gone.transactions.length
      for (const { hash, innerHash } of gone.transactions) {
        this.#byHash.delete(hash)
        this.#byHash.delete(innerHash)
      }
    }
  }
}
