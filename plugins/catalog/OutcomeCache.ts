// A cache of the outcomes of recent declarations, by digest, valid while nothing newer of the same resource is known:
// the same declaration again costs no statement. An `unchanged` outcome stays valid while its resource's state is read
// to be the same, which is read with each stored sighting anyway; any other is validated anew after half a minute.
import type { ExtensionOutcome } from "../../kernel/payment/Extension.ts"
import { setBounded } from "../../kernel/cache/setBounded.ts"
import type { Recorded } from "./store/Recorded.ts"

/** Life of an entry: a change by another replica or an operator is noticed after this. */
const cacheMillis = 30_000
/** Upper bound of an entry's life, whatever its state: then the declaration is validated and observed again. */
const validatedMillis = 600_000
const cachedMax = 20_000
/** Characters of all keys together: some are whole texts. */
const charactersMax = 16_000_000

export interface CachedOutcome {
  readonly outcome: ExtensionOutcome
  readonly recorded: Recorded
  readonly validatedAt: number
}

/** State of a resource when it was last read. */
interface ResourceStateHash {
  readonly stateHash: string
  readonly readAt: number
}

export const outcomeOf = ({ decision, dropped, reason }: Recorded): ExtensionOutcome => {
  if (decision === "rejected") return { status: "rejected", rejectedReason: reason ?? "catalog_unavailable" }
  return { status: decision === "held" ? "processing" : "success", ...(dropped === undefined ? {} : { dropped }) }
}

export class OutcomeCache {
  readonly #byDigest = new Map<string, CachedOutcome>()
  #characters = 0
  /** The version hash that was recorded last, by resource. */
  readonly #latest = new Map<string, string>()
  readonly #stateHashes = new Map<string, ResourceStateHash>()

  /** True when discovery has changed. */
  keep(digest: string, recorded: Recorded, now: number): boolean {
    const { decision, reason, resourceId, versionHash } = recorded
    if (resourceId !== undefined && versionHash !== undefined)
      setBounded(this.#latest, cachedMax, String(resourceId), versionHash)
    const isOpen = decision === "held" && (reason === undefined || resourceId === undefined)
    if (!isOpen && reason !== "catalog_unavailable")
      this.#know(digest, { outcome: outcomeOf(recorded), recorded, validatedAt: now })
    return decision === "listed" || decision === "updated"
  }

  #know(digest: string, outcome: CachedOutcome): void {
    this.#drop(digest)
    this.#byDigest.set(digest, outcome)
    this.#characters += digest.length
    while (this.#byDigest.size > cachedMax || this.#characters > charactersMax)
      this.#drop(this.#byDigest.keys().next().value!)
  }

  #drop(digest: string): void {
    if (this.#byDigest.delete(digest)) this.#characters -= digest.length
  }

  /** The outcome of a digest, if it is still valid. */
  recall(digest: string, now: number): CachedOutcome | undefined {
    const known = this.#byDigest.get(digest)
    // A clock that was set back invalidates the entry.
    if (known === undefined || now < known.validatedAt || now - known.validatedAt > validatedMillis) return undefined
    const { recorded } = known
    const { resourceId, versionHash } = recorded
    if (versionHash !== undefined && this.#latest.get(String(resourceId)) !== versionHash) return undefined
    return this.#isCurrent(known, now) ? known : undefined
  }

  #isCurrent({ validatedAt: checkedAt, recorded: { resourceId, stateHash } }: CachedOutcome, now: number): boolean {
    const read = stateHash === undefined ? undefined : this.#stateHashes.get(String(resourceId))
    if (read === undefined || read.readAt < checkedAt) return now - checkedAt <= cacheMillis
    return read.stateHash === stateHash && now - read.readAt <= cacheMillis
  }

  /** The current states of resources. */
  confirm(stateHashes: ReadonlyMap<bigint, string>, now: number): void {
    for (const [id, stateHash] of stateHashes)
      setBounded(this.#stateHashes, cachedMax, String(id), { stateHash, readAt: now })
  }

  forget(): void {
    this.#byDigest.clear()
    this.#characters = 0
  }
}
