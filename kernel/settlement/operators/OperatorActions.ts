// Manual actions of an operator on settlements. A settlement that the ledger's history can no longer decide is
// `unresolved`: an operator who has found the outcome elsewhere records how it ended. A settlement that stays open (on
// a test network that was reset) is first given up, which makes it unresolved and frees its channel. Each action
// expects a certain state, is one transaction with its fact, and corrects the budget of the reservation's day. No
// action calls the ledger.
import { Context, Effect, Layer, Schema } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { Budget } from "../../budget/Budget.ts"
import { Network } from "../../config/Network.ts"
import { inTransaction } from "../../database/Database.ts"
import { Facts } from "../../facts/Facts.ts"
import { endedFact } from "../store/facts.ts"
import { recordColumns } from "../store/recordColumns.ts"
import { type FinalState, isOpen, type Outcome, type SettlementState } from "../state/Settlement.ts"
import { type SettlementRecord, Settlements } from "../store/Settlements.ts"
import { withSpanIfSampled } from "../../effect/withSpanIfSampled.ts"

/** An action that the settlement's state does not allow, or arguments that contradict each other. */
class ActionRefused extends Schema.TaggedError<ActionRefused>()("ActionRefused", { message: Schema.String }) {}

interface Finding {
  readonly state: FinalState
  /** The ledger that included it; for `settled` and `failed`. */
  readonly ledger: number | undefined
  /** The fee that the ledger charged the sponsor, stroops. */
  readonly feeChargedStroops: bigint
  /** The operator's reason; at most 500 characters. */
  readonly note: string
}

/** Owners: `key:` and a label, or the digits of a key without one; and all keyless callers. */
const ownerShape = /^(key:([a-z][a-z0-9-]{0,31}|[0-9a-f]{16})|anonymous)$/

const noteMax = 500
const listMax = 1_000

const reasons = {
  settled: undefined,
  failed: "settle_ledger_transaction_failed",
  expired: "settle_ledger_transaction_expired"
} as const satisfies Record<FinalState, Outcome["reason"]>

type Move = Effect.Effect<SettlementRecord, ActionRefused | SqlError.SqlError>

interface EndedRow {
  readonly day: string
  readonly principal: string
  readonly owner: string
  readonly keyed: boolean
  readonly shard: number
  readonly before: bigint
  readonly inner_hash: string
  readonly moved: string | null
}

/** Writes an operator's finding to an unresolved settlement; returns no row for any other. */
const endByHand = (sql: SqlClient.SqlClient, id: string, { feeChargedStroops, ledger, note, state }: Finding) =>
  sql<EndedRow>`update kernel_settlements as s set state = ${state}, resolved_at = clock_timestamp(),
      ended_by = ${ledger === undefined ? null : sql`s.inner_hash`}, ledger = ${ledger ?? null}::int8,
      moved = case when ${state === "settled"} then amount else null end,
      fee_charged_stroops = ${feeChargedStroops}::int8, reason = ${reasons[state] ?? null}, reason_message = ${note}
    from (select id, fee_charged_stroops from kernel_settlements where id::text = ${id} for update) as old
    where s.id = old.id and s.state = 'unresolved'
    returning s.budget_day::text as day, coalesce(s.budget_principal, s.principal) as principal,
      s.principal as owner, s.budget_keyed as keyed, s.budget_shard as shard, s.inner_hash,
      coalesce(old.fee_charged_stroops, 0) as before, s.moved::text as moved`

const refuse = (message: string) => new ActionRefused({ message })

/** States that a list selects; `all` are settlements without an end, `every` any. */
const listedStates = {
  open: ["prepared", "submitted"],
  unresolved: ["unresolved"],
  all: ["prepared", "submitted", "unresolved"],
  prepared: ["prepared"],
  submitted: ["submitted"],
  settled: ["settled"],
  failed: ["failed"],
  expired: ["expired"],
  ended: ["settled", "failed", "expired"],
  every: ["prepared", "submitted", "unresolved", "settled", "failed", "expired"]
} as const satisfies Record<string, ReadonlyArray<SettlementState>>

interface ListFilter {
  readonly which: keyof typeof listedStates
  /** Recorded at this time or later. */
  readonly since?: Date | undefined
  readonly payer?: string | undefined
  readonly reason?: string | undefined
}

/** Settlements without an end are sorted oldest first, others newest first. */
const list = (sql: SqlClient.SqlClient) =>
  Effect.fnUntraced(function* ({ payer, reason, since, which }: ListFilter) {
    const isUnended = listedStates[which].every((state) => isOpen(state) || state === "unresolved")
    const condition = sql.and([
      sql`state in ${sql.in(listedStates[which])}`,
      ...(since === undefined ? [] : [sql`recorded_at >= ${since}`]),
      ...(payer === undefined ? [] : [sql`payer = ${payer}`]),
      ...(reason === undefined ? [] : [sql`reason = ${reason}`])
    ])
    const rows = yield* sql`select ${sql.literal(recordColumns.selected)} from kernel_settlements
    where ${condition} order by recorded_at ${sql.literal(isUnended ? "asc" : "desc")} limit ${listMax}`
    return rows.map(recordColumns.decode)
  }, withSpanIfSampled("OperatorActions.list"))

const find = (sql: SqlClient.SqlClient) =>
  Effect.fnUntraced(function* (idOrHash: string) {
    const text = idOrHash.toLowerCase()
    const rows = yield* sql`select ${sql.literal(recordColumns.selected)} from kernel_settlements
    where id::text = ${text} or inner_hash = ${text} or ended_by = ${text}
    or id in (select settlement from kernel_rebuilds where inner_hash = ${text})
    or id in (select settlement from kernel_attempts where outer_hash = ${text} or inner_hash = ${text}) limit 1`
    return rows.map(recordColumns.decode)[0]
  }, withSpanIfSampled("OperatorActions.find"))

const moved = Effect.fnUntraced(function* (settlements: Settlements["Service"], id: string) {
  const [record] = yield* settlements.byIds([id])
  return record === undefined ? yield* refuse("there is no such settlement") : record
})

const checkNote = (note: string) =>
  note.length > noteMax || note.trim() === ""
    ? Effect.fail(refuse(`a note of 1 to ${noteMax} characters is required`))
    : Effect.void

const giveUp = (settlements: Settlements["Service"]) =>
  Effect.fnUntraced(function* (id: string, note: string) {
    yield* checkNote(note)
    const { authorizationExpiresLedger } = yield* moved(settlements, id)
    // It may have landed: its reservation stays charged until its outcome is known.
    const outcome: Outcome = {
      state: "unresolved",
      transaction: undefined,
      ledger: undefined,
      closedAtSeconds: undefined,
      amountTransferred: undefined,
      feeChargedStroops: 0n,
      feeUnknown: true,
      reason: undefined,
      message: note,
      // Until its bound the transaction may still land and use the sequence number.
      channel: { sequenceUsed: undefined, ledger: authorizationExpiresLedger }
    }
    const answer = yield* settlements.resolve(id, outcome)
    return answer._tag === "Resolved" ? answer.record : yield* refuse("only an open settlement can be given up")
  }, withSpanIfSampled("OperatorActions.giveUp"))

/** The row, the budget of its day and the fact, in the caller's transaction. */
const makeEndWithFact = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const budget = yield* Budget
  const facts = yield* Facts
  return Effect.fnUntraced(function* (id: string, finding: Finding) {
    const { feeChargedStroops, ledger, state } = finding
    const [row] = yield* endByHand(sql, id, finding)
    if (row === undefined)
      return yield* refuse("only an unresolved settlement can be resolved by hand; give an open one up first")
    yield* budget.commit({ ...row, stroops: 0n }, feeChargedStroops - row.before)
    yield* facts.publish(
      endedFact(
        { id, principal: row.owner, innerHash: row.inner_hash },
        {
          state,
          amountTransferred: row.moved === null ? undefined : BigInt(row.moved),
          feeChargedStroops,
          ledger,
          reason: reasons[state]
        },
        "operator"
      )
    )
  })
})

const makeResolve = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const settlements = yield* Settlements
  const endWithFact = yield* makeEndWithFact
  return Effect.fnUntraced(function* (id: string, finding: Finding) {
    const { feeChargedStroops, ledger, note, state } = finding
    yield* checkNote(note)
    if ((state === "expired") !== (ledger === undefined))
      return yield* refuse("give a ledger only for a settlement that landed")
    if (feeChargedStroops < 0n || (state === "expired" && feeChargedStroops !== 0n))
      return yield* refuse("give no fee for a settlement that never landed")
    yield* Effect.provideService(inTransaction(endWithFact(id, finding)), SqlClient.SqlClient, sql)
    return yield* moved(settlements, id)
  }, withSpanIfSampled("OperatorActions.resolve"))
})

/** If a transaction's settlement is stored, nothing is lost: its owner is recorded. */
const makeGive = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const network = yield* Network
  return Effect.fnUntraced(function* (transaction: string, principal: string, note: string) {
    yield* checkNote(note)
    if (!/^[0-9a-f]{64}$/.test(transaction)) return yield* refuse("a transaction's hash is 64 hexadecimal digits")
    if (!ownerShape.test(principal))
      return yield* refuse("an owner is `key:` and the key's label (or its 16 hexadecimal digits), or `anonymous`")
    if ((yield* find(sql)(transaction)) !== undefined)
      return yield* refuse("its settlement is stored, and has an owner")
    yield* sql`insert into kernel_lost_settlements as l (network, transaction, principal, note)
    values (${network.id}, ${transaction}, ${principal}, ${note})
    on conflict (network, transaction) do update set principal = excluded.principal, note = excluded.note,
      given_at = clock_timestamp()`
  }, withSpanIfSampled("OperatorActions.give"))
})

export class OperatorActions extends Context.Service<
  OperatorActions,
  {
    /**
     * At most 1000 settlements: without an end the oldest first, otherwise the newest. Scans: for a command, not a
     * route.
     */
    readonly list: (filter: ListFilter) => Effect.Effect<ReadonlyArray<SettlementRecord>, SqlError.SqlError>
    /** Finds a settlement by id or by any of its hashes. */
    readonly find: (idOrHash: string) => Effect.Effect<SettlementRecord | undefined, SqlError.SqlError>
    /**
     * Turns an open settlement into an unresolved one. Its channel's number is read again, once the bound has passed.
     */
    readonly giveUp: (id: string, note: string) => Move
    /** Ends an unresolved settlement with the operator's finding. */
    readonly resolve: (id: string, finding: Finding) => Move
    /**
     * Sets the owner of one of our transactions with a lost record, by its inner hash: it is adopted for that principal
     * when the same payment is sent again.
     */
    readonly give: (
      transaction: string,
      principal: string,
      note: string
    ) => Effect.Effect<void, ActionRefused | SqlError.SqlError>
  }
>()("tollkeeper/settlement/OperatorActions") {
  static readonly layer = Layer.effect(
    OperatorActions,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      return OperatorActions.of({
        list: list(sql),
        find: find(sql),
        giveUp: giveUp(yield* Settlements),
        resolve: yield* makeResolve,
        give: yield* makeGive
      })
    })
  )
}
