// A cache of authorizations whose settlement has ended, as far as this process ended, awaited or read them. It saves
// verify a statement and a simulation, and makes nothing valid that settle would not settle; a miss does not mean that
// the settlement is open. Bounded; the oldest are evicted.
import { Option } from "effect"
import type { FindQuery, SettlementRecord } from "../store/Settlements.ts"

/** Some 2 MB at most. */
const endedMax = 10_000

const ends: ReadonlySet<SettlementRecord["state"]> = new Set(["settled", "failed", "expired"])

export class EndedAuthorizationsCache {
  readonly #records = new Map<string, SettlementRecord>()

  note(records: ReadonlyArray<SettlementRecord>): void {
    for (const record of records) {
      // A watched failure may be corrected by another process.
      if (!ends.has(record.state) || record.isWatched === true) continue
      this.#records.set(nameOf(record.network, record.scheme, record.authorizationKey), record)
      const [oldest] = this.#records.keys()
      if (this.#records.size > endedMax && oldest !== undefined) this.#records.delete(oldest)
    }
  }

  find({
    authorizationKey,
    network,
    scheme
  }: Pick<FindQuery, "authorizationKey" | "network" | "scheme">): Option.Option<SettlementRecord> {
    return Option.flatMap(authorizationKey, (key) =>
      Option.fromUndefinedOr(this.#records.get(nameOf(network, scheme, key)))
    )
  }
}

const nameOf = (network: string, scheme: string, key: string): string => `${network} ${scheme} ${key}`
