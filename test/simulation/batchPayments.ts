// Payments by the simulated batch scheme: deposits by a payer, claims, sweeps and refunds of a seller, withdrawals. A
// requested call is valid on the current ledger, but may not be when it lands: claims overtake each other, a refund
// comes in between, or a stranger submits the same call.
import type { Payment } from "../../kernel/payment/Payment.ts"
import { principals, type Scenario } from "./Scenario.ts"
import { type BatchAct, batchAccount, type BatchChannel, heldOf, isNonceless } from "./SimulatedBatch.ts"
import { batchScheme, keyOf, paymentOf } from "./simulatedScheme.ts"
import type { Authorization } from "./SimulatedLedger.ts"
import type { World } from "./World.ts"

const partiesOf = (act: BatchAct, channel: BatchChannel) => {
  switch (act.kind) {
    case "deposit":
      return { payer: channel.payer, payTo: batchAccount }
    case "claim":
    case "sweep":
      return { payer: batchAccount, payTo: channel.receiver }
    case "refund":
      return { payer: batchAccount, payTo: channel.payer }
    case "withdrawStart":
    case "withdrawEnd":
      return { payer: batchAccount, payTo: channel.payer }
  }
}

/** The amount that a call should move, or that a claim should add, on the current ledger. */
const amountOf = ({ ledger }: World, act: BatchAct, channel: BatchChannel): bigint => {
  switch (act.kind) {
    case "deposit":
    case "refund":
      return act.amount
    case "claim":
      return act.total > channel.claimed ? act.total - channel.claimed : 0n
    case "sweep":
      return ledger.batch.unsettled(act.receiver)
    case "withdrawStart":
      return 0n
    case "withdrawEnd":
      return heldOf(channel)
  }
}

const keyOfAct = (act: BatchAct, payer: string, nonce: bigint, expiresLedger: number): string => {
  switch (act.kind) {
    case "claim":
      return `claim:${act.channel}:${act.total}`
    case "refund":
      return `refund:${act.channel}:${act.amount}:${act.refundNonce}:${act.expires}`
    case "sweep":
      return `sweep:${act.receiver}:${nonce}`
    default:
      return keyOf(payer, nonce, expiresLedger)
  }
}

const authorizationOf = (world: World, act: BatchAct, channel: BatchChannel, ledgers: number): Authorization => {
  const { authorizations, ledger } = world
  const number = authorizations.size + 1
  const expiresLedger = ledger.sequence + ledgers
  const amount = amountOf(world, act, channel)
  const { payTo, payer } = partiesOf(act, channel)
  // The owner of the nonce: for a withdrawal the payer, although the contract pays.
  const key = keyOfAct(act, channel.payer, BigInt(number), expiresLedger)
  const known = isNonceless(act) ? [...authorizations.values()].find((one) => one.key === key) : undefined
  const made: Authorization = {
    number,
    key,
    scheme: batchScheme,
    payer: isNonceless(act) ? payer : channel.payer,
    payTo,
    nonce: BigInt(number),
    amountMax: amount,
    amount,
    expiresLedger,
    isUnacceptable: false,
    act
  }
  if (known === undefined) authorizations.set(number, made)
  return known ?? made
}

/** A call that is valid on the current ledger; sometimes the next one of a channel's life. */
const actOf = ({ ledger, random }: World): { readonly act: BatchAct; readonly channel: BatchChannel } => {
  const { chance, int, pick } = random
  const endable = [...ledger.batch.channels].find(([channel]) =>
    ledger.batch.allows({ kind: "withdrawEnd", channel }, ledger.sequence)
  )
  if (endable !== undefined && chance(0.8))
    return { act: { kind: "withdrawEnd", channel: endable[0] }, channel: endable[1] }
  const [name, channel] = pick([...ledger.batch.channels])
  const held = Number(heldOf(channel))
  if (held === 0 || chance(0.3)) return { act: { kind: "deposit", channel: name, amount: BigInt(int(1, 40)) }, channel }
  if (chance(0.25)) {
    const kind = channel.withdrawStartedIn === undefined ? "withdrawStart" : "withdrawEnd"
    return { act: { kind, channel: name }, channel }
  }
  if (chance(0.2)) {
    const { refundNonce } = channel
    const expires = ledger.sequence + int(4, 12)
    return { act: { kind: "refund", channel: name, amount: BigInt(int(1, held)), refundNonce, expires }, channel }
  }
  if (ledger.batch.unsettled(channel.receiver) > 0n && chance(0.35))
    return { act: { kind: "sweep", receiver: channel.receiver }, channel }
  return { act: { kind: "claim", channel: name, total: channel.claimed + BigInt(int(1, held)) }, channel }
}

/** A payer without a trustline lets its refund fail. Its signature is public then, and the payer submits it later. */
const sabotage = ({ coverage, ledger, random, time }: World, refund: Authorization, payer: string): void => {
  ledger.batch.unpayable.add(payer)
  coverage.count("batch refund sabotaged")
  time.after(random.int(4_000, 40_000), () => {
    ledger.batch.unpayable.delete(payer)
    ledger.spendElsewhere(refund)
  })
}

/** One call of the batch contract in the storm. */
export const planBatch = ({ ask, payments, world }: Scenario): void => {
  const { coverage, ledger, random, time } = world
  const { chance, int, pick } = random
  const { act, channel } = actOf(world)
  const authorization = authorizationOf(world, act, channel, int(4, 18))
  const identifier = chance(0.5) ? `identifier-${authorization.number}` : undefined
  const payment: Payment = paymentOf({ authorization, principal: pick(principals), identifier })
  payments.push(payment)
  ask(payment, chance(0.25) ? int(2, 4) : 1)
  if (act.kind === "refund" && chance(0.4)) sabotage(world, authorization, channel.payer)
  if (!chance(0.06)) return
  time.after(int(0, 8_000), () => {
    coverage.count("front-run")
    ledger.spendElsewhere(authorization)
  })
}
