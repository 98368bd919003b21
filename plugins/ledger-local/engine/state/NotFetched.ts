// Thrown when a fork reads state that has not been fetched yet. It decides nothing: the caller that began the work
// fetches the entries and starts over. Code in between must not take it for an absent entry, a contract failure or a
// defect.
import type { KeyString } from "./LedgerKeys.ts"

export class NotFetched extends Error {
  readonly keys: ReadonlyArray<KeyString>

  constructor(keys: ReadonlyArray<KeyString>) {
    super("an entry of the forked network has not been fetched yet")
    this.keys = keys
  }
}
