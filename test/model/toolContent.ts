// A model of one paid call of an agent: two processes of the tool server over one store, a host that repeats the call,
// a seller that submits and answers as it likes, and the turn that decides holds. Messages are lost and processes die
// between any two steps. The store's transitions and the fate of an authorization are the product's own code; the order
// of steps follows `call/signPurchase.ts`, `call/sendPayment.ts` and `budget/reconcileHolds.ts`.
import { Effect, Option } from "effect"
import type { LedgerRpc } from "../../kernel/ledger/LedgerRpc.ts"
import {
  isOpen,
  mayTransition,
  type Reservation,
  type ReservationState,
  undelivered
} from "../../plugins/mcp-tools-pay/budget/Reservation.ts"
import { fateOf } from "../../plugins/mcp-tools-pay/payer/proveSpent.ts"
import { type Model, type Step, visit } from "./visit.ts"

/** Rules that the product has; a model without one of them must break an invariant. */
const rules = [
  "a reservation counts the payments before it",
  "a hold moves only from the state that was read",
  "a payment is stored before it is sent",
  "a refusal by the seller releases nothing",
  "an unspent nonce is dead only at its last ledger",
  "a missing nonce entry proves nothing after its last ledger",
  "the host acknowledges by its next request"
] as const
type Rule = (typeof rules)[number]

interface Payment {
  readonly state: ReservationState
  /** Last ledger of the authorization; present once it is stored. */
  readonly expires?: number
  /** The signed payment is stored, and any process may send it. */
  readonly isStored?: boolean
  readonly hasContent?: boolean
  /** Truth: the seller has the signed payment; the ledger of its use. */
  readonly isSent?: boolean
  readonly landedIn?: number
}

type Process = "A" | "B"
interface Work {
  readonly phase: "read" | "reserved" | "authorized" | "stored" | "answered" | "writing"
  /** Number of the call's payments when the work began, and then the index of the new one. */
  readonly at: number
  readonly answer?: "content" | "refusal"
}

interface State {
  readonly ledger: number
  readonly payments: ReadonlyArray<Payment>
  readonly work: Readonly<Partial<Record<Process, Work>>>
  /** A turn that has read a payment and not yet decided. */
  readonly hold?: { readonly at: number; readonly state: ReservationState }
  /** Truth: the host has read the content of these payments. */
  readonly received: ReadonlyArray<number>
}

const processes: ReadonlyArray<Process> = ["A", "B"]
const [ledgersMax, lifeLedgers, paymentsMax] = [4, 2, 2]

const explore = (broken?: string) => {
  const has = (rule: Rule) => rule !== broken

  /** The fate of a payment as a node shows it that may lag by one ledger. */
  const fateAt = (payment: Payment, latestLedger: number) => {
    const { expires = 0, landedIn = Infinity } = payment
    const spent = landedIn <= latestLedger && latestLedger <= expires
    const rpc = { nonceSpent: () => Effect.succeed({ latestLedger, spent, inLedger: Option.none() }) }
    const authorization = { payer: "payer", nonce: 1n, expirationLedger: expires }
    const { fate } = Effect.runSync(fateOf(rpc as never as LedgerRpc["Service"], authorization))
    if (fate === "alive" && !has("an unspent nonce is dead only at its last ledger")) return "dead"
    if (fate !== "undecidable") return fate
    if (!has("a missing nonce entry proves nothing after its last ledger")) return "dead"
    // Every ledger of its life is scanned.
    return landedIn <= expires ? "spent" : "dead"
  }

  const changed = (state: State, at: number, change: Partial<Payment>): State => ({
    ...state,
    payments: state.payments.map((one, index) => (index === at ? { ...one, ...change } : one))
  })
  /** Undefined if the store refuses the transition. */
  const moved = (state: State, at: number, to: ReservationState, change: Partial<Payment> = {}): State | undefined =>
    mayTransition(state.payments[at]!.state, to) ? changed(state, at, { ...change, state: to }) : undefined
  const working = (state: State, process: Process, work?: Work): State => {
    const { [process]: _, ...others } = state.work
    return { ...state, work: work === undefined ? others : { ...others, [process]: work } }
  }

  const signIssue = ({ ledger, payments, received }: State, at: number): string | undefined => {
    const earlier = payments.slice(0, at).filter((one, index) => one.isSent === true && !received.includes(index))
    if (earlier.some(({ landedIn }) => landedIn !== undefined)) return "paid again, and the first content is missing"
    return earlier.some(({ expires = 0 }) => ledger < expires) ? "signed while the first may still land" : undefined
  }

  /** The agent's call at an idle process. */
  const call = (state: State, process: Process): State | undefined => {
    const at = state.payments.findLastIndex((one) => undelivered.includes(one.state))
    const found = state.payments[at]
    if (found === undefined)
      return state.payments.length < paymentsMax
        ? working(state, process, { phase: "read", at: state.payments.length })
        : undefined
    if (found.hasContent === true && (found.state === "spent" || found.state === "acknowledged"))
      return working(state, process, { phase: "writing", at })
    return found.isStored === true ? working(state, process, { phase: "stored", at }) : undefined
  }

  /** A payment that was answered: the ledger decides, as the node shows it. */
  const verified = (state: State, process: Process, { answer, at }: Work, latest: number): State => {
    const kept =
      answer === "content" && undelivered.includes(state.payments[at]!.state)
        ? changed(state, at, { hasContent: true })
        : state
    const payment = kept.payments[at]!
    const fate = fateAt(payment, latest)
    if (answer === "refusal" && !has("a refusal by the seller releases nothing"))
      return working(moved(kept, at, "released") ?? kept, process)
    if (fate === "spent") {
      const spent = moved(kept, at, "spent") ?? kept
      return working(spent, process, payment.hasContent === true ? { phase: "writing", at } : undefined)
    }
    return working(moved(kept, at, fate === "dead" ? "released" : "unknown") ?? kept, process)
  }

  const workSteps = function* (state: State, process: Process, work: Work): Iterable<Step<State>> {
    const { at, phase } = work
    const did = `${process}: ${phase} ${at}`
    if (phase === "read") {
      const isChanged = state.payments.length !== at && has("a reservation counts the payments before it")
      const own = state.payments.length
      yield isChanged || own >= paymentsMax
        ? { did: `${did}, others have paid`, to: working(state, process) }
        : {
            did: `${did}, reserves`,
            to: working({ ...state, payments: [...state.payments, { state: "reserved" }] }, process, {
              phase: "reserved",
              at: own
            })
          }
    }
    if (phase === "reserved") {
      const to = moved(state, at, "signed", { expires: state.ledger + lifeLedgers })
      yield { did, to: working(to ?? state, process, to === undefined ? undefined : { phase: "authorized", at }) }
    }
    if (phase === "authorized") {
      const mayStore = undelivered.includes(state.payments[at]!.state)
      const isStored = mayStore || !has("a payment is stored before it is sent")
      const to =
        mayStore && has("a payment is stored before it is sent") ? changed(state, at, { isStored: true }) : state
      yield { did, to: working(to, process, isStored ? { phase: "stored", at } : undefined) }
    }
    if (phase === "stored") {
      const issue = signIssue(state, at)
      const to = changed(state, at, { isSent: true })
      for (const answer of ["content", "refusal", undefined] as const)
        yield {
          did: `${did}, answered ${answer}`,
          to: working(to, process, { phase: "answered", at, ...(answer && { answer }) }),
          broken: issue
        }
    }
    if (phase === "answered")
      for (const lag of [0, 1])
        yield { did: `${did}, lag ${lag}`, to: verified(state, process, work, state.ledger - lag) }
    if (phase === "writing") {
      const written = has("the host acknowledges by its next request") ? state : (moved(state, at, "settled") ?? state)
      const received = [...new Set([...state.received, at])].toSorted()
      yield { did: `${did}, arrives`, to: working({ ...written, received }, process) }
      yield { did: `${did}, is lost`, to: working(written, process) }
    }
    yield { did: `${process} dies`, to: working(state, process) }
  }

  const holdSteps = function* (state: State): Iterable<Step<State>> {
    const { hold, ...rest } = state
    if (hold === undefined) {
      for (const [at, one] of state.payments.entries())
        if (isOpen(one as Reservation))
          yield { did: `a turn reads ${at}`, to: { ...state, hold: { at, state: one.state } } }
      return
    }
    const payment = state.payments[hold.at]!
    const isSame = payment.state === hold.state || !has("a hold moves only from the state that was read")
    if (hold.state === "reserved") {
      const to = isSame ? moved(rest, hold.at, "released") : undefined
      yield { did: `a turn releases ${hold.at}`, to: to ?? rest }
      return
    }
    for (const lag of [0, 1]) {
      const fate = fateAt(payment, state.ledger - lag)
      const to = fate === "alive" ? undefined : moved(rest, hold.at, fate === "spent" ? "spent" : "released")
      yield { did: `a turn finds ${hold.at} ${fate}`, to: to ?? rest }
    }
  }

  const stepsOf = function* (state: State): Iterable<Step<State>> {
    for (const process of processes) {
      const work = state.work[process]
      if (work !== undefined) yield* workSteps(state, process, work)
      else if (state.received.length === 0) {
        const to = call(state, process)
        if (to !== undefined) yield { did: `a call at ${process}`, to }
      }
    }
    yield* holdSteps(state)
    for (const [at, one] of state.payments.entries()) {
      const { expires = 0, isSent, landedIn } = one
      const ledger = state.ledger + 1
      if (isSent === true && landedIn === undefined && ledger <= expires)
        yield { did: `${at} lands`, to: changed({ ...state, ledger }, at, { landedIn: ledger }) }
      const acknowledged = state.received.includes(at) ? moved(state, at, "acknowledged") : undefined
      if (acknowledged !== undefined) yield { did: `the host asks again after ${at}`, to: acknowledged }
      const settled = one.state === "acknowledged" ? moved(state, at, "settled") : undefined
      if (settled !== undefined) yield { did: `the replay window of ${at} ends`, to: settled }
    }
    if (state.ledger < ledgersMax) yield { did: "a ledger closes", to: { ...state, ledger: state.ledger + 1 } }
  }

  const issueOf = ({ hold, ledger, payments, received, work }: State): string | undefined => {
    const isQuiet = hold === undefined && Object.keys(work).length === 0
    for (const [at, one] of payments.entries()) {
      const isEnded = one.state === "acknowledged" || one.state === "settled"
      if (one.landedIn !== undefined && one.state === "released") return `${at} moved, and its amount is released`
      if (one.landedIn !== undefined && isEnded && !received.includes(at))
        return `${at} is ${one.state}, and the host has no content`
      const isLate = one.expires !== undefined && ledger > one.expires
      if (one.isSent === true && one.isStored !== true && isQuiet && undelivered.includes(one.state))
        return `${at} was sent, and no process has it`
      if (isQuiet && isLate && isOpen(one as Reservation) && fateAt(one, ledger) === "alive")
        return `${at} is held for ever`
    }
    return undefined
  }

  return visit<State>({ ledger: 1, payments: [], work: {}, received: [] }, stepsOf, issueOf)
}

export const toolContent: Model = { name: "the content of a tool's paid call", rules, explore }
