// A model small enough to be explored completely: one or two settlements of one nonce, a ledger that includes the sent
// transactions or does not, strangers that use the nonce or the channel, a transaction of ours with a lost record, and
// a follower that polls nodes which lag, lose and deny hashes. The deciding code is the product's own. Every possible
// next step is a successor; nothing is random.
//
// Nodes may be behind, have no hash, not answer, or search no ledger. They may not report another state of an account,
// a nonce or a ledger's transactions than the ledger's own, as of the ledger that they name. If a lost transaction of
// ours lands at all, it lands while the settlement is open.
import { Option } from "effect"
import type { ExecutedTransaction } from "../../kernel/ledger/Executed.ts"
import type {
  Attempt,
  DecideOptions,
  Decision,
  Evidence,
  Landed,
  OpenSettlement,
  Outcome,
  Search
} from "../../kernel/settlement/state/Settlement.ts"

/** The ledger in which everything is recorded. */
const born = 1_000
/** The previous sequence number of a settlement's channel. */
const numberBefore = 6n
/** Maximum of an inclusion bid. */
export const ceilingStroops = 10_000

/** The answer to a submission, and whether the attempt may land. */
interface Sent {
  readonly status: NonNullable<Attempt["sentStatus"]>
  readonly code?: string
  readonly flies: boolean
}

export interface Bounds {
  /** Last ledger of each settlement's authorization, after the record's. */
  readonly lives: ReadonlyArray<number>
  /** Ledgers after the record's that close under bad conditions. */
  readonly ledgers: number
  /** Maximum attempts. */
  readonly attempts: number
  /** True: explore a journaled no-op from the start, as well as none. */
  readonly cancels: boolean
  /** Maximum number of strangers' actions in total. */
  readonly strangers: number
  readonly ghost: boolean
  readonly answers: ReadonlyArray<Sent>
  /** Maximum number of times that a settlement is built again on another channel. */
  readonly rebuilds: number
  /** Others used the channels' numbers before the record, as after a database lost its last commits. */
  readonly stale: boolean
}

interface ModelAttempt {
  readonly kind: Attempt["kind"]
  readonly bidStroops: number
  readonly recordedLedger: number
  readonly sentLedger: number | undefined
  readonly status: Attempt["sentStatus"]
  readonly code: string | undefined
  readonly taken: boolean
  /** True if it may be included. */
  readonly flies: boolean
}

/** The user of a channel's sequence number. */
interface NumberUse {
  readonly by: "paid" | "failed" | "cancel" | "stranger"
  readonly ledger: number
}

export interface Ended {
  readonly state: Outcome["state"]
  readonly reason: Outcome["reason"]
  readonly transaction: string | undefined
}

export interface ModelSettlement {
  /** How often it was built again. Earlier transactions can never land: `explore.ts` checks this for each rebuild. */
  readonly rebuilt: number
  /** The attempts on its current channel. */
  readonly attempts: ReadonlyArray<ModelAttempt>
  readonly number: NumberUse | undefined
  readonly held: boolean
  readonly ended: Ended | undefined
}

/** A use of the nonce. `by` is a settlement's index, the transaction with the lost record, or a stranger. */
interface NonceUse {
  readonly by: number | "ghost" | "stranger"
  readonly ledger: number
  readonly liveUntil: number
}

export interface State {
  readonly ledger: number
  readonly settlements: ReadonlyArray<ModelSettlement>
  readonly uses: ReadonlyArray<NonceUse>
  readonly ghostFlies: boolean
  readonly strangersLeft: number
}

export const initialStates = (bounds: Bounds): ReadonlyArray<State> => {
  const attempt = (kind: Attempt["kind"]): ModelAttempt => ({
    kind,
    bidStroops: kind === "cancel" ? ceilingStroops : 200,
    recordedLedger: born,
    sentLedger: undefined,
    status: undefined,
    code: undefined,
    taken: false,
    flies: false
  })
  const beginnings: ReadonlyArray<ReadonlyArray<ModelAttempt>> = [
    [attempt("payment")],
    ...(bounds.cancels
      ? [
          [
            { ...attempt("payment"), sentLedger: born, status: "Error" as const, code: "txMalformed", flies: true },
            attempt("cancel")
          ]
        ]
      : [])
  ]
  return beginnings.flatMap((attempts) =>
    (bounds.ghost ? [false, true] : [false]).map((ghostFlies) => ({
      ledger: born,
      settlements: bounds.lives.map(() => ({
        rebuilt: 0,
        attempts,
        number: bounds.stale ? ({ by: "stranger", ledger: born - 1 } as const) : undefined,
        held: true,
        ended: undefined
      })),
      uses: [],
      ghostFlies,
      strangersLeft: bounds.strangers
    }))
  )
}

export const expiresOf = (bounds: Bounds, index: number): number => born + bounds.lives[index]!

/** A rebuilt settlement is another transaction, and only one of them moved money. */
const hashOf = (index: number, kind: Attempt["kind"]): string => `${kind}-${index}`

/** Whether the settlement's money may still move. */
export const canStillMove = (state: State, index: number, bounds: Bounds): boolean => {
  const { attempts, number } = state.settlements[index]!
  return (
    number === undefined &&
    state.ledger < expiresOf(bounds, index) &&
    attempts.some(({ flies, kind }) => flies && kind === "payment")
  )
}

/** The live use of the nonce as of a ledger. */
export const useAt = ({ uses }: State, ledger: number): NonceUse | undefined =>
  uses.findLast((use) => use.ledger <= ledger && ledger <= use.liveUntil)

/** The transaction that moved the settlement's money, if one did. */
export const movedBy = ({ uses }: State, index: number): string | undefined => {
  const use = uses.find(({ by }) => by === index || (by === "ghost" && index === 0))
  return use === undefined ? undefined : use.by === "ghost" ? "ghost" : hashOf(index, "payment")
}

const executed = (innerHash: string, ledger: number, succeeded: boolean): ExecutedTransaction => ({
  ledger,
  closedAtSeconds: 0,
  innerHash,
  outerHash: innerHash,
  feeChargedStroops: 100n,
  succeeded,
  transfers: Option.none()
})

/** The settlement's own transaction that is on the ledger. */
const landedOf = (state: State, index: number): Landed | undefined => {
  const { number } = state.settlements[index]!
  if (number === undefined || number.by === "stranger") return undefined
  const kind = number.by === "cancel" ? "cancel" : "payment"
  const isPaid = number.by === "paid"
  return {
    kind,
    executed: executed(hashOf(index, kind), number.ledger, isPaid || kind === "cancel"),
    amountTransferred: isPaid ? 10n : undefined
  }
}

/** The product's view of a settlement. */
const openOf = (state: State, index: number, bounds: Bounds): OpenSettlement => {
  const { attempts, held } = state.settlements[index]!
  return {
    innerHash: hashOf(index, "payment"),
    channelSequence: numberBefore + 1n,
    channelHeld: held,
    authorizationExpiresLedger: expiresOf(bounds, index),
    recordedLedger: born,
    attempts: attempts.map(({ bidStroops, code, kind, recordedLedger, sentLedger, status, taken }, at) => ({
      number: at + 1,
      kind,
      innerHash: hashOf(index, kind),
      outerHash: `${hashOf(index, kind)} ${at}`,
      envelope: "",
      inclusionStroops: BigInt(bidStroops),
      recordedLedger,
      sentStatus: status,
      sentLedger,
      sentCode: code,
      taken
    }))
  }
}

/** The possible answers to one poll of the follower. */
interface Answers {
  readonly hash: "true" | "denied" | "denied by one behind"
  readonly snapshot: "none" | "new" | "old"
  readonly search: "none" | "whole"
}

const reads: ReadonlyArray<Answers> = (["true", "denied", "denied by one behind"] as const).flatMap((hash) =>
  (["none", "new", "old"] as const).flatMap((snapshot) =>
    (["none", "whole"] as const).map((search) => ({ hash, snapshot, search }))
  )
)
const truth: Answers = { hash: "true", snapshot: "new", search: "whole" }

export type Decide = (settlement: OpenSettlement, evidence: Evidence, options: DecideOptions) => Decision

/** How a search through ledgers attributes a use of the nonce. */
export type ReadUse = (by: NonceUse["by"], index: number) => "Ours" | "Elsewhere"
export const readUse: ReadUse = (by, index) => (by === index || (by === "ghost" && index === 0) ? "Ours" : "Elsewhere")

const snapshotOf = (state: State, index: number, ledger: number): NonNullable<Evidence["snapshot"]> => {
  const { number } = state.settlements[index]!
  return {
    ledger,
    sequence: number !== undefined && number.ledger <= ledger ? numberBefore + 1n : numberBefore,
    nonce: useAt(state, ledger)?.ledger ?? "unspent"
  }
}

const searchOf = (
  state: State,
  index: number,
  range: { fromLedger: number; toLedger: number; before: number },
  read: ReadUse,
  isWhole: boolean
): Search => {
  const inside = ({ ledger }: { readonly ledger: number }) =>
    isWhole && ledger >= range.fromLedger - range.before && ledger <= Math.min(range.toLedger, state.ledger)
  const uses = state.uses.filter(inside)
  const ours = uses.find(({ by }) => read(by, index) === "Ours")
  const { number } = state.settlements[index]!
  return {
    fromLedger: range.fromLedger,
    toLedger: isWhole ? Math.min(range.toLedger, state.ledger) : range.fromLedger - 1,
    spending:
      ours !== undefined
        ? {
            _tag: "Ours",
            executed: executed(ours.by === "ghost" ? "ghost" : hashOf(ours.by as number, "payment"), ours.ledger, true),
            amountTransferred: 10n
          }
        : uses.length > 0
          ? { _tag: "Elsewhere", ledger: uses[0]!.ledger, transaction: String(uses[0]!.by), isOurs: false }
          : undefined,
    numberUsedBy: number === undefined || !inside(number) ? undefined : (landedOf(state, index) ?? "elsewhere")
  }
}

export interface Read {
  readonly decision: Decision
  readonly evidence: Evidence
}

export interface Product {
  readonly decide: Decide
  readonly readUse: ReadUse
}

/** The follower's decision after a poll; it asks in the same order as the product. */
const readWith = (state: State, index: number, bounds: Bounds, answers: Answers, product: Product): Read => {
  const settlement = openOf(state, index, bounds)
  const options = {
    inclusionStroopsMax: BigInt(ceilingStroops),
    canSign: settlement.attempts.length < bounds.attempts,
    canRebuild: state.settlements[index]!.rebuilt < bounds.rebuilds
  }
  const landed = answers.hash === "true" ? landedOf(state, index) : undefined
  const latestLedger = answers.hash === "denied by one behind" ? state.ledger - 1 : state.ledger
  const seen: Evidence["seen"] =
    landed === undefined ? { _tag: "Absent", latestLedger } : { _tag: "Included", landed, latestLedger }
  let evidence: Evidence = { seen, snapshot: undefined, search: undefined }
  let decision = product.decide(settlement, evidence, options)
  if (decision._tag === "ReadSnapshot" && answers.snapshot !== "none") {
    const ledger = answers.snapshot === "old" ? Math.max(born, state.ledger - 2) : state.ledger
    evidence = { ...evidence, snapshot: snapshotOf(state, index, ledger) }
    decision = product.decide(settlement, evidence, options)
  }
  if (decision._tag === "Search") {
    const search = searchOf(state, index, decision, product.readUse, answers.search === "whole")
    evidence = { ...evidence, search }
    decision = product.decide(settlement, evidence, options)
  }
  return { decision, evidence }
}

const withSettlement = (state: State, index: number, changes: Partial<ModelSettlement>): State => ({
  ...state,
  settlements: state.settlements.map((one, at) => (at === index ? { ...one, ...changes } : one))
})

const send = (state: State, index: number, at: number, { code, flies, status }: Sent): State => {
  const { attempts } = state.settlements[index]!
  const isTaken = status === "Pending" || status === "Duplicate" || status === "Lost"
  return withSettlement(state, index, {
    attempts: attempts.map((one, other) =>
      other === at
        ? { ...one, sentLedger: state.ledger, status, code, taken: one.taken || isTaken, flies: one.flies || flies }
        : one
    )
  })
}

/** The possible results of a decision. */
const carryOut = (
  state: State,
  index: number,
  decision: Decision,
  answers: ReadonlyArray<Sent>
): ReadonlyArray<State> => {
  const { attempts } = state.settlements[index]!
  switch (decision._tag) {
    case "End": {
      const { reason, state: end, transaction } = decision.outcome
      return [withSettlement(state, index, { ended: { state: end, reason, transaction }, held: false })]
    }
    case "Free":
      return [withSettlement(state, index, { held: false })]
    case "Resend":
      return answers.map((answer) => send(state, index, decision.attempt.number - 1, answer))
    case "Bid":
    case "Cancel": {
      const attempt: ModelAttempt = {
        kind: decision._tag === "Bid" ? "payment" : "cancel",
        bidStroops: decision._tag === "Bid" ? Number(decision.inclusionStroops) : ceilingStroops,
        recordedLedger: state.ledger,
        sentLedger: undefined,
        status: undefined,
        code: undefined,
        taken: false,
        flies: false
      }
      const added = withSettlement(state, index, { attempts: [...attempts, attempt] })
      // The process may die between record and send.
      return [added, ...answers.map((answer) => send(added, index, attempts.length, answer))]
    }
    case "Rebuild": {
      const { rebuilt } = state.settlements[index]!
      const attempt: ModelAttempt = {
        kind: "payment",
        bidStroops: attempts.findLast(({ kind }) => kind === "payment")!.bidStroops,
        recordedLedger: state.ledger,
        sentLedger: undefined,
        status: undefined,
        code: undefined,
        taken: false,
        flies: false
      }
      const anew = withSettlement(state, index, {
        rebuilt: rebuilt + 1,
        attempts: [attempt],
        number: undefined,
        held: true
      })
      // If no channel is free, only its own is released.
      return [
        withSettlement(state, index, { held: false }),
        anew,
        ...answers.map((answer) => send(anew, index, 0, answer))
      ]
    }
    default:
      return []
  }
}

/** A transaction that the next ledger may include. */
type Candidate = (state: State) => ReadonlyArray<State>

const candidatesOf = (state: State, bounds: Bounds): ReadonlyArray<Candidate> => {
  const found: Array<Candidate> = []
  state.settlements.forEach((settlement, index) => {
    const isIn = (kind: Attempt["kind"]) => settlement.attempts.some((one) => one.flies && one.kind === kind)
    if (settlement.number === undefined && state.ledger < expiresOf(bounds, index)) {
      if (isIn("payment")) found.push((at) => includePayment(at, index, bounds))
      if (isIn("cancel")) found.push((at) => useNumber(at, index, "cancel"))
    }
    if (settlement.number === undefined && state.strangersLeft > 0)
      found.push((at) => useNumber({ ...at, strangersLeft: at.strangersLeft - 1 }, index, "stranger"))
  })
  if (state.ghostFlies && state.settlements[0]!.ended === undefined && state.ledger < expiresOf(bounds, 0))
    found.push((at) =>
      useAt(at, at.ledger) === undefined ? [use({ ...at, ghostFlies: false }, "ghost", expiresOf(bounds, 0))] : []
    )
  if (state.strangersLeft > 0) {
    const spent = { ...state, strangersLeft: state.strangersLeft - 1 }
    // Authorizations of the same nonce with a shorter and a longer life.
    for (const life of [1, 20])
      found.push((at) =>
        useAt(at, at.ledger) === undefined
          ? [use({ ...at, strangersLeft: spent.strangersLeft }, "stranger", at.ledger + life)]
          : []
      )
  }
  return found
}

const use = (state: State, by: NonceUse["by"], liveUntil: number): State => ({
  ...state,
  uses: [...state.uses, { by, ledger: state.ledger, liveUntil }]
})

const useNumber = (state: State, index: number, by: NumberUse["by"]): ReadonlyArray<State> =>
  state.settlements[index]!.number === undefined
    ? [withSettlement(state, index, { number: { by, ledger: state.ledger } })]
    : []

/** It fails if the nonce is used; otherwise it may fail for other reasons. */
const includePayment = (state: State, index: number, bounds: Bounds): ReadonlyArray<State> => {
  if (state.settlements[index]!.number !== undefined) return []
  const failed = useNumber(state, index, "failed")
  if (useAt(state, state.ledger) !== undefined) return failed
  return [...failed, ...useNumber(use(state, index, expiresOf(bounds, index)), index, "paid")]
}

/** The next ledger includes nothing, one thing, or two in either order. */
const close = (state: State, bounds: Bounds): ReadonlyArray<State> => {
  const next = { ...state, ledger: state.ledger + 1 }
  const candidates = candidatesOf(state, bounds)
  const one = candidates.flatMap((first, at) =>
    first(next).flatMap((after) => [
      after,
      ...candidates.flatMap((second, other) => (other === at ? [] : second(after)))
    ])
  )
  return [next, ...one]
}

export interface Step {
  readonly from: State
  readonly to: State
  /** The follower's action, if this step is one. */
  readonly read?: Read & { readonly index: number }
}

/** All possible next steps. */
export const successors = (state: State, bounds: Bounds, product: Product): ReadonlyArray<Step> => {
  const steps: Array<Step> = []
  if (state.ledger < born + bounds.ledgers) for (const to of close(state, bounds)) steps.push({ from: state, to })
  state.settlements.forEach((settlement, index) => {
    if (settlement.ended !== undefined) return
    for (const answers of reads) {
      const read = readWith(state, index, bounds, answers, product)
      for (const to of carryOut(state, index, read.decision, bounds.answers))
        steps.push({ from: state, to, read: { ...read, index } })
    }
  })
  return steps
}

/**
 * The next step under calm conditions: each settlement is polled with true answers, then a ledger includes the
 * transactions in flight.
 */
export const calmStep = (state: State, bounds: Bounds, product: Product): State => {
  let at = state
  state.settlements.forEach((settlement, index) => {
    if (settlement.ended !== undefined) return
    const { decision } = readWith(at, index, bounds, truth, product)
    at = carryOut(at, index, decision, [{ status: "Pending", flies: true }]).at(-1) ?? at
  })
  at = { ...at, ledger: at.ledger + 1 }
  state.settlements.forEach((_, index) => {
    if (canStillMove({ ...at, ledger: at.ledger - 1 }, index, bounds))
      at = includePayment(at, index, bounds).at(-1) ?? at
  })
  return at
}
