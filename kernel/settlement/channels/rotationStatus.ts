// The relation of this replica's keys to the recorded rotations. Pure. Each rotation leads from old keys to new ones.
// Keys that a rotation leads away from are replaced; the keys at the end of the chain should sign. Replicas with other
// sponsors over the same database have separate chains. A replica is ahead if it signs with keys that follow the end of
// a chain without a rotation: a restart applied them, or a failover lost the row.
import type { AccountNames } from "../../signer/Vault.ts"

export type RotationKind = "sponsor" | "channels"

/** The keys of a replica, named without revealing them. */
export interface SigningKeys {
  readonly sponsor: string
  readonly channels: string
}

export interface Rotation {
  readonly generation: number
  readonly kind: RotationKind
  readonly from: string
  readonly to: string
  readonly state: "prepared" | "taken" | "done"
}

export interface RotationStatus {
  readonly state: "current" | "ahead" | "behind"
  /** The newest generation with keys that sign here; 0 if they come from no rotation. */
  readonly generation: number
  /** The progress of that rotation; undefined without one. */
  readonly progress: Rotation["state"] | undefined
  /** Live replicas that sign with keys that these replaced. */
  readonly replicasBehind: number
  /** Information for an operator, if any. */
  readonly detail: string | undefined
}

export interface RotationStatusInput {
  readonly rotations: ReadonlyArray<Rotation>
  readonly names: AccountNames
  readonly keys: SigningKeys
  /** The last change that this process made. */
  readonly taken: { readonly from: SigningKeys; readonly to: SigningKeys } | undefined
  readonly live: ReadonlyArray<SigningKeys>
}

export const kinds = ["channels", "sponsor"] as const satisfies ReadonlyArray<RotationKind>

/**
 * The keys from the given ones to the end of their chain, both included. Chains have no cycles, and the loop is bounded
 * anyway.
 */
const chainFrom = (rotations: ReadonlyArray<Rotation>, kind: RotationKind, keys: string): ReadonlyArray<string> => {
  const chain = [keys]
  while (chain.length <= rotations.length) {
    const next = rotations.find((rotation) => rotation.kind === kind && rotation.from === chain.at(-1))
    if (next === undefined) break
    chain.push(next.to)
  }
  return chain
}

/** The keys that should sign instead of these; possibly the same. */
export const newestOf = (rotations: ReadonlyArray<Rotation>, kind: RotationKind, keys: string): string =>
  chainFrom(rotations, kind, keys).at(-1)!

const isReplaced = (rotations: ReadonlyArray<Rotation>, keys: SigningKeys): boolean =>
  kinds.some((kind) => newestOf(rotations, kind, keys[kind]) !== keys[kind])

/** Whether a replica that signs with `before` should sign with `next`, which its sources hold. */
export const takesUp = (rotations: ReadonlyArray<Rotation>, before: SigningKeys, next: SigningKeys): boolean => {
  const isLater = (kind: RotationKind) =>
    before[kind] !== next[kind] && chainFrom(rotations, kind, before[kind]).includes(next[kind])
  return isLater("sponsor") || (before.sponsor === next.sponsor && isLater("channels"))
}

/** Channels that derive from a sponsor's seed change with it, and need no separate rotation. */
export const derivedChannels = "derived"
const areDerived = ({ channels }: SigningKeys): boolean => channels.startsWith(derivedChannels)

export const isChange = (
  kind: RotationKind,
  { from, to }: { readonly from: SigningKeys; readonly to: SigningKeys }
): boolean => from[kind] !== to[kind] && !(kind === "channels" && areDerived(from) && areDerived(to))

/** The keys that these follow without a recorded rotation; undefined if a rotation leads to them. */
export const unrecordedFrom = ({ keys, names, rotations, taken }: RotationStatusInput): SigningKeys | undefined => {
  if (isReplaced(rotations, keys)) return undefined
  const isNamed = (kind: RotationKind, one: string) =>
    rotations.some((rotation) => rotation.kind === kind && rotation.to === one)
  const lost = kinds.filter(
    (kind) =>
      taken !== undefined && isChange(kind, taken) && taken.to[kind] === keys[kind] && !isNamed(kind, keys[kind])
  )
  if (lost.length > 0) return { ...keys, ...Object.fromEntries(lost.map((kind) => [kind, taken!.from[kind]])) }
  const former = names.formerSponsors.find(
    (sponsor) => isNamed("sponsor", sponsor) && newestOf(rotations, "sponsor", sponsor) === sponsor
  )
  return former === undefined || isNamed("sponsor", keys.sponsor) ? undefined : { ...keys, sponsor: former }
}

const detailOf = (state: RotationStatus["state"], { keys, rotations }: RotationStatusInput, behind: number) => {
  const newest = newestOf(rotations, "sponsor", keys.sponsor)
  if (state === "behind")
    return newest === keys.sponsor
      ? "signs on channels that a rotation replaced; renew the source of the channels' seeds here"
      : `signs as ${keys.sponsor}, replaced by ${newest}; renew the source of its seeds here (NEW,OLD)`
  return behind === 0 ? undefined : `${behind} live replicas sign with replaced keys`
}

export const rotationStatus = (input: RotationStatusInput): RotationStatus => {
  const { keys, live, rotations } = input
  const state = isReplaced(rotations, keys) ? "behind" : unrecordedFrom(input) === undefined ? "current" : "ahead"
  const isOfOurs = (one: SigningKeys, kind: RotationKind) =>
    newestOf(rotations, kind, one[kind]) === newestOf(rotations, kind, keys[kind])
  const replicasBehind = live.filter(
    (one) => isReplaced(rotations, one) && kinds.some((kind) => isOfOurs(one, kind))
  ).length
  const own = rotations
    .filter(({ kind, to }) => to === keys[kind])
    .reduce<Rotation | undefined>((a, b) => (a === undefined || b.generation > a.generation ? b : a), undefined)
  return {
    state,
    generation: own?.generation ?? 0,
    progress: own?.state,
    replicasBehind,
    detail: detailOf(state, input, replicasBehind)
  }
}
