// What follows from an origin's word about a resource. Pure: the same word on the same state decides the same, on any
// replica and after a crash. Silence decides nothing; a word for the owner proves it; a word for a claimant displaces
// the owner; a word for somebody nobody has heard of quarantines the listing until that recipient is paid (decisions 4,
// S317).
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
  /** The owner is the owner; `payTos` is everybody the origin names. */
  | { readonly _tag: "Proven"; readonly payTos: ReadonlyArray<string> }
  /** The claimant's declaration takes the place of the owner's. */
  | { readonly _tag: "Displaced"; readonly by: string; readonly payTos: ReadonlyArray<string> }
  | { readonly _tag: "Contradicted"; readonly payTos: ReadonlyArray<string> }

const sameSet = (a: ReadonlyArray<string>, b: ReadonlyArray<string>): boolean =>
  a.length === b.length && a.every((one) => b.includes(one))

export const decideOwnership = (standing: OwnershipState, word: OriginStatement): Verdict => {
  if (standing.state === "removed") return { _tag: "Nothing" }
  if (word.delisted) return { _tag: "Removed" }
  const { payTos } = word
  if (payTos.length === 0) return { _tag: "Nothing" }
  if (standing.payTos.some((one) => payTos.includes(one))) {
    const settled = standing.ownership === "proven" && sameSet(standing.payTos, payTos)
    return settled ? { _tag: "Nothing" } : { _tag: "Proven", payTos }
  }
  const by = standing.claimants.find((one) => payTos.includes(one))
  return by === undefined ? { _tag: "Contradicted", payTos } : { _tag: "Displaced", by, payTos }
}
