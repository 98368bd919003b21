// What a resource is after one more declaration of it: the operation replaces its predecessor, the words about the
// resource are the newest ones, a payment option with a new amount replaces the one with the old. Told extensions only
// grow, since a buyer's client may leave one out. Pure.
import type { Declaration } from "../declaration/Declaration.ts"
import { canonicalJson } from "../../../kernel/payment/canonicalJson.ts"
import { encodeOption, type Kept, type KeptOption } from "./ResourceWire.ts"

export interface LiveOption extends KeptOption {
  readonly id: bigint
  readonly scheme: string
  /** Neutral spelling. */
  readonly network: string
  readonly asset: string
  readonly payTo: string
}

export interface Merged {
  readonly kept: Kept
  readonly options: ReadonlyArray<KeptOption>
  /** The live option that the declared one replaces. */
  readonly retired: LiveOption | undefined
  /** The declared option, when it is not live already. */
  readonly added: KeptOption | undefined
}

/** Operations of one resource at most: the methods there are. */
export const mergeDeclaration = (
  before: Kept | undefined,
  live: ReadonlyArray<LiveOption>,
  declaration: Declaration
): Merged => {
  const { about, extensions, operation, sentKey, terms } = declaration
  const others = (before?.operations ?? []).filter(({ method }) => method !== operation.method)
  const kept: Kept = {
    about,
    operations: [...others, operation].sort((a, b) => (a.method < b.method ? -1 : 1)),
    sentKey,
    extensions: [...new Set([...(before?.extensions ?? []), ...extensions])].sort()
  }
  const option = encodeOption(declaration)
  const added: KeptOption = { operation: operation.method, option }
  const same = live.find(
    (one) =>
      one.operation === operation.method &&
      one.scheme === terms.scheme &&
      one.network === terms.network &&
      one.asset === terms.asset &&
      one.payTo === terms.payTo
  )
  if (same !== undefined && canonicalJson(same.option) === canonicalJson(option)) {
    return { kept, options: live, retired: undefined, added: undefined }
  }
  return { kept, options: [...live.filter((one) => one !== same), added], retired: same, added }
}
