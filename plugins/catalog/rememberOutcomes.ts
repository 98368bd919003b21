// What came of declarations that were seen a moment ago, by a digest of each, for as long as nothing newer of the same
// resource is known: the same declaration again costs no statement.
import type { ExtensionOutcome } from "../../kernel/payment/Extension.ts"
import type { Recorded } from "./store/Recorded.ts"

/** How long a digest stands for its outcome: what another replica or an operator changes is noticed after this. */
const rememberMillis = 30_000
const rememberedMax = 20_000

export interface KnownOutcome {
  readonly outcome: ExtensionOutcome
  readonly recorded: Recorded
  readonly until: number
}

export const outcomeOf = ({ decision, reason }: Recorded): ExtensionOutcome => {
  if (decision === "rejected") return { status: "rejected", rejectedReason: reason ?? "catalog_unavailable" }
  return { status: decision === "held" ? "processing" : "success" }
}

const limited = <V>(map: Map<string, V>, key: string, value: V): void => {
  map.delete(key)
  map.set(key, value)
  if (map.size > rememberedMax) map.delete(map.keys().next().value!)
}

export class Remembered {
  readonly #byDigest = new Map<string, KnownOutcome>()
  /** The version hash of a resource that was recorded last. */
  readonly #latest = new Map<string, string>()

  /** True when discovery shows something else now. */
  keep(digest: string, recorded: Recorded, now: number): boolean {
    const { decision, reason, resourceId, versionHash } = recorded
    if (resourceId !== undefined && versionHash !== undefined) limited(this.#latest, String(resourceId), versionHash)
    const isOpen = decision === "held" && (reason === undefined || resourceId === undefined)
    if (!isOpen && reason !== "catalog_unavailable")
      limited(this.#byDigest, digest, { outcome: outcomeOf(recorded), recorded, until: now + rememberMillis })
    return decision === "listed" || decision === "updated"
  }

  /** What is still true of a digest. */
  recall(digest: string, now: number): KnownOutcome | undefined {
    const known = this.#byDigest.get(digest)
    if (known === undefined || known.until < now) return undefined
    const { resourceId, versionHash } = known.recorded
    return versionHash === undefined || this.#latest.get(String(resourceId)) === versionHash ? known : undefined
  }

  forget(): void {
    this.#byDigest.clear()
  }
}
