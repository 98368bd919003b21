// A model of a payment channel between buyer, seller, store and ledger. In one world a hostile buyer signs and repeats
// any voucher, and withdraws. In the other world a hostile seller gives any answer and any correction, and claims.
// Answers are lost, readings of the ledger lag, and refunds land late. The checks of a voucher, of an answer, of a
// correction and of a withdrawal are the product's own code; the record follows `batch-store/StoredChannels.ts`.
import { changeOf } from "../../plugins/batch-store/watchWithdrawals.ts"
import { answeredTotal, isEarlier } from "../../plugins/mcp-tools-pay/channel/channelTerms.ts"
import { stateError } from "../../plugins/x402-batch/verifyVoucher.ts"
import { type Model, type Step, type Visited, visit } from "./visit.ts"

const rules = [
  "content follows a charge of its voucher",
  "the amount of a signed refund is not sold",
  "a reading before a refund changes nothing",
  "a started withdrawal ends the sale",
  "the watch compares the refund's nonce and the balance",
  "an answer above the price changes no amount",
  "the next voucher waits for the earlier answer",
  "a correction needs an earlier voucher"
] as const
type Rule = (typeof rules)[number]

/** In prices: the deposit, and the highest voucher. */
const [deposit, pricesMax] = [4, 5]
/** Refunds and withdrawals of the channel, and contents that a buyer receives. */
const [noncesMax, receivedMax] = [3, 5]

interface Ledger {
  readonly balance: number
  readonly claimed: number
  readonly isWithdrawing: boolean
  readonly nonce: number
}

interface State {
  readonly ledger: Ledger
  /** A former state, which a lagging node shows. */
  readonly lagging: Ledger
  readonly record: {
    readonly charged: number
    readonly balance: number
    readonly nonce: number
    readonly pending?: number
    readonly refund?: { readonly amount: number; readonly nonce: number }
  }
  /** A signed refund that may land. */
  readonly refund?: { readonly amount: number; readonly nonce: number; readonly charged: number }
  /** The honest buyer: the total that counts, and the voucher without an answer. */
  readonly counted: number
  readonly open?: number
  readonly isStopped: boolean
  /** Truth: the highest voucher, and contents given and received. */
  readonly signed: number
  readonly given: number
  readonly received: number
  /** The delay of the withdrawal is over; an earlier withdrawal ended while the store was down. */
  readonly isOver: boolean
  readonly isWithdrawn: boolean
}

const read = ({ balance, claimed, isWithdrawing, nonce }: Ledger) => ({
  balance: BigInt(balance),
  totalClaimed: BigInt(claimed),
  withdrawRequestedAt: isWithdrawing ? 1 : 0,
  refundNonce: BigInt(nonce)
})

const exploreWorld = (broken: string | undefined, isBuyerHostile: boolean): Visited => {
  const has = (rule: Rule) => rule !== broken

  /** A reservation and the charge by one voucher, as the store decides; undefined if it refuses. */
  const sale = (state: State, max: number, shown: Ledger): State | undefined => {
    const voucher = { channelId: "channel", maxClaimableAmount: BigInt(max), signature: "" }
    const payload = { _tag: "Voucher", type: "voucher", config: {}, voucher } as never
    const isEnding = has("a started withdrawal ends the sale") ? shown : { ...shown, isWithdrawing: false }
    if (stateError(payload, read(isEnding), 1n) !== undefined) return undefined
    const { record } = state
    const isCurrent = shown.nonce >= record.nonce || !has("a reading before a refund changes nothing")
    const held = record.refund !== undefined && shown.nonce <= record.refund.nonce ? record.refund.amount : 0
    const isHeld = has("the amount of a signed refund is not sold") && max > shown.balance - held
    const charged = Math.max(record.charged, shown.claimed)
    if (!isCurrent || isHeld || charged + 1 !== max) return undefined
    const { refund, ...kept } = record
    const next = { ...kept, balance: shown.balance, nonce: Math.max(record.nonce, shown.nonce), charged: charged + 1 }
    return { ...state, given: state.given + 1, record: held === 0 || refund === undefined ? next : { ...next, refund } }
  }

  const claimed = (state: State, total: number): State | undefined =>
    total > state.ledger.claimed && total <= Math.min(state.signed, state.ledger.balance)
      ? { ...state, ledger: { ...state.ledger, claimed: total } }
      : undefined

  const ledgerSteps = function* (state: State): Iterable<Step<State>> {
    const { ledger, refund } = state
    if (ledger.nonce === noncesMax) return
    // A node that lags shows the state before the last change.
    const moved = (change: Partial<Ledger>): State => ({ ...state, lagging: ledger, ledger: { ...ledger, ...change } })
    if (refund !== undefined) {
      const { refund: _, ...rest } = moved({
        balance: ledger.balance - refund.amount,
        claimed: Math.max(ledger.claimed, refund.charged),
        nonce: ledger.nonce + 1
      })
      if (refund.nonce === ledger.nonce) yield { did: "the refund lands", to: rest }
    }
    yield { did: "the node catches up", to: { ...state, lagging: ledger } }
    if (!isBuyerHostile) return
    const ended = moved({ balance: ledger.claimed, isWithdrawing: false, nonce: ledger.nonce + 1 })
    const isClaimed = state.record.charged === ledger.claimed && state.lagging.isWithdrawing
    if (!ledger.isWithdrawing) yield { did: "the buyer starts a withdrawal", to: moved({ isWithdrawing: true }) }
    else if (state.isOver) yield { did: "the withdrawal ends", to: { ...ended, isOver: false } }
    else {
      yield { did: "the withdrawal ends while the store is down", to: { ...ended, isWithdrawn: true } }
      if (isClaimed) yield { did: "the delay ends after the claims", to: { ...state, isOver: true } }
    }
  }

  const storeSteps = function* (state: State): Iterable<Step<State>> {
    const { ledger, record, refund } = state
    const toClaim = claimed(state, record.charged)
    if (toClaim !== undefined) yield { did: `the store claims ${record.charged}`, to: toClaim }
    for (const shown of [ledger, state.lagging]) {
      if (shown.nonce < record.nonce && has("a reading before a refund changes nothing")) continue
      const { refund: held, ...rest } = record
      const nonce = Math.max(record.nonce, shown.nonce)
      const isPending = held !== undefined && shown.nonce <= held.nonce
      const next = { ...rest, balance: shown.balance, nonce, ...(isPending ? { refund: held } : {}) }
      yield { did: `the store reads nonce ${shown.nonce}`, to: { ...state, record: next } }
    }
    const left = record.balance - record.charged
    if (refund === undefined && record.refund === undefined && left > 0) {
      const signed = { amount: left, nonce: record.nonce }
      yield {
        did: `the store signs a refund of ${left}`,
        to: { ...state, record: { ...record, refund: signed }, refund: { ...signed, charged: record.charged } }
      }
    }
    const watched = {
      charged: String(record.charged),
      lost: "0",
      refundNonce: String(record.nonce),
      withdrawRequestedAt: 0
    }
    const isSeen = has("the watch compares the refund's nonce and the balance")
      ? changeOf(watched as never, read(ledger)) !== undefined
      : ledger.isWithdrawing
    const isLost = ledger.balance < record.charged
    if (isLost && !isSeen) yield { did: "the watch reads the channel", to: state, broken: "a withdrawal was not seen" }
  }

  const hostileBuyer = function* (state: State): Iterable<Step<State>> {
    for (let max = 1; max <= pricesMax; max++)
      for (const [name, shown] of [
        ["", state.ledger],
        [", a node lags", state.lagging]
      ] as const) {
        const to = sale(state, max, shown)
        const signed = Math.max(state.signed, max)
        if (to !== undefined) yield { did: `the buyer pays by ${max}${name}`, to: { ...to, signed } }
        else if (max === state.record.charged && !has("content follows a charge of its voucher"))
          yield { did: `the buyer repeats ${max}`, to: { ...state, given: state.given + 1 } }
      }
  }

  /** The buyer takes the answer to its open voucher. */
  const answered = (state: State, total: number, isGiven: boolean): State => {
    const { open, ...rest } = state
    const given = isGiven ? { ...rest, received: state.received + 1 } : rest
    const about = { channelId: "channel", max: BigInt(open!), price: 1n }
    const counted = answeredTotal(about, { channelState: { chargedCumulativeAmount: String(total) } })
    if (typeof counted !== "string") return { ...given, counted: Number(counted) }
    return has("an answer above the price changes no amount")
      ? { ...given, isStopped: true }
      : { ...given, counted: total }
  }

  const honestBuyer = function* (state: State): Iterable<Step<State>> {
    const { counted, isStopped, open, received, signed } = state
    const isFree = open === undefined || !has("the next voucher waits for the earlier answer")
    if (isFree && !isStopped && counted < pricesMax && received < receivedMax) {
      const max = Math.min((open ?? counted) + 1, pricesMax)
      yield { did: `the buyer signs ${max}`, to: { ...state, open: max, signed: Math.max(signed, max) } }
    }
    if (open === undefined) return
    for (let total = 0; total <= pricesMax; total++) {
      yield { did: `the seller answers ${total} with content`, to: answered(state, total, true) }
    }
    // The seller's correction, with a voucher that the buyer signed.
    for (let max = 1; max <= signed; max++) {
      const correction = { charged: BigInt(max), signedMax: BigInt(max), signature: "" }
      const totals = { counted: BigInt(counted), sent: BigInt(open) }
      const isTaken = isEarlier(correction, totals) || !has("a correction needs an earlier voucher")
      if (!isTaken || max < counted) continue
      const { open: _, ...rest } = state
      yield { did: `the seller corrects to ${max}`, to: { ...rest, counted: max } }
    }
    for (let total = 1; total <= signed; total++) {
      const to = claimed(state, total)
      if (to !== undefined) yield { did: `the seller claims ${total}`, to }
    }
  }

  const stepsOf = function* (state: State): Iterable<Step<State>> {
    if (isBuyerHostile) {
      yield* ledgerSteps(state)
      yield* storeSteps(state)
      yield* hostileBuyer(state)
    } else yield* honestBuyer(state)
  }

  const issueOf = ({ given, isWithdrawn, ledger, received, record, signed }: State): string | undefined => {
    if (isBuyerHostile) {
      if (given > record.charged) return `${given} contents, and ${record.charged} charged`
      return !isWithdrawn && record.charged > ledger.balance ? "sold, and a refund has paid it out" : undefined
    }
    return signed > received + 1 ? `${signed} may be claimed for ${received} contents` : undefined
  }

  const ledger: Ledger = { balance: deposit, claimed: 0, isWithdrawing: false, nonce: 0 }
  const truth = { signed: 0, given: 0, received: 0, isOver: false, isWithdrawn: false }
  const record = { charged: 0, balance: deposit, nonce: 0 }
  return visit<State>({ ledger, lagging: ledger, record, counted: 0, isStopped: false, ...truth }, stepsOf, issueOf)
}

const explore = (broken?: string): Visited => {
  const [buyer, seller] = [exploreWorld(broken, true), exploreWorld(broken, false)]
  return { states: buyer.states + seller.states, broken: buyer.broken ?? seller.broken }
}

export const channel: Model = { name: "a channel between buyer, seller, store and ledger", rules, explore }
