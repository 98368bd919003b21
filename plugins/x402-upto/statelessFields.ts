// The payload of the stateless draft: the arguments of its call as fields, and the payer's one signed entry. It is
// converted to the envelope form, on which the checks of all profiles run.
import { Result } from "effect"
import { Hex } from "effect/encoding"
import { unsignedEnvelope } from "../../kernel/payment/Unsigned.ts"
import { decodeEntry } from "../../kernel/stellar/AuthEntry.ts"
import { bytesOfBase64 } from "../../kernel/stellar/base64.ts"
import { callTo } from "../../kernel/stellar/ContractCall.ts"
import {
  addressValue,
  boolValue,
  bytesValue,
  i128Value,
  u32Value,
  u64Value,
  type Value
} from "../../kernel/stellar/Value.ts"
import { type ArgumentName, stateless } from "./profiles.ts"

type Fields = Readonly<Record<string, unknown>>

/** Thrown inside this file only: a field is absent or of another type. */
class Unreadable {
  readonly field: string
  constructor(field: string) {
    this.field = field
  }
}

const read = (fields: Fields) => ({
  text: (field: string, pattern: RegExp): string => {
    const value = fields[field]
    if (typeof value === "string" && pattern.test(value)) return value
    throw new Unreadable(field)
  },
  number: (field: string, max: number): number => {
    const value = fields[field]
    if (typeof value === "number" && Number.isSafeInteger(value) && value >= 0 && value <= max) return value
    throw new Unreadable(field)
  },
  flag: (field: string): boolean => {
    const value = fields[field]
    if (typeof value === "boolean") return value
    throw new Unreadable(field)
  }
})

const address = /^[GC][A-Z2-7]{55}$/
const amount = /^(0|[1-9][0-9]{0,37})$/
const salt = /^[0-9a-fA-F]{64}$/

const argumentsOf = (fields: Fields): Readonly<Partial<Record<ArgumentName, Value>>> => {
  const { flag, number, text } = read(fields)
  const max = i128Value(BigInt(text("maxAmount", amount)))
  return {
    payer: addressValue(text("from", address)),
    payTo: addressValue(text("payTo", address)),
    token: addressValue(text("asset", address)),
    max,
    beginsAt: u64Value(BigInt(number("validAfter", Number.MAX_SAFE_INTEGER))),
    endsAt: u64Value(BigInt(number("deadline", Number.MAX_SAFE_INTEGER))),
    deadline: u32Value(number("expirationLedger", 0xffff_ffff)),
    settlementId: bytesValue(Result.getOrThrow(Hex.decode(text("salt", salt)))),
    autoRevoke: boolValue(flag("autoRevoke")),
    actual: max
  }
}

const entriesOf = (fields: Fields) => {
  const { authEntries } = fields
  if (!Array.isArray(authEntries)) throw new Unreadable("authEntries")
  return authEntries.map((entry: unknown) => {
    const bytes = typeof entry === "string" ? bytesOfBase64(entry) : undefined
    if (bytes === undefined) throw new Unreadable("authEntries")
    return decodeEntry(bytes)
  })
}

/** Base64 of the envelope around the draft's call; the reason names the field, never the content. */
export const envelopeOfFields = (
  fields: Fields,
  contract: string
): Result.Result<string, { readonly reason: string }> => {
  try {
    const values = argumentsOf(fields)
    const args = stateless.arguments.map((name) => values[name]!)
    return Result.succeed(unsignedEnvelope(callTo(contract, stateless.functionName, args), entriesOf(fields)))
  } catch (error) {
    // The reader of an entry and the encoder of an address throw on anything else.
    const field = error instanceof Unreadable ? error.field : "authEntries"
    return Result.fail({ reason: `payload.${field} is not as the stateless draft has it` })
  }
}
