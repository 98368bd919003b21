// The data that the payer of an `upto` payment signs, in every profile: the settlement contract's call with the
// profile's signed arguments, and below it the allowance and, if the profile has one, the allowance's end. Pure.
import { Option } from "effect"
import { Hex } from "effect/encoding"
import type { Terms } from "../../kernel/payment/Payment.ts"
import { type Unsigned, unsignedEntry, type UnsignedOrder } from "../../kernel/payment/Unsigned.ts"
import { type Invocation, invocationOf } from "../../kernel/stellar/AuthEntry.ts"
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
import { type ArgumentName, type OfferedContract, positionIn, type Profile } from "./profiles.ts"

const has = (profile: Profile, name: ArgumentName): boolean => positionIn(profile, name) >= 0

/** The names and values that a client cannot derive from its terms. */
const chosenFor = (profile: Profile, order: UnsignedOrder, endsAt: bigint): Unsigned["chosen"] => ({
  profile: profile.name,
  settlementId: Hex.encode(order.salt),
  ...(has(profile, "validAfter") ? { validAfter: order.latestLedger } : {}),
  ...(has(profile, "beginsAt") ? { beginsAt: order.closedAtSeconds, endsAt: Number(endsAt) } : {}),
  ...(has(profile, "autoRevoke") ? { autoRevoke: true } : {})
})

/** `sponsor`: the facilitator's address in the call, if the profile has one. The terms' addresses are valid. */
export const unsignedSettlement = (
  { contract, profile }: OfferedContract,
  terms: Terms,
  order: UnsignedOrder,
  sponsor: string
): Unsigned => {
  const { expiresLedger, latestLedger, payer, salt } = order
  const max = Option.getOrElse(terms.amount, () => 0n)
  const endsAt = BigInt(order.closedAtSeconds) + BigInt(terms.maxTimeoutSeconds)
  const values: Readonly<Record<ArgumentName, Value>> = {
    payer: addressValue(payer),
    payTo: addressValue(terms.payTo),
    token: addressValue(terms.asset),
    max: i128Value(max),
    validAfter: u32Value(latestLedger),
    deadline: u32Value(expiresLedger),
    beginsAt: u64Value(BigInt(order.closedAtSeconds)),
    endsAt: u64Value(endsAt),
    facilitator: addressValue(sponsor),
    settlementId: bytesValue(salt),
    autoRevoke: boolValue(true),
    actual: i128Value(max)
  }
  const approve = (amount: bigint, lastLedger: number): Invocation =>
    invocationOf(
      callTo(terms.asset, "approve", [values.payer, addressValue(contract), i128Value(amount), u32Value(lastLedger)])
    )
  const endLedger = profile.revokedUntil === "zero" ? 0 : expiresLedger
  const below = [approve(max, expiresLedger), ...(profile.revokes === "never" ? [] : [approve(0n, endLedger)])]
  const signed = callTo(
    contract,
    profile.functionName,
    profile.signed.map((name) => values[name])
  )
  const invocation = { ...invocationOf(signed), subInvocations: below } as unknown as Invocation
  return {
    invoked: callTo(
      contract,
      profile.functionName,
      profile.arguments.map((name) => values[name])
    ),
    entry: unsignedEntry(order, invocation),
    chosen: {
      contract,
      ...chosenFor(profile, order, endsAt),
      ...(has(profile, "facilitator") ? { facilitator: sponsor } : {})
    }
  }
}
