// The payments of a run, their parties, their times and their faults, drawn from the seed. Some payments share a nonce,
// some callers have no identifier, strangers use another payer's authorization or submit it themselves, and no node
// accepts some envelopes.
import type { Payment } from "../../kernel/payment/Payment.ts"
import { authorizationOf, keyOf, paymentOf, schemeNames } from "./simulatedScheme.ts"
import { isNonceless } from "./SimulatedBatch.ts"
import type { Authorization } from "./SimulatedLedger.ts"
import type { World } from "./World.ts"

/** Minimum number of payments in a run. */
export const paymentsMin = 30

/** Callers without keys are only distinguished by their address. */
export const principals = ["key:a", "key:b", "ip:c"] as const
const stranger = "key:stranger"

export interface Scenario {
  readonly world: World
  readonly payments: Array<Payment>
  /** Requests a payment from now on, `copies` times. */
  readonly ask: (payment: Payment, copies: number) => void
}

/** The next authorization, with a new nonce unless one is given. */
export const newAuthorization = (
  { authorizations, ledger, random }: World,
  options: { readonly ledgers: number; readonly like?: Authorization; readonly isUnacceptable?: boolean }
): Authorization => {
  const number = authorizations.size + 1
  const { like } = options
  const scheme = random.chance(0.8) ? schemeNames[0] : schemeNames[1]
  const expiresLedger = Math.max(ledger.sequence + options.ledgers, (like?.expiresLedger ?? 0) + 1)
  const payer = like?.payer ?? `payer-${number}`
  const nonce = like?.nonce ?? BigInt(number)
  const authorization: Authorization = {
    number,
    key: keyOf(payer, nonce, expiresLedger),
    scheme,
    payer,
    payTo: like?.payTo ?? `seller-${number % 3}`,
    nonce,
    amountMax: 10n,
    amount: scheme === schemeNames[0] ? 10n : 6n,
    expiresLedger,
    isUnacceptable: options.isUnacceptable === true
  }
  authorizations.set(number, authorization)
  return authorization
}

/** The identifier of a payment: most have one; a few reuse the identifier of the payer's previous payment. */
const identifierOf = ({ world }: Scenario, number: number, before?: Payment): string | undefined => {
  const { chance } = world.random
  if (!chance(0.6)) {
    world.coverage.count("no identifier")
    return undefined
  }
  return before?.identifier._tag === "Some" && chance(0.6) ? before.identifier.value : `identifier-${number}`
}

/** Plans one payment of the storm and its faults. */
export const planPayment = (scenario: Scenario): void => {
  const { ask, payments, world } = scenario
  const { coverage, ledger, random, time } = world
  const { chance, int, pick } = random
  const authorization = newAuthorization(world, { ledgers: int(2, 18), isUnacceptable: chance(0.03) })
  if (authorization.isUnacceptable) coverage.count("never acceptable")
  const payment = paymentOf({
    authorization,
    principal: pick(principals),
    identifier: identifierOf(scenario, authorization.number)
  })
  payments.push(payment)
  ask(payment, chance(0.25) ? int(2, 4) : 1)
  if (chance(0.06)) {
    time.after(int(0, 8_000), () => {
      coverage.count("front-run")
      ledger.spendElsewhere(authorization)
    })
  }
  if (chance(0.08)) {
    coverage.count("nonce shared")
    const like = newAuthorization(world, { ledgers: int(2, 18), like: authorization })
    const twin = paymentOf({
      authorization: like,
      principal: chance(0.6) ? payment.principal.source : pick(principals),
      identifier: identifierOf(scenario, like.number, payment)
    })
    payments.push(twin)
    time.after(int(0, 12_000), () => ask(twin, 1))
  }
  if (chance(0.08)) {
    coverage.count("a stranger asks")
    const identifier = payment.identifier._tag === "Some" && chance(0.5) ? payment.identifier.value : undefined
    const theirs = paymentOf({ authorization, principal: stranger, identifier, variant: chance(0.5) ? "-other" : "" })
    time.after(int(0, 10_000), () => ask(theirs, 1))
  }
}

/** A payment under calm conditions, with enough time to settle. */
export const calmPayment = ({ payments, world }: Scenario, principal: string): Payment => {
  const authorization = newAuthorization(world, { ledgers: 60 })
  const payment = paymentOf({ authorization, principal, identifier: `identifier-${authorization.number}` })
  payments.push(payment)
  return payment
}

/** True if no stranger touched the payer's authorization, and a node would accept it. */
export const isUntouched = ({ ledger }: World, payment: Payment): boolean => {
  const authorization = authorizationOf(payment)
  const by = isNonceless(authorization.act) ? ledger.movedBy.get(authorization.number) : ledger.spentEver(authorization)
  if (by?.startsWith("stranger-") === true) return false
  return !authorization.isUnacceptable && (by === undefined || by === ledger.movedBy.get(authorization.number))
}
