// Where the use of an authorization is searched of which no settlement is stored: in the ledger that its nonce's entry
// names, while there is one; once it has expired and the entry is gone, in every ledger of its life that a node still
// has. Pure; `npm run model` tries it against every use that there may have been.

/** What is known before any ledger is read. */
export interface UseQuestion {
  /** Last ledger in which it can be used; undefined when a node says that it is spent. */
  readonly expiresLedger: number | undefined
  /** A ledger that closed after the window in seconds of an authorization that has one: it is not used later. */
  readonly endedLedger?: number | undefined
  /** The most ledgers that an authorization of its terms lives. */
  readonly lifeLedgers: number
  /** The newest ledger of the node that read the nonce, and the one that the nonce's entry was written in. */
  readonly latestLedger: number
  readonly entryLedger: number | undefined
  /** The oldest ledger whose transactions can be read. */
  readonly oldestLedger: number
  /** It is the network's first: nothing was used before it. */
  readonly isFirstLedger?: boolean
}

export type WhereUsed =
  /** `isWhole`: nothing found in these ledgers means that it was never used. */
  | { readonly _tag: "Search"; readonly fromLedger: number; readonly toLedger: number; readonly isWhole: boolean }
  /** The node shows it unspent, and no later ledger can have used it. */
  | { readonly _tag: "Unused" }
  /** Its life is older than anything that can be read. */
  | { readonly _tag: "Forgotten" }
  /** The node has not reached yet what another one reported. */
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
  // An entry that was written after the expiry is another authorization's, of the same nonce.
  if (entryLedger !== undefined && entryLedger <= expiresLedger)
    return { _tag: "Search", fromLedger: entryLedger, toLedger: entryLedger, isWhole: false }
  // Until its expiry the entry of a use is there.
  if (latestLedger < expiresLedger) return { _tag: latestLedger >= endedLedger ? "Unused" : "Unknown" }
  if (latestLedger === expiresLedger && entryLedger === undefined) return { _tag: "Unused" }
  if (oldestLedger > expiresLedger) return { _tag: isFirstLedger ? "Unused" : "Forgotten" }
  const firstLedger = Math.max(1, expiresLedger - lifeLedgers)
  const fromLedger = Math.max(firstLedger, oldestLedger)
  return { _tag: "Search", fromLedger, toLedger: expiresLedger, isWhole: isFirstLedger || fromLedger === firstLedger }
}
