// Requests for approval in the tool servers' PostgreSQL, shared by replicas: requested at one replica, decided
// anywhere, paid at any. Each step is one statement, so if two replicas claim a request, one of them gets it. Ages use
// the database's clock. So a replica with a fast clock does not drop another replica's request, and a replica with a
// slow clock does not accept an expired approval.
import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { as, columns, json, moment, nullable, optional, type Row, text } from "../../../kernel/database/table.ts"
import { BudgetUnavailable } from "../budget/BudgetStore.ts"
import { type ApprovalStore, leftMillis, pendingMax, pendingPerAgentMax, usedMillis } from "./ApprovalStore.ts"
import type { Approval, Bought } from "./ApprovalWire.ts"

const approvals = columns({
  id: text,
  state: as<Approval["state"]>(text),
  agent: text,
  kind: as<Approval["kind"]>(text),
  origin: nullable(text),
  asset: text,
  payTo: text,
  amount: { ...text, cast: "text" },
  rule: text,
  askedAt: moment,
  mark: text,
  bought: optional(as<Bought>(json)),
  askedUntil: optional(moment)
})

const toApproval = (row: Row): Approval => {
  const { askedAt, askedUntil, bought, ...stored } = approvals.decode(row)
  return {
    ...stored,
    askedAtMillis: askedAt.getTime(),
    ...(bought === undefined ? {} : { bought }),
    ...(askedUntil === undefined ? {} : { askedUntilMillis: askedUntil.getTime() })
  }
}

const guarded = <A>(effect: Effect.Effect<A, SqlError.SqlError>) =>
  Effect.mapError(effect, (cause) => new BudgetUnavailable({ cause }))

const isOne = <E>(statement: Effect.Effect<ReadonlyArray<unknown>, E>) =>
  Effect.map(statement, (rows) => rows.length === 1)

export const approvalRows = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const since = (maxAgeMillis: number) => sql`now() - ${maxAgeMillis}::float8 * interval '1 millisecond'`

  /** Retention: a request as long as it may be decided and used, a used one as long as identical calls may share it. */
  const isKept = (maxAgeMillis: number) =>
    sql`(asked_at >= ${since(maxAgeMillis)} and (state <> 'used' or asked_at >= ${since(usedMillis)}))`

  const ask = Effect.fnUntraced(function* (one: Approval, maxAgeMillis: number) {
    const bought = one.bought === undefined ? null : JSON.stringify(one.bought)
    yield* sql`delete from mcp_tools_approvals where not ${isKept(maxAgeMillis)}`
    yield* sql`insert into mcp_tools_approvals as kept
      (id, state, agent, kind, origin, asset, pay_to, amount, rule, asked_at, mark, bought)
      select ${one.id}, ${one.state}, ${one.agent}, ${one.kind}, ${one.origin}, ${one.asset}, ${one.payTo},
        ${one.amount}::numeric, ${one.rule}, now(), ${one.mark}, ${bought}::jsonb
      where (select count(*) < ${pendingMax} and count(*) filter (where agent = ${one.agent}) < ${pendingPerAgentMax}
        from mcp_tools_approvals where state <> 'used')
      on conflict (id) do update set (state, asked_at, mark, bought, asked_until, rule, agent) =
        (excluded.state, excluded.asked_at, excluded.mark, excluded.bought, null, excluded.rule, excluded.agent)
        where kept.state = 'used' and excluded.state = 'approved'`
    return (yield* sql`select 1 from mcp_tools_approvals where id = ${one.id}`).length === 1
  })

  const store: ApprovalStore = {
    all: (maxAgeMillis) =>
      guarded(
        Effect.map(
          sql`select ${sql.literal(approvals.selected)} from mcp_tools_approvals
            where asked_at >= ${since(maxAgeMillis)} and state <> 'used' order by asked_at limit ${pendingMax}`,
          (rows) => rows.map(toApproval)
        )
      ),
    find: (id, maxAgeMillis) =>
      guarded(
        Effect.map(
          sql`select ${sql.literal(approvals.selected)} from mcp_tools_approvals
            where id = ${id} and ${isKept(maxAgeMillis)}`,
          ([row]) => (row === undefined ? undefined : toApproval(row))
        )
      ),
    ask: (approval, maxAgeMillis) => guarded(ask(approval, maxAgeMillis)),
    claim: (id, forMillis, maxAgeMillis) =>
      guarded(
        isOne(sql`update mcp_tools_approvals
          set asked_until = now() + ${forMillis}::float8 * interval '1 millisecond'
          where id = ${id} and state = 'pending' and asked_at >= ${since(maxAgeMillis)}
            and (asked_until is null or asked_until <= now()) returning id`)
      ),
    leave: (id, maxAgeMillis) =>
      guarded(
        isOne(sql`update mcp_tools_approvals
          set asked_until = asked_at + ${maxAgeMillis + leftMillis}::float8 * interval '1 millisecond'
          where id = ${id} and state = 'pending' and asked_at >= ${since(maxAgeMillis)} returning id`)
      ),
    take: (id) =>
      Effect.orElseSucceed(
        isOne(sql`update mcp_tools_approvals set state = 'used', asked_at = now()
          where id = ${id} and state = 'approved' returning id`),
        () => false
      ),
    decide: (id, state, maxAgeMillis) =>
      guarded(
        isOne(sql`update mcp_tools_approvals set state = ${state}, asked_at = now()
          where id = ${id} and state = 'pending' and asked_at >= ${since(maxAgeMillis)} returning id`)
      )
  }
  return store
})
