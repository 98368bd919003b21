// The words of a resource, of one grade: about the resource, about each of its operations, and the options under which
// each is offered. One more declaration of the same grade replaces the operation and the option that it is about; the
// words about the resource are the newest ones. Pure.
import { canonicalJson } from "../../../kernel/payment/wire/canonicalJson.ts"
import type { Crypto } from "../../../kernel/platform/Crypto.ts"
import type { Declaration, Identity } from "../declaration/Declaration.ts"
import type { Grade } from "../declaration/Grade.ts"
import { encodeBody, encodeOption, type StoredBody, type StoredOption, versionHash } from "./ResourceWire.ts"

/** An option with the key that identifies it among the options of its operation. */
export interface NamedOption extends StoredOption {
  readonly scheme: string
  /** Neutral spelling. */
  readonly network: string
  readonly asset: string
  readonly payTo: string
  /** Atomic units. */
  readonly amount: string
}

export interface LiveOption extends NamedOption {
  readonly id: bigint
}

export interface DeclaredText {
  readonly grade: Grade
  /** They were free, by a signature that any account can make, so they are not evidence yet. */
  readonly isFree?: boolean
  readonly identity: Identity
  readonly kept: StoredBody
  readonly options: ReadonlyArray<NamedOption>
}

const bytesOf = (body: unknown): number => new TextEncoder().encode(JSON.stringify(body)).length

/** Options of equal names cannot both be offered: a changed amount retires the previous one. */
export const optionName = ({ asset, network, operation, payTo, scheme }: NamedOption): string =>
  canonicalJson([operation, scheme, network, asset, payTo])

const optionOf = (declaration: Declaration): NamedOption => {
  const { amountText, asset, network, payTo, scheme } = declaration.terms
  return {
    operation: declaration.operation.method,
    option: encodeOption(declaration),
    scheme,
    network,
    asset,
    payTo,
    amount: amountText
  }
}

/** Merges one more declaration into the words before it; `before` of the same grade, or undefined. */
export const mergeDeclaration = (
  before: Pick<DeclaredText, "kept" | "options"> | undefined,
  declaration: Declaration,
  grade: Grade
): DeclaredText => {
  const { about, extensions, identity, operation, sentKey } = declaration
  const others = (before?.kept.operations ?? []).filter(({ method }) => method !== operation.method)
  const kept: StoredBody = {
    about,
    operations: [...others, operation].sort((a, b) => (a.method < b.method ? -1 : 1)),
    sentKey,
    extensions: [...new Set([...(before?.kept.extensions ?? []), ...extensions])].sort()
  }
  const option = optionOf(declaration)
  const name = optionName(option)
  const options = (before?.options ?? []).filter((one) => optionName(one) !== name)
  return { grade, identity, kept, options: [...options, option] }
}

/** The version hash of the words of a declaration by itself. */
export const claimOf = (crypto: Crypto["Service"], declaration: Declaration): string => {
  const { identity, kept, options } = mergeDeclaration(undefined, declaration, "claimed")
  return versionHash(crypto, encodeBody(identity, kept, options))
}

/** Words with as many of their operations as a body of these bytes has room for; undefined without one. */
const withinBytes = (words: DeclaredText, bytesMax: number): DeclaredText | undefined => {
  const { identity, kept, options } = words
  if (kept.operations.length === 0) return undefined
  const isOversized = bytesOf(encodeBody(identity, kept, options)) > bytesMax
  if (!isOversized) return words
  const operations = kept.operations.slice(0, -1)
  const offered = options.filter(({ operation }) => operations.some(({ method }) => method === operation))
  return withinBytes({ ...words, kept: { ...kept, operations }, options: offered }, bytesMax)
}

/** All declarations of one resource as words, within the bytes of a listing; undefined for none. */
export const declaredText = (
  declarations: ReadonlyArray<Declaration>,
  grade: Grade,
  bytesMax: number
): DeclaredText | undefined => {
  const merge = (before: DeclaredText | undefined, one: Declaration) => mergeDeclaration(before, one, grade)
  const words = declarations.reduce<DeclaredText | undefined>(merge, undefined)
  return words && withinBytes(words, bytesMax)
}
