// Invariants of every history of agents that pay.
import type { Reservation } from "../../../plugins/mcp-tools-pay/budget/Reservation.ts"
import { isHonest } from "./AgentSeller.ts"
import type { AgentWorld, Sent } from "./AgentWorld.ts"
import type { Buyer } from "./Buyer.ts"

interface Run {
  readonly world: AgentWorld
  readonly buyers: ReadonlyArray<Buyer>
  readonly perDay: bigint
}

interface Receipt {
  readonly paymentIdentifier: string
  readonly status: string
  readonly replaces?: ReadonlyArray<string>
}

/** Calls that began within this time before the end may still be open. */
const recentMillis = 1_500_000
/** Nodes that keep fewer ledgers cannot always report a payment's outcome. */
const retentionMin = 1_000

const receiptOf = (output: Readonly<Record<string, unknown>>): Receipt => output["receipt"] as never

const ofBuyer = ({ ledger, sent, time }: AgentWorld, { answers, errors, invocation, seller }: Buyer) => {
  const broken: Array<string> = []
  const say = (what: string) => broken.push(`${invocation.key} at ${seller.kind}: ${what}`)
  const receipts = answers.map(({ output }) => receiptOf(output))
  const landed = (one: Sent) => ledger.landed.find(({ nonce }) => nonce === one.nonce)
  const all = sent.filter(({ key }) => key === invocation.key)
  for (const [at, first] of all.entries()) {
    const isAnswered = receipts.some((receipt) => receipt.paymentIdentifier === first.id)
    if (landed(first) !== undefined) {
      if (at < all.length - 1 && !isAnswered) say(`${first.id} moved, was never delivered, and was paid again`)
      continue
    }
    const next = all[at + 1]
    if (next === undefined) continue
    if (next.signedInLedger < first.expirationLedger && !isAnswered)
      say(`${next.id} was signed while ${first.id} could still move`)
    const reported = receipts.find(({ paymentIdentifier }) => paymentIdentifier === next.id)
    if (!isAnswered && reported !== undefined && !(reported.replaces ?? []).includes(first.id))
      say(`the receipt of ${next.id} does not name ${first.id}, which it replaces`)
  }
  for (const { output } of answers) {
    const { paymentIdentifier, status } = receiptOf(output)
    const payment = all.find(({ id }) => id === paymentIdentifier)
    if (payment === undefined) say(`${paymentIdentifier} was answered and never sent`)
    else if (output["bought"] !== payment.nonce.toString()) say(`${paymentIdentifier} was answered with other content`)
    else if ((status === "settled") !== (landed(payment) !== undefined)) say(`${paymentIdentifier} is called ${status}`)
  }
  if (ledger.retention < retentionMin) return broken
  const kept = errors.flatMap(({ atMillis, error: { details } }) => {
    const { contentKept, paymentIdentifier } = (details ?? {}) as Readonly<Record<string, unknown>>
    return contentKept === true && time.now - atMillis > recentMillis ? [paymentIdentifier] : []
  })
  for (const id of new Set(kept))
    if (!receipts.some(({ paymentIdentifier }) => paymentIdentifier === id)) say(`${id} was kept and not delivered`)
  const isRefused = errors.at(-1)?.error.code === "BUDGET_EXCEEDED"
  if (isHonest(seller.kind) && answers.length === 0 && !isRefused)
    say(`never answered; last ${JSON.stringify(errors.at(-1)?.error.message)}`)
  return broken
}

/** The store and the ledger agree, and every hold has ended. */
const ofStore = ({ buyers, perDay, world: { ledger, sent, time } }: Run, reservations: ReadonlyArray<Reservation>) => {
  const broken: Array<string> = []
  const days = new Map<string, bigint>()
  for (const one of reservations) {
    const payment = sent.find(({ id }) => id === one.id)
    const hasMoved = ledger.landed.some(({ nonce }) => nonce === one.authorization?.nonce)
    if (hasMoved && one.state === "released") broken.push(`${one.id} moved and is ${one.state}`)
    // Follows the money: every movement was delivered, or the same call still gets the content.
    const isOver = one.state === "acknowledged" || one.state === "settled"
    const isDelivered = buyers.some(({ answers }) =>
      answers.some(({ output }) => receiptOf(output).paymentIdentifier === one.id)
    )
    if (isOver && !isDelivered) broken.push(`${one.id} is ${one.state} and was never delivered`)
    if (hasMoved && payment === undefined) broken.push(`${one.id} moved and was never sent`)
    if (hasMoved || one.state !== "released") days.set(one.day, (days.get(one.day) ?? 0n) + one.amount)
    const mustHaveEnded = ledger.retention >= retentionMin && time.now - one.createdAtMillis > recentMillis
    if (mustHaveEnded && ["reserved", "signed", "unknown"].includes(one.state)) {
      const kind = buyers.find(({ invocation }) => invocation.key === one.invocation)?.seller.kind
      broken.push(`${one.id} at ${kind} is ${one.state} for ever`)
    }
  }
  for (const [day, sum] of days) if (sum > perDay) broken.push(`${sum} on ${day} is more than ${perDay}`)
  return broken
}

export const violationsOf = (run: Run): ReadonlyArray<string> => [
  ...run.buyers.flatMap((buyer) => ofBuyer(run.world, buyer)),
  ...ofStore(run, [...run.world.reservations.values()])
]
