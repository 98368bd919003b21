// Decides the effect of an origin's statement on a resource. Pure: the same statement on the same state decides the
// same, on any replica and after a crash. Without a statement nothing changes. A statement that names the owner proves
// it; a statement that names a claimant displaces the owner; a statement that names an unknown recipient quarantines
// the listing until that recipient is paid (rules 4, S317).
import type { ResourceState } from "../contract.ts"
import type { OriginStatement } from "./OriginWire.ts"

export interface OwnershipState {
  readonly state: ResourceState
  readonly reason: string | null
  readonly ownership: "provisional" | "proven"
  readonly payTos: ReadonlyArray<string>
  /** Recipients that declared it without owning it, newest first. */
  readonly claimants: ReadonlyArray<string>
}

export type Verdict =
  | { readonly _tag: "Nothing" }
  | { readonly _tag: "Removed" }
  /** The owner stays; `payTos` is every recipient that the origin names. */
  | { readonly _tag: "Proven"; readonly payTos: ReadonlyArray<string> }
  /** The claimant's declaration takes the place of the owner's. */
  | { readonly _tag: "Displaced"; readonly by: string; readonly payTos: ReadonlyArray<string> }
  | { readonly _tag: "Contradicted"; readonly payTos: ReadonlyArray<string> }

const sameSet = (a: ReadonlyArray<string>, b: ReadonlyArray<string>): boolean =>
  a.length === b.length && a.every((one) => b.includes(one))

export const decideOwnership = (current: OwnershipState, word: OriginStatement): Verdict => {
  if (current.state === "removed") return { _tag: "Nothing" }
  if (word.delisted) return { _tag: "Removed" }
  const { payTos } = word
  if (payTos.length === 0) return { _tag: "Nothing" }
  if (current.payTos.some((one) => payTos.includes(one))) {
    const settled = current.ownership === "proven" && sameSet(current.payTos, payTos)
    return settled ? { _tag: "Nothing" } : { _tag: "Proven", payTos }
  }
  const by = current.claimants.find((one) => payTos.includes(one))
  return by === undefined ? { _tag: "Contradicted", payTos } : { _tag: "Displaced", by, payTos }
}
