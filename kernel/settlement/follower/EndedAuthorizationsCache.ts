// Authorizations with an ended settlement, if this process ended it, awaited it or read it. Verify reads the stored
// record of such an authorization before it asks the ledger, which saves a simulation. The record decides, not this
// cache: after a failover the record may have changed or be lost. A miss does not mean that the settlement is open.
// Bounded; the oldest are evicted.
import { Option } from "effect"
import type { FindQuery, SettlementRecord } from "../store/Settlements.ts"

/** At most about 2 MB. */
const endedMax = 10_000

const ends: ReadonlySet<SettlementRecord["state"]> = new Set(["settled", "failed", "expired"])

export class EndedAuthorizationsCache {
  readonly #names = new Set<string>()

  note(records: ReadonlyArray<SettlementRecord>): void {
    for (const { authorizationKey, network, scheme, state } of records) {
      if (!ends.has(state)) continue
      this.#names.add(nameOf(network, scheme, authorizationKey))
      const [oldest] = this.#names
      if (this.#names.size > endedMax && oldest !== undefined) this.#names.delete(oldest)
    }
  }

  has({ authorizationKey, network, scheme }: Pick<FindQuery, "authorizationKey" | "network" | "scheme">): boolean {
    return Option.exists(authorizationKey, (key) => this.#names.has(nameOf(network, scheme, key)))
  }
}

const nameOf = (network: string, scheme: string, key: string): string => `${network} ${scheme} ${key}`
