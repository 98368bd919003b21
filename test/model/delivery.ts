// A model of the delivery of one success, explored completely: two processes over one database, callers with and
// without the seller's key, answers that are sent or cut off, claims with lost answers, and processes that die. The
// product's own code decides which answer a caller receives; claims and their ends follow the statements of
// `store/batchDeliveries.ts`. The truth of a state is the set of answers that were sent through a socket; the model
// compares each state's words with it.
import { Option } from "effect"
import type { Payment } from "../../kernel/payment/Payment.ts"
import { existingFrom, verifyKnown } from "../../kernel/payment/settle/existing.ts"
import type { SettlementRecord } from "../../kernel/settlement/store/Settlements.ts"
import { type Step, type Visited, visit } from "./visit.ts"

type Process = "A" | "B"
export type Key = "key" | "other key" | undefined
const processes: ReadonlyArray<Process> = ["A", "B"]
export const keys: ReadonlyArray<Key> = [undefined, "key", "other key"]

interface Claim {
  readonly by: Process
  readonly key: Key
}

interface State {
  /** The row: the claim that got the success, and whether this is confirmed. */
  readonly given: (Claim & { readonly isConfirmed: boolean }) | undefined
  /** The claims of the living processes; at most one each. */
  readonly sending: Readonly<
    Partial<Record<Process, { readonly key: Key; readonly phase: "sending" | "left" | "lost" }>>
  >
  readonly alive: ReadonlyArray<Process>
  readonly rows: ReadonlyArray<Process>
  /** Keys of the answers that were sent, in order. */
  readonly left: ReadonlyArray<Key>
  /** Answers that were sent by a process that died before it could confirm them. */
  readonly unconfirmed: number
}

const start: State = { given: undefined, sending: {}, alive: processes, rows: processes, left: [], unconfirmed: 0 }

const deliveryOf = ({ given, rows }: State): SettlementRecord["delivery"] => {
  if (given === undefined) return "undelivered"
  if (given.isConfirmed) return "confirmed"
  return rows.includes(given.by) ? "given" : "undelivered"
}

export const recordOf = (changes: Partial<SettlementRecord> = {}): SettlementRecord =>
  ({
    id: "settlement",
    principal: "seller",
    fingerprint: "payment",
    payer: "payer",
    identifier: Option.some("chosen-by-the-buyer"),
    innerHash: "hash",
    transaction: Option.some("hash"),
    amount: 10n,
    amountTransferred: Option.some(10n),
    reason: Option.none(),
    reasonMessage: Option.none(),
    deadlineAt: new Date(1),
    state: "settled",
    delivery: "undelivered",
    ...changes
  }) as SettlementRecord

/** The payment as a caller sends it, with the buyer's identifier. */
export const paymentOf = (key: Key, owner = "seller"): Payment =>
  ({
    principal: { owner },
    fingerprint: "payment",
    fingerprintFor: () => "payment",
    accepted: {},
    requirements: {},
    identifier: Option.some("chosen-by-the-buyer"),
    idempotencyKey: key
  }) as unknown as Payment

/** The row as a process reads it: an answer that it has sent itself counts as delivered before the row shows it. */
const readBy = (state: State, process: Process): SettlementRecord => {
  const stored = deliveryOf(state)
  const isLeft = stored === "given" && state.sending[process]?.phase === "left"
  return recordOf({ delivery: isLeft ? "confirmed" : stored, deliveredKey: state.given?.key })
}

const without = (state: State, process: Process): State["sending"] => {
  const { [process]: _, ...others } = state.sending
  return others
}

/** A caller settles at a process. */
const settle = (state: State, process: Process, key: Key): ReadonlyArray<Step<State>> => {
  const record = readBy(state, process)
  const found = existingFrom(paymentOf(key), [record])
  const verified = verifyKnown(paymentOf(key), [record])
  const isValid = typeof verified === "object" && verified._tag === "Valid"
  const did = `settle at ${process} with ${key ?? "no key"}: ${found._tag}`
  if (found._tag === "Undelivered") {
    if (!isValid) return [{ did, to: state, broken: "verify refuses what settle gives" }]
    if (state.sending[process] !== undefined) return []
    const claim = { ...state, given: { by: process, key, isConfirmed: false } }
    const phases = ["sending", "lost"] as const
    return phases.map((phase) => ({
      did: `${did}, ${phase}`,
      to: { ...claim, sending: { ...state.sending, [process]: { key, phase } } }
    }))
  }
  if (found._tag !== "Answer" && found._tag !== "Given") return [{ did, to: state, broken: `answered ${found._tag}` }]
  const { answer } = found
  const broken = () => {
    if (answer._tag === "Settled") {
      if (key === undefined || !state.left.includes(key)) {
        // With the same key, while it is being sent: the same sale asks again.
        if (key === undefined || state.given?.key !== key) return "a success was repeated without its key"
      }
      return isValid ? undefined : "verify refuses what settle repeats"
    }
    if (isValid) return "verify is valid, and settle gives nothing"
    if (answer._tag === "Failed" && state.left.length === 0) return "called delivered, and no answer has left"
    if (answer._tag === "Pending" && deliveryOf(state) !== "given") return "called pending, and no process sends it"
    return undefined
  }
  return [{ did, to: state, broken: broken() }]
}

const steps = (state: State): ReadonlyArray<Step<State>> => {
  const found: Array<Step<State>> = []
  for (const process of state.alive) {
    for (const key of keys) found.push(...settle(state, process, key))
    const sent = state.sending[process]
    if (sent?.phase === "sending") {
      found.push({
        did: `the answer of ${process} leaves`,
        to: {
          ...state,
          sending: { ...state.sending, [process]: { ...sent, phase: "left" } },
          left: [...state.left, sent.key]
        }
      })
    }
    if (sent !== undefined) {
      const isOwn = state.given?.by === process && !state.given.isConfirmed
      const isLeft = sent.phase === "left"
      const given = isOwn ? (isLeft ? { ...state.given!, isConfirmed: true } : undefined) : state.given
      found.push({
        did: `${process} ${isLeft ? "confirms" : "gives back"}`,
        to: { ...state, given, sending: without(state, process) }
      })
    }
    if (state.alive.length > 1)
      found.push({
        did: `${process} dies`,
        to: {
          ...state,
          alive: state.alive.filter((one) => one !== process),
          sending: without(state, process),
          unconfirmed: state.unconfirmed + (sent?.phase === "left" ? 1 : 0)
        }
      })
  }
  for (const process of state.rows)
    if (!state.alive.includes(process))
      found.push({
        did: `${process} counts as dead`,
        to: { ...state, rows: state.rows.filter((one) => one !== process) }
      })
  return found
}

/** Invariants of every state. */
const stateIssue = (state: State): string | undefined => {
  if (state.left.length > 1 + state.unconfirmed)
    return "given twice, and no process died between answer and confirmation"
  const isQuiet = Object.keys(state.sending).length === 0 && state.rows.length === state.alive.length
  if (!isQuiet) return undefined
  const delivery = deliveryOf(state)
  if (delivery === "given") return "given for ever"
  if (delivery === "confirmed" && state.left.length === 0) return "confirmed, and no answer has left"
  return undefined
}

export const exploreDelivery = (): Visited => visit(start, steps, stateIssue)
