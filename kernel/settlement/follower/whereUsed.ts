// Selects the ledgers to search for the use of an authorization without a stored settlement: the ledger in its nonce's
// entry, while that exists; after its expiry and the entry's removal, every ledger of its life that a node still has.
// Pure; `npm run model` checks it against every possible use.

/** The input, available before any ledger is read. */
export interface UseQuestion {
  /** Last ledger that accepts it; undefined if a node reports it as spent. */
  readonly expiresLedger: number | undefined
  /** For an authorization with a window in seconds: a ledger that closed after the window. It is not used later. */
  readonly endedLedger?: number | undefined
  /** Maximum life of an authorization with its terms, in ledgers. */
  readonly lifeLedgers: number
  /** The newest ledger of the node that read the nonce, and the ledger that wrote the nonce's entry. */
  readonly latestLedger: number
  readonly entryLedger: number | undefined
  readonly oldestLedger: number
  /** It is the network's first: no earlier ledger can have used it. */
  readonly isFirstLedger?: boolean
}

export type WhereUsed =
  /** `isWhole`: finding nothing in these ledgers means that it was never used. */
  | { readonly _tag: "Search"; readonly fromLedger: number; readonly toLedger: number; readonly isWhole: boolean }
  /** The node shows it unspent, and no later ledger can have used it. */
  | { readonly _tag: "Unused" }
  /** Its life is older than any readable ledger. */
  | { readonly _tag: "Forgotten" }
  /** The node has not reached the ledger that another node reported. */
  | { readonly _tag: "Unknown" }

export const whereUsed = ({
  endedLedger = Infinity,
  entryLedger,
  expiresLedger,
  isFirstLedger = false,
  latestLedger,
  lifeLedgers,
  oldestLedger
}: UseQuestion): WhereUsed => {
  if (expiresLedger === undefined) {
    return entryLedger === undefined
      ? { _tag: "Unknown" }
      : { _tag: "Search", fromLedger: entryLedger, toLedger: entryLedger, isWhole: false }
  }
  // An entry that was written after the expiry belongs to another authorization with the same nonce.
  if (entryLedger !== undefined && entryLedger <= expiresLedger)
    return { _tag: "Search", fromLedger: entryLedger, toLedger: entryLedger, isWhole: false }
  // The entry of a use exists at least until the expiry.
  if (latestLedger < expiresLedger) return { _tag: latestLedger >= endedLedger ? "Unused" : "Unknown" }
  if (latestLedger === expiresLedger && entryLedger === undefined) return { _tag: "Unused" }
  if (oldestLedger > expiresLedger) return { _tag: isFirstLedger ? "Unused" : "Forgotten" }
  const firstLedger = Math.max(1, expiresLedger - lifeLedgers)
  const fromLedger = Math.max(firstLedger, oldestLedger)
  return { _tag: "Search", fromLedger, toLedger: expiresLedger, isWhole: isFirstLedger || fromLedger === firstLedger }
}
