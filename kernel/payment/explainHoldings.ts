// Finds the balance, trustline or limit that makes the asset contract refuse a transfer. The contract has one code for
// both ends of a transfer, so we read the two entries, and only after a refusal. If an entry is unreadable or has
// changed since, the answer keeps the sentence that covers both ends. Nothing here fails or decides.
import { Effect, Option } from "effect"
import type { LedgerRpc, SimulationAnswer } from "../ledger/LedgerRpc.ts"
import type { Holding } from "../stellar/Holding.ts"

/** Maximum duration of the reads for an explanation. */
const timeMax = "2 seconds"

/** Codes that either end of a transfer can cause. */
const codeOf = (answer: SimulationAnswer): string | undefined =>
  answer._tag === "Refused" ? /Contract, #(10|11|13)\)/.exec(answer.code)?.[1] : undefined

interface Movement {
  readonly payer: string
  readonly payTo: string
  readonly asset: string
  /** Atomic units. */
  readonly amount: bigint
}

type Holdings = ReadonlyMap<string, Holding>

const missing = (name: string, address: string) =>
  `${name} ${address} has no trustline to the asset; ` +
  (name === "the payer" ? "the payer must add one before it can pay" : "the seller must add one before it can be paid")

const ofBalance = ({ amount, payTo, payer }: Movement, from: Holding | undefined, to: Holding | undefined) => {
  if (from !== undefined && from.spendable < amount)
    return (
      `the payer's balance does not cover the amount: ${payer} can spend ${from.spendable} of ` +
      `${amount} atomic units`
    )
  return to !== undefined && to.room < amount
    ? `the recipient's limit does not take the amount: the trustline of ${payTo} has room for ${to.room} of ` +
        `${amount} atomic units; ` +
        "the seller must raise its limit, the payer's balance is enough"
    : undefined
}

/** The sentence for a code; undefined if the entries do not show which end it is. */
const sentenceOf = (code: string, movement: Movement, holdings: Holdings): string | undefined => {
  const { payTo, payer } = movement
  const [from, to] = [holdings.get(payer), holdings.get(payTo)]
  switch (code) {
    case "10":
      return ofBalance(movement, from, to)
    case "13":
      if (from === undefined) return missing("the payer", payer)
      return to === undefined ? missing("the recipient", payTo) : undefined
    default:
      if (from?.isAuthorized === false) return `the asset's issuer has not authorized the payer's balance of ${payer}`
      return to?.isAuthorized === false
        ? `the asset's issuer has not authorized the recipient's balance of ${payTo}`
        : undefined
  }
}

/** The end that made the asset contract refuse; undefined for another code, or if the entries do not show it. */
export const explainHoldings = (
  rpc: Pick<LedgerRpc["Service"], "holdings">,
  answer: SimulationAnswer,
  movement: Movement
): Effect.Effect<string | undefined> => {
  const code = codeOf(answer)
  if (code === undefined) return Effect.undefined
  return Effect.suspend(() => rpc.holdings(movement.asset, [movement.payer, movement.payTo])).pipe(
    Effect.timeout(timeMax),
    Effect.catchCause(() => Effect.succeedNone),
    Effect.map((read) => (Option.isNone(read) ? undefined : sentenceOf(code, movement, read.value)))
  )
}
