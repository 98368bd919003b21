// The facts of settlements, birth and outcome, published in the transaction that made them true, and their decoding for
// readers of the journal. Writers and readers share these schemas. A fact of another kind, of a later version or of an
// unknown shape decodes to None: a reader skips it, since one bad row must never stop the others. Amounts and stroops
// are decimal text when written and `bigint` when read.
import { Option, Schema, SchemaGetter } from "effect"
import type { Fact, NewFact } from "../../facts/Facts.ts"
import type { Outcome } from "../state/Settlement.ts"
import type { Books, Correction, NewSettlement } from "./Settlements.ts"

/** Version of the following shapes. */
const version = 1

export const recordedType = "settlement.recorded"
/** Prefix of every type of a settlement's fact. */
export const settlementTypes = "settlement."

export type EndState = "settled" | "failed" | "expired" | "unresolved"

export const endedType = (state: EndState): string => `${settlementTypes}${state}`

/** A failed settlement with an authorization that was used later, in a transaction that did not pay it. */
const spentType = `${settlementTypes}spent`

/** Atomic units or stroops. */
const Units = Schema.String.check(Schema.isPattern(/^(0|[1-9][0-9]{0,38})$/)).pipe(
  Schema.decodeTo(Schema.BigInt, {
    decode: SchemaGetter.transform((text: string) => BigInt(text)),
    encode: SchemaGetter.transform((units: bigint) => units.toString())
  })
)
export const TransactionHash = Schema.String.check(Schema.isPattern(/^[0-9a-f]{64}$/))

/** A settlement was recorded: it is open, and nothing has been submitted yet. */
export const Recorded = Schema.Struct({
  /** Neutral spelling. */
  network: Schema.String,
  scheme: Schema.String,
  asset: Schema.String,
  payer: Schema.String,
  payTo: Schema.String,
  amountMax: Units,
  /** Intended amount. Version 1 facts carried only the maximum. */
  amount: Schema.optionalKey(Units),
  /** The instance that recorded it. */
  facilitator: Schema.optionalKey(Schema.String),
  transaction: TransactionHash,
  resourceUrl: Schema.NullOr(Schema.String),
  principal: Schema.optionalKey(Schema.String),
  /** Category for the seller's accounting if the transaction is not a direct payment to payTo. */
  books: Schema.optionalKey(Schema.Struct({ kind: Schema.String, sold: Units }))
})

/** A settlement ended; an operator may still end an unresolved one, with a second fact. */
const Ended = Schema.Struct({
  transaction: TransactionHash,
  /** Null if nothing moved, or if the transaction is older than the ledger's history. */
  moved: Schema.NullOr(Units),
  /**
   * The amount sold, if it differs from the `books` of its record: a claim includes channels that were claimed in
   * between.
   */
  sold: Schema.optionalKey(Units),
  feeChargedStroops: Units,
  ledger: Schema.NullOr(Schema.Int),
  reason: Schema.NullOr(Schema.String),
  /** The number of endpoints that showed it; absent in facts of earlier versions, and in an operator's. */
  confirmations: Schema.optionalKey(Schema.Literals([1, 2])),
  /** The state that a later use of the authorization corrected. */
  corrects: Schema.optionalKey(Schema.Literal("failed")),
  /** The transaction that used the authorization without paying; with `corrects`. */
  spentBy: Schema.optionalKey(TransactionHash),
  /** The operator that ended it, if the ledger did not. */
  by: Schema.optionalKey(Schema.Literal("operator"))
})

export type SettlementFact =
  | { readonly _tag: "Recorded"; readonly id: string; readonly at: Date; readonly data: typeof Recorded.Type }
  | {
      readonly _tag: "Ended"
      readonly id: string
      readonly at: Date
      readonly state: EndState
      readonly data: typeof Ended.Type
    }

export const recordedFact = (
  settlement: Pick<
    NewSettlement,
    "id" | "network" | "scheme" | "asset" | "payer" | "payTo" | "amount" | "innerHash" | "resourceUrl" | "principal"
  > & { readonly amountMax: bigint; readonly books?: Books | undefined },
  facilitator: string
): NewFact => ({
  type: recordedType,
  version,
  subject: settlement.id,
  principal: settlement.principal.owner,
  data: {
    network: settlement.network,
    scheme: settlement.scheme,
    asset: settlement.asset,
    payer: settlement.payer,
    payTo: settlement.payTo,
    amountMax: settlement.amountMax.toString(),
    amount: settlement.amount.toString(),
    facilitator,
    transaction: settlement.innerHash,
    resourceUrl: Option.getOrNull(settlement.resourceUrl),
    principal: settlement.principal.owner,
    ...(settlement.books === undefined
      ? {}
      : { books: { kind: settlement.books.kind, sold: settlement.books.sold.toString() } })
  } satisfies typeof Recorded.Encoded
})

export const endedFact = (
  settlement: { readonly id: string; readonly principal: string; readonly innerHash: string },
  outcome: Pick<
    Outcome,
    "state" | "amountTransferred" | "amountSold" | "confirmations" | "feeChargedStroops" | "ledger" | "reason"
  >,
  by?: "operator"
): NewFact => ({
  type: endedType(outcome.state),
  version,
  subject: settlement.id,
  principal: settlement.principal,
  data: {
    transaction: settlement.innerHash,
    moved: outcome.amountTransferred?.toString() ?? null,
    ...(outcome.amountSold === undefined ? {} : { sold: outcome.amountSold.toString() }),
    feeChargedStroops: outcome.feeChargedStroops.toString(),
    ledger: outcome.ledger ?? null,
    reason: outcome.reason ?? null,
    ...(outcome.confirmations === undefined ? {} : { confirmations: outcome.confirmations }),
    ...(by === undefined ? {} : { by })
  } satisfies typeof Ended.Encoded
})

/** The fact of a correction; the row gives its transaction and its fee. */
export const correctedFact = ({ confirmations, ledger, moved, reason, state, transaction }: Correction) => ({
  type: state === "settled" ? endedType("settled") : spentType,
  version,
  data: {
    moved: moved?.toString() ?? null,
    ledger: state === "settled" ? ledger : null,
    reason: reason ?? null,
    confirmations,
    corrects: "failed",
    ...(state === "settled" ? {} : { spentBy: transaction })
  } satisfies Omit<typeof Ended.Encoded, "transaction" | "feeChargedStroops">
})

const recorded = Schema.decodeUnknownOption(Recorded)
const ended = Schema.decodeUnknownOption(Ended)
const settlementId = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
const stateOf = new Map<string, EndState>([
  ...(["settled", "failed", "expired", "unresolved"] as const).map((state) => [endedType(state), state] as const),
  [spentType, "failed"]
])

/** Whether a fact is about a settlement's life, readable or not. */
export const isOfSettlement = ({ type }: Pick<Fact, "type">): boolean => type === recordedType || stateOf.has(type)

export const readSettlementFact = (fact: Fact): Option.Option<SettlementFact> => {
  const { at, data, subject: id } = fact
  if (fact.version !== version || !settlementId.test(id)) return Option.none()
  if (fact.type === recordedType) return Option.map(recorded(data), (data) => ({ _tag: "Recorded", id, at, data }))
  const state = stateOf.get(fact.type)
  return state === undefined
    ? Option.none()
    : Option.map(ended(data), (data) => ({ _tag: "Ended", id, at, state, data }))
}
