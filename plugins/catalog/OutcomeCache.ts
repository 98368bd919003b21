// A cache of the outcomes of recent declarations, by digest, valid while nothing newer of the same resource is known:
// the same declaration again costs no statement. An `unchanged` outcome stays valid while the state of its resource
// stays the same; each stored sighting reads that state anyway. Any other outcome expires after half a minute, and the
// declaration is validated again.
import type { ExtensionOutcome } from "../../kernel/payment/Extension.ts"
import { BoundedMap } from "../../kernel/cache/BoundedMap.ts"
import { LruCache } from "../../kernel/cache/LruCache.ts"
import type { Recorded } from "./store/Recorded.ts"

/** Life of an entry: a change by another replica or an operator is noticed after this. */
const cacheMillis = 30_000
/** Maximum lifetime of an entry in any state; after it, the declaration is validated and observed again. */
const validatedMillis = 600_000
const cachedMax = 20_000
/** Characters of all keys together: some are whole texts. */
const charactersMax = 16_000_000

interface CachedOutcome {
  readonly outcome: ExtensionOutcome
  readonly recorded: Recorded
  readonly validatedAt: number
}

interface ResourceStateHash {
  readonly stateHash: string
  readonly readAt: number
}

export const outcomeOf = ({ decision, dropped, reason }: Recorded): ExtensionOutcome => {
  if (decision === "rejected") return { status: "rejected", rejectedReason: reason ?? "catalog_unavailable" }
  return { status: decision === "held" ? "processing" : "success", ...(dropped === undefined ? {} : { dropped }) }
}

export class OutcomeCache {
  readonly #byDigest = new LruCache<string, CachedOutcome>({ name: "declaration-outcomes", capacity: cachedMax })
  #characters = 0
  /** The version hash that was recorded last, by resource. */
  readonly #latest = new BoundedMap<string, string>(cachedMax)
  readonly #stateHashes = new BoundedMap<string, ResourceStateHash>(cachedMax)

  /** True when discovery has changed. */
  keep(digest: string, recorded: Recorded, now: number): boolean {
    const { decision, reason, resourceId, versionHash } = recorded
    if (resourceId !== undefined && versionHash !== undefined) this.#latest.set(String(resourceId), versionHash)
    const isOpen = decision === "held" && (reason === undefined || resourceId === undefined)
    if (!isOpen && reason !== "catalog_unavailable")
      this.#know(digest, { outcome: outcomeOf(recorded), recorded, validatedAt: now })
    return decision === "listed" || decision === "updated"
  }

  #know(digest: string, outcome: CachedOutcome): void {
    this.#drop(digest)
    while (this.#byDigest.size >= cachedMax || this.#characters + digest.length > charactersMax) {
      const [oldest] = this.#byDigest.entries().next().value ?? []
      if (oldest === undefined) break
      this.#drop(oldest)
    }
    this.#byDigest.set(digest, outcome)
    this.#characters += digest.length
  }

  #drop(digest: string): void {
    if (this.#byDigest.delete(digest)) this.#characters -= digest.length
  }

  /** The outcome of a digest, if it is still valid. */
  recall(digest: string, now: number): CachedOutcome | undefined {
    return this.#byDigest.get(digest, (known) => this.#isValid(known, now))
  }

  #isValid(known: CachedOutcome, now: number): boolean {
    // A clock that was set back invalidates the entry.
    if (now < known.validatedAt || now - known.validatedAt > validatedMillis) return false
    const { resourceId, versionHash } = known.recorded
    if (versionHash !== undefined && this.#latest.get(String(resourceId)) !== versionHash) return false
    return this.#isCurrent(known, now)
  }

  #isCurrent({ validatedAt: checkedAt, recorded: { resourceId, stateHash } }: CachedOutcome, now: number): boolean {
    const read = stateHash === undefined ? undefined : this.#stateHashes.get(String(resourceId))
    if (read === undefined || read.readAt < checkedAt) return now - checkedAt <= cacheMillis
    return read.stateHash === stateHash && now - read.readAt <= cacheMillis
  }

  /** The current states of resources. */
  confirm(stateHashes: ReadonlyMap<bigint, string>, now: number): void {
    for (const [id, stateHash] of stateHashes) this.#stateHashes.set(String(id), { stateHash, readAt: now })
  }

  forget(): void {
    this.#byDigest.clear()
    this.#characters = 0
  }
}
