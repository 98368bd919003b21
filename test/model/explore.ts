// Visits every reachable state of the model once, breadth first, so that the first history that breaks an invariant is
// a shortest one. Invariants are checked against the model's truth, never against the product's view.
import { unresolvedAfterLedgers } from "../../kernel/settlement/state/decide.ts"
import {
  type Bounds,
  calmStep,
  canStillMove,
  ceilingStroops,
  expiresOf,
  initialStates,
  movedBy,
  type Product,
  type State,
  type Step,
  successors,
  useAt
} from "./model.ts"

export interface Explored {
  readonly states: number
  readonly transitions: number
  /** A shortest history that breaks an invariant, with that invariant. */
  readonly broken: { readonly what: string; readonly history: ReadonlyArray<string> } | undefined
}

const keyOf = (state: State): string => JSON.stringify(state)

/** Checks that an end is true. */
const endViolation = ({ read, to }: Step, bounds: Bounds): string | undefined => {
  if (read === undefined || read.decision._tag !== "End") return undefined
  const { index } = read
  const { message, reason, state, transaction } = read.decision.outcome
  const mover = movedBy(to, index)
  if (state === "settled" && mover === undefined) return "settled, and no money moved"
  if (state === "settled" && transaction !== mover) return `settled by ${transaction}, and ${mover} moved the money`
  const known = Math.max(read.evidence.snapshot?.ledger ?? to.ledger, read.decision.outcome.ledger ?? 0)
  // If a lost transaction lands after the answer that ends a settlement, the product cannot see it. It also does not
  // search for it once the nonce's entry has expired with the authorization and the settlement's own transaction never
  // landed: that would mean reading every ledger of its life for each payment that expires.
  const ghost = to.uses.find(({ by }) => by === "ghost")
  const isForgotten =
    mover === "ghost" && (ghost!.ledger > known || (state === "expired" && known > expiresOf(bounds, index)))
  if (state !== "settled" && mover !== undefined && state !== "unresolved" && !isForgotten)
    return `${state}, and ${mover} moved the money`
  if ((state === "failed" || state === "expired") && canStillMove(to, index, bounds))
    return `${state}, and its envelope may still land`
  if (message?.includes("lives until") === true && useAt(to, known) !== undefined)
    return "it is said that the authorization lives, and it is spent"
  if (reason === "settle_ledger_authorization_spent" && to.uses.length === 0) return "called spent, and it is not"
  if (
    reason === "settle_ledger_authorization_spent" &&
    !to.uses.some(({ by }) => message?.includes(` ${by}, `) === true)
  )
    return `"${message}" names no transaction that used the authorization`
  if (message?.includes("never used") === true && to.uses.some(({ ledger }) => ledger <= expiresOf(bounds, index)))
    return "called never used, and it was"
  const others = to.settlements.filter((_, other) => other !== index)
  if (transaction !== undefined && others.some(({ ended }) => ended?.transaction === transaction))
    return `ended by ${transaction}, which has ended another settlement`
  return undefined
}

/** A settlement may be built again only if none of its transactions has moved money or can still do so. */
const rebuildViolation = ({ from, read }: Step, bounds: Bounds): string | undefined => {
  if (read === undefined) return undefined
  const { decision, index } = read
  if (decision._tag !== "Rebuild") return undefined
  if (canStillMove(from, index, bounds)) return "built again, and its envelope may still land"
  if (from.uses.some(({ by, ledger }) => by === index && ledger <= decision.ledger))
    return "built again, and it has been paid"
  return undefined
}

/** An outcome must report the truth to the channel. */
const channelViolation = ({ read, to }: Step): string | undefined => {
  if (read === undefined || read.decision._tag !== "End") return undefined
  const reported = read.decision.outcome.channel
  const { number } = to.settlements[read.index]!
  if (reported?.sequenceUsed === true && number === undefined) return "its number is called used, and it is not"
  if (reported?.sequenceUsed === false && number !== undefined && number.ledger <= reported.ledger)
    return "its number is called unused, and it is used"
  return undefined
}

/** A channel may be given to another settlement only if nothing of this one can land on it. */
const holdViolation = ({ read, to }: Step, bounds: Bounds): string | undefined =>
  read !== undefined && !to.settlements[read.index]!.held && canStillMove(to, read.index, bounds)
    ? "its channel is free, and its envelope may still land"
    : undefined

const bidViolation = ({ read }: Step): string | undefined =>
  read?.decision._tag === "Bid" && read.decision.inclusionStroops > BigInt(ceilingStroops)
    ? "a bid above the ceiling"
    : undefined

const violationOf = (step: Step, bounds: Bounds): string | undefined =>
  rebuildViolation(step, bounds) ??
  endViolation(step, bounds) ??
  channelViolation(step) ??
  holdViolation(step, bounds) ??
  bidViolation(step)

/** Ledgers under calm conditions after which the product must have found out everything that it can. */
const calmLedgers = 12

/** Whether a state ends under calm conditions; caches the results of the states on the way. */
const makeCalm = (bounds: Bounds, product: Product) => {
  const known = new Map<string, string | undefined>()
  const isOver = ({ settlements }: State) => settlements.every(({ ended }) => ended !== undefined)
  return (start: State): string | undefined => {
    const met: Array<string> = []
    let state = start
    let violation: string | undefined
    for (let ledgers = 0; ; ledgers++) {
      if (isOver(state)) break
      const key = keyOf(state)
      if (known.has(key)) {
        violation = known.get(key)
        break
      }
      met.push(key)
      if (ledgers === calmLedgers) state = { ...state, ledger: state.ledger + unresolvedAfterLedgers }
      if (ledgers > calmLedgers + 3) {
        violation = "it never ends, though conditions are calm"
        break
      }
      state = calmStep(state, bounds, product)
    }
    // If a stranger used the number after the expiry, there is no proof any more that it was free until then.
    const unknowable = ({ number }: State["settlements"][number], index: number) =>
      number?.by === "stranger" && number.ledger > expiresOf(bounds, index)
    violation ??= state.settlements.some((one, index) => one.ended?.state === "unresolved" && !unknowable(one, index))
      ? "it is left to an operator, though everything can be known"
      : undefined
    for (const key of met) known.set(key, violation)
    return violation
  }
}

const didOf = ({ read }: Step): string =>
  read === undefined ? "a ledger closes" : `settlement ${read.index}: ${read.decision._tag}`

const notified = (did: string, to: State): string => {
  const open = to.settlements.map(({ ended, number }) => `${ended?.state ?? "open"}, number ${number?.by ?? "unused"}`)
  const uses = to.uses.map(({ by, ledger }) => `nonce used by ${by} in ${ledger}`).join(", ")
  return `${did} → ledger ${to.ledger}; ${open.join("; ")}; ${uses}`
}

export const explore = (bounds: Bounds, product: Product): Explored => {
  const calm = makeCalm(bounds, product)
  const from = new Map<string, { readonly before: string | undefined; readonly did: string }>()
  let frontier: Array<readonly [string, State]> = []
  let transitions = 0
  const historyOf = (key: string | undefined): ReadonlyArray<string> => {
    const steps: Array<string> = []
    for (let at = key; at !== undefined; at = from.get(at)?.before)
      steps.unshift(notified(from.get(at)!.did, JSON.parse(at) as State))
    return steps
  }
  for (const state of initialStates(bounds)) {
    const key = keyOf(state)
    from.set(key, { before: undefined, did: "recorded" })
    frontier.push([key, state])
  }
  while (frontier.length > 0) {
    const next: typeof frontier = []
    for (const [before, state] of frontier) {
      for (const step of successors(state, bounds, product)) {
        transitions += 1
        const key = keyOf(step.to)
        const violation = violationOf(step, bounds)
        if (violation === undefined && from.has(key)) continue
        const what = violation ?? calm(step.to)
        if (what !== undefined)
          return {
            states: from.size,
            transitions,
            broken: { what, history: [...historyOf(before), notified(didOf(step), step.to)] }
          }
        from.set(key, { before, did: didOf(step) })
        next.push([key, step.to])
      }
    }
    frontier = next
  }
  return { states: from.size, transitions, broken: undefined }
}
