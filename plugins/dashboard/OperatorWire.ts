// Data of the operator's pages, other than analytics, as Schemas that type the responses below /dashboard/v1 and
// describe them in /openapi.json. Counts, amounts and stroops are decimal text, times ISO 8601 UTC. No payer's or
// recipient's address is included, so nothing needs redaction.
import { Schema } from "effect"
import { limitNames } from "../../kernel/settlement/operators/LiveLimits.ts"
import { text, time, units, whole } from "../../kernel/http/wireSchema.ts"

const moment = time("UTC.")
const maybeMoment = Schema.NullOr(moment)
const stroops = units("Stroops.")

const Denomination = {
  asset: text("The token's contract."),
  asset_symbol: Schema.NullOr(Schema.String),
  asset_decimals: Schema.NullOr(Schema.Int)
}

export const WithoutEnd = Schema.Struct({
  id: Schema.String,
  state: text("`prepared`, `submitted` or `unresolved`."),
  recorded_at: moment,
  age_seconds: whole("Since it was recorded."),
  ...Denomination,
  amount: units("Atomic units that are meant to move."),
  transaction_hash: Schema.String,
  channel: Schema.String,
  expires_ledger: Schema.Int,
  principal: text("Principal that settled it."),
  reason: Schema.NullOr(Schema.String)
}).annotate({ identifier: "WithoutEnd" })

export const ChannelShown = Schema.Struct({
  number: Schema.Int,
  address: Schema.String,
  state: Schema.String,
  use: text("`idle`, `leased`, or the id of the settlement that holds it."),
  claimed: Schema.Boolean.annotate({ description: "Whether a running facilitator uses it." })
}).annotate({ identifier: "ChannelShown" })

const ActorShown = Schema.Struct({
  actor: Schema.String,
  state: Schema.String,
  restarts: Schema.Int,
  last_run_at: maybeMoment.annotate({ description: "When its last run ended; null without one." }),
  last_run_cause: Schema.NullOr(text("`start`, `timer` or `wake`.")),
  last_run_ms: Schema.NullOr(whole("How long its last run took.")),
  last_run_outcome: Schema.NullOr(text("`succeeded` or `failed`; the log has the cause of a failure."))
}).annotate({ identifier: "ActorShown" })

export const FacilitatorStatus = Schema.Struct({
  in_flight: Schema.Array(
    Schema.Struct({ ...Denomination, settlements: units("Open ones."), amount: units("Atomic units.") })
  ),
  pace: Schema.Struct({
    over: whole("Sample size: those that settled in the days of the public status."),
    since: time("UTC, the first of these days."),
    p50_ms: Schema.NullOr(Schema.Finite),
    p95_ms: Schema.NullOr(Schema.Finite)
  }).annotate({ description: "From request to settled: the figures of the public status." }),
  fees: Schema.Struct({
    day: text("UTC day."),
    charged_stroops: stroops,
    reserved_stroops: stroops,
    limit_stroops: stroops,
    limit_per_principal_stroops: stroops,
    principals: Schema.Array(
      Schema.Struct({ principal: Schema.String, charged_stroops: stroops, reserved_stroops: stroops })
    )
  }),
  sponsor: Schema.NullOr(
    Schema.Struct({
      balance_stroops: stroops,
      spendable_stroops: stroops,
      channels_usable: Schema.Int,
      channel_balance_least_stroops: Schema.NullOr(units("Stroops of the usable channel that has least."))
    })
  ).annotate({ description: "Null until it was read from the ledger." }),
  limits: Schema.Array(
    Schema.Struct({
      name: text("A setting below `limits` that changes without a restart."),
      principal: Schema.NullOr(text("`key:` and the label, for a key's own limit.")),
      value: Schema.String,
      is_set: Schema.Boolean.annotate({ description: "By an operator, not by the settings." })
    })
  ),
  channels_required: Schema.Int,
  channels: Schema.Array(ChannelShown),
  storage: Schema.Struct({
    database_bytes: Schema.NullOr(units("Bytes, as of the last minute.")),
    disk: Schema.NullOr(
      Schema.Struct({
        free_bytes: units("Bytes."),
        reserve_bytes: units("Bytes below which no new payment is accepted.")
      })
    ).annotate({ description: "Under an embedded database; null for a server's, which is watched there." })
  }),
  without_end: Schema.Array(WithoutEnd),
  plugins: Schema.Array(
    Schema.Struct({ id: Schema.String, state: Schema.String, detail: Schema.NullOr(Schema.String) })
  ),
  actors: Schema.Array(ActorShown)
}).annotate({ identifier: "FacilitatorStanding" })

export const SettlementHistory = Schema.Struct({
  id: Schema.String,
  state: Schema.String,
  network: Schema.String,
  scheme: Schema.String,
  ...Denomination,
  amount: units("Atomic units that were meant to move."),
  moved: Schema.NullOr(units("Atomic units that moved.")),
  principal: Schema.String,
  payment_identifier: Schema.NullOr(text("As the caller sent it; null without one.")),
  resource_url: Schema.NullOr(Schema.String),
  transaction_hash: Schema.String,
  channel: Schema.String,
  asked_at: maybeMoment.annotate({ description: "When the settle request arrived; null if unknown." }),
  verified_at: maybeMoment.annotate({ description: "When the scheme had verified it." }),
  leased_at: maybeMoment.annotate({ description: "When a channel was leased." }),
  recorded_at: moment,
  recorded_ledger: Schema.Int,
  expires_ledger: Schema.Int,
  attempts: Schema.Array(
    Schema.Struct({
      number: Schema.Int,
      kind: Schema.String,
      outer_hash: Schema.String,
      bid_stroops: stroops,
      recorded_at: maybeMoment,
      recorded_ledger: Schema.Int,
      sent_at: maybeMoment,
      sent_status: Schema.NullOr(Schema.String),
      sent_ledger: Schema.NullOr(Schema.Int)
    })
  ),
  ledger: Schema.NullOr(Schema.Int),
  closed_at: maybeMoment,
  resolved_at: maybeMoment,
  delivered_at: maybeMoment,
  reserved_stroops: stroops,
  charged_stroops: Schema.NullOr(stroops),
  reason: Schema.NullOr(Schema.String),
  reason_message: Schema.NullOr(Schema.String),
  explorer_url: Schema.NullOr(text("The transaction in a public explorer; null for the embedded ledger."))
}).annotate({ identifier: "Life" })

export const MonthTotals = Schema.Struct({
  items: Schema.Array(
    Schema.Struct({
      month: text("UTC, `YYYY-MM`, by the ledger's close time."),
      key: text("The caller's principal."),
      asset: text("The symbol, or the contract of an asset that is not listed."),
      settled: whole("Settlements."),
      amount: text("What moved, decimal."),
      fees_xlm: text("What the ledger charged, decimal, failed settlements included.")
    })
  )
}).annotate({ identifier: "MonthTotals" })

const LimitAction = Schema.Struct({
  move: Schema.Literal("limit"),
  name: Schema.Literals(limitNames),
  key: Schema.optionalKey(text("The label of the key that it is for; absent: everyone.")),
  value: Schema.NullOr(Schema.String.check(Schema.isPattern(/^\d{1,18}$/))).annotate({
    description: "An integer in the limit's unit; null for the setting's value."
  }),
  note: text("Why.")
})

export const OperatorAction = Schema.Union([
  LimitAction,
  Schema.Struct({ move: Schema.Literal("give-up"), settlement: text("Its id."), note: text("Why.") }),
  Schema.Struct({ move: Schema.Literal("resize-channels"), count: Schema.Int, note: text("Why.") }),
  Schema.Struct({
    move: Schema.Literal("rotate"),
    what: Schema.Literals(["sponsor", "channels"]),
    plan: text("The id of the displayed plan: it is carried out only while the sources hold the same keys."),
    note: text("Why.")
  })
]).annotate({ identifier: "Move" })

const Signers = Schema.Struct({
  sponsor: text("The account that pays the fees."),
  former_sponsors: Schema.Array(text("Previous sponsors whose seeds are still in the sources.")),
  channels: Schema.Array(text("Channels in use, by number."))
})

const Rotation = Schema.Struct({
  what: Schema.Literals(["sponsor", "channels"]),
  plan: text("Names the keys that the sources hold; a move `rotate` carries it."),
  now: Signers,
  next: Signers,
  refused: Schema.NullOr(text("Why it would be refused, and what to do; null when it would be done."))
})

export const Rotations = Schema.Struct({ items: Schema.Array(Rotation) }).annotate({ identifier: "Rotations" })

export const OperatorActionsPage = Schema.Struct({
  items: Schema.Array(
    Schema.Struct({
      id: Schema.String,
      at: moment,
      by: text("The person: an operator's key label, or a user of the machine."),
      via: text("`page`, `api`, `command line` or `signal`."),
      move: Schema.String,
      subject: Schema.String,
      note: text("The reason."),
      before: Schema.NullOr(text("What it changed, before.")),
      after: Schema.NullOr(text("The same, after.")),
      outcome: text("`asked`, `done`, or why it was refused.")
    })
  )
}).annotate({ identifier: "Moves" })

export const SessionAsked = Schema.Struct({ key: text("A caller's or an operator's.") }).annotate({
  identifier: "SessionAsked"
})

const role = Schema.Literals(["operator", "caller", "nobody"])

export const SessionOpened = Schema.Struct({ role, principal: Schema.String }).annotate({ identifier: "SessionOpened" })

export const SessionClosed = Schema.Struct({ role: Schema.Literal("nobody") }).annotate({ identifier: "SessionClosed" })

export const SessionShown = Schema.Struct({
  role,
  principal: Schema.NullOr(Schema.String),
  until: maybeMoment,
  may_read: Schema.Boolean.annotate({ description: "Whether this browser may read analytics." }),
  may_operate: Schema.Boolean.annotate({ description: "Whether it may read operators' routes." }),
  may_move: Schema.Boolean.annotate({ description: "Whether it may run actions." }),
  keys_required: Schema.Boolean
}).annotate({ identifier: "Session" })
