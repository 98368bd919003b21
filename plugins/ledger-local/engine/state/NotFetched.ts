// What is thrown when a fork's state is looked at where it has not been fetched yet. Nothing is decided by it: whoever
// began the work fetches the entries and begins anew. So nobody on the way may take it for an absent entry, a failure
// of a contract or a defect.
import type { KeyString } from "./LedgerKeys.ts"

export class NotFetched extends Error {
  readonly keys: ReadonlyArray<KeyString>

  constructor(keys: ReadonlyArray<KeyString>) {
    super("an entry of the forked network has not been fetched yet")
    this.keys = keys
  }
}
