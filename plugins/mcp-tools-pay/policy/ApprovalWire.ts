// Requests for approval and the log of decisions as text: one JSON file per request, one JSON object per log line.
// Amounts are decimal strings. Text of a seller or an agent is in a request as inert, shortened data (`bought`), and
// not in the log, except addresses and origins.
import { Schema } from "effect"

/** What is bought, as a person is shown it. */
export const Bought = Schema.Struct({
  title: Schema.String,
  /** The tool, or method and URL. */
  action: Schema.String,
  arguments: Schema.String,
  /** In the asset's units, with its symbol. */
  price: Schema.String,
  budget: Schema.String,
  /** Of a call from a payment channel: what the payment may move, to where, and what of it comes back. */
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
  /** Names this request to the client that is asked; another request for the same payment has another. */
  mark: Schema.String,
  /** Absent in requests that an earlier version wrote. */
  bought: Schema.optionalKey(Bought),
  /** Until when one call has the question to itself. */
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

/** What an operator sends about one. */
export const ApprovalDecision = Schema.Struct({ decision: Schema.Literals(["approve", "deny"]) })

export const stateOf = ({ decision }: typeof ApprovalDecision.Type) => (decision === "approve" ? "approved" : "denied")

/** As an operator is shown it. */
export const encodeListed = ({ askedAtMillis, askedUntilMillis: _until, mark: _mark, ...shown }: Approval) => ({
  ...shown,
  askedAt: new Date(askedAtMillis).toISOString()
})
