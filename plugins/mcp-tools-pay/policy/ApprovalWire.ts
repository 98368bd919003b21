// Requests for approval and the log of decisions as text: one JSON file per request, one JSON object per log line.
// Amounts are decimal strings. A request contains text of a seller or an agent as inert, shortened data (`bought`). The
// log contains none of it except addresses and origins.
import { Schema } from "effect"

/** Description of the purchase for a person. */
export const Bought = Schema.Struct({
  title: Schema.String,
  /** The tool, or method and URL. */
  action: Schema.String,
  arguments: Schema.String,
  /** In the asset's units, with its symbol. */
  price: Schema.String,
  budget: Schema.String,
  /**
   * For a call from a payment channel: the amount that the payment may move, its destination, and the part that comes
   * back.
   */
  moves: Schema.optionalKey(Schema.String)
})
export type Bought = typeof Bought.Type

export const Approval = Schema.Struct({
  id: Schema.String,
  state: Schema.Literals(["pending", "approved", "denied", "used"]),
  agent: Schema.String,
  kind: Schema.Literals(["http", "mcp"]),
  origin: Schema.NullOr(Schema.String),
  asset: Schema.String,
  payTo: Schema.String,
  amount: Schema.String,
  rule: Schema.String,
  askedAtMillis: Schema.Int,
  /** Identifies this request to the client that asks; a later request for the same payment has another mark. */
  mark: Schema.String,
  /** Absent in requests that an earlier version wrote. */
  bought: Schema.optionalKey(Bought),
  /** Until this time only one call may ask the question. */
  askedUntilMillis: Schema.optionalKey(Schema.Int)
})
export type Approval = typeof Approval.Type

const Text = Schema.fromJsonString(Approval)

export const decodeApproval = Schema.decodeUnknownEffect(Text)
export const encodeApproval = (approval: Approval): string => JSON.stringify(approval)

export interface LoggedDecision extends Omit<
  Approval,
  "id" | "state" | "askedAtMillis" | "mark" | "bought" | "askedUntilMillis"
> {
  readonly at: string
  readonly session: string
  readonly ref: string
  readonly outcome: string
  readonly invocation: string
}

export const encodeDecision = (decision: LoggedDecision): string => `${JSON.stringify(decision)}\n`

/** An operator's decision on a request. */
export const ApprovalDecision = Schema.Struct({
  decision: Schema.Literals(["approve", "deny"]),
  /** Why, for the operators' audit trail. */
  reason: Schema.optionalKey(Schema.String.check(Schema.isMaxLength(500)))
})

export const stateOf = ({ decision }: typeof ApprovalDecision.Type) => (decision === "approve" ? "approved" : "denied")

/** As shown to an operator. */
export const encodeListed = ({ askedAtMillis, askedUntilMillis: _until, mark: _mark, ...shown }: Approval) => ({
  ...shown,
  askedAt: new Date(askedAtMillis).toISOString()
})
