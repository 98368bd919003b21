// Reads an enforcing simulation for all schemes: a readable meaning of the ledger's refusal, whether the authorization
// was already used, and whether the cost is within the ceilings. The scheme chooses the reason of a refusal. Pure.
import type { FeeCeilings } from "../config/Network.ts"
import type { SimulationAnswer } from "../ledger/LedgerRpc.ts"
import type { Refusal } from "./Refusal.ts"

/** The meaning of a host error, for people; `pattern` is matched against its code. */
export type HostErrorMeaning = readonly [pattern: RegExp, meaning: string]

/** Meanings of the errors of the host and of the network's own assets. */
const common: ReadonlyArray<HostErrorMeaning> = [
  [/Contract, #10\)/, "the payer's balance does not cover the amount, or the recipient's limit does not take it"],
  [/Contract, #13\)/, "the payer's or the recipient's trustline is missing"],
  [/Contract, #11\)/, "the payer's or the recipient's balance is deauthorized"],
  [/Contract, #6\)/, "an account does not exist"],
  [/Auth, ExistingValue/, "the authorization's nonce is used"],
  [/Auth, InvalidInput/, "the authorization has expired or lives too long"],
  [/Auth, InvalidAction/, "the authorization is not accepted"],
  [/Storage, MissingValue/, "the contract does not exist"],
  [/Budget, ExceededLimit/, "the call needs too many resources"]
]

/** Minimum cost of including a fee bump, stroops: the network's base fee for two operations. */
const inclusionStroopsLeast = 200n

/**
 * A refusal's code, its meaning, and the host's own message. `own` are meanings of the scheme's contract. `whose`
 * describes the two ends from the ledger's entries (`explainHoldings.ts`).
 */
export const explainRefused = (
  { code, detail }: Extract<SimulationAnswer, { _tag: "Refused" }>,
  own: ReadonlyArray<HostErrorMeaning> = [],
  whose?: string
): string => {
  const fits = ([pattern]: HostErrorMeaning) => pattern.test(code)
  const meaning = whose ?? (common.find(fits) ?? own.find(fits))?.[1]
  return [code, meaning, detail === "" ? undefined : `“${detail}”`].filter((part) => part !== undefined).join(": ")
}

/** True if the host reports that the authorization was used before. */
export const isSpent = (answer: SimulationAnswer): boolean =>
  answer._tag === "Refused" && /Auth, ExistingValue/.test(answer.code)

/**
 * Reads the authorization's state from a refused simulation: used, or expired because the node has newer ledgers than
 * the offline checks had.
 */
export const refusedAuthorization = (
  answer: SimulationAnswer,
  expiresLedger: number
): Pick<Refusal, "authorizationSpent" | "authorizationExpiresLedger"> => {
  if (isSpent(answer)) return { authorizationSpent: true }
  return answer._tag === "Refused" && /Auth, InvalidInput/.test(answer.code) && answer.latestLedger >= expiresLedger
    ? { authorizationExpiresLedger: expiresLedger }
    : {}
}

/** Why we restore no entries for a payment, with the cost if the node reports it. */
export const explainRestore = ({ restoreStroops }: Extract<SimulationAnswer, { _tag: "RestoreRequired" }>): string =>
  "entries of the ledger are archived, and this network restores them only in a separate transaction" +
  (restoreStroops === undefined ? "" : `, for ${restoreStroops} stroops`)

/** Why we do not pay to restore a payment's entries: the cost and the ceiling. */
export const restoreOverCeilings = (
  { resourceFeeStroops, restoredEntries = 0 }: Extract<SimulationAnswer, { _tag: "Simulated" }>,
  ceilings: FeeCeilings
): string | undefined => {
  const error = restoredEntries === 0 ? undefined : overCeilings(resourceFeeStroops, ceilings)
  if (error === undefined) return undefined
  return `${restoredEntries} archived entries would be restored by the payment; ${error}. Restore them first`
}

/** Why a resource fee of this many stroops exceeds the ceilings, with both figures; undefined if it does not. */
export const overCeilings = (resourceStroops: bigint, ceilings: FeeCeilings): string | undefined => {
  if (resourceStroops > ceilings.resourceStroopsMax)
    return `the resource fee is ${resourceStroops} stroops, the ceiling ${ceilings.resourceStroopsMax}`
  const least = resourceStroops + inclusionStroopsLeast
  return least > ceilings.totalStroopsMax
    ? `the fee is at least ${least} stroops, the ceiling ${ceilings.totalStroopsMax}`
    : undefined
}
