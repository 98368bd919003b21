// Requests for approval in the PostgreSQL of the tool servers, shared by replicas: asked at one, decided anywhere, paid
// at whichever gets the call. Each step is one statement, so of two replicas that take a request one has it. How old a
// request is, the database's clock says: a replica whose own is ahead throws away nobody's request, and one that is
// behind honours no approval that has expired.
import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { BudgetUnavailable } from "../budget/BudgetStore.ts"
import { type ApprovalStore, pendingMax } from "./ApprovalStore.ts"
import type { Approval } from "./ApprovalWire.ts"

interface Row {
  readonly id: string
  readonly state: Approval["state"]
  readonly agent: string
  readonly kind: Approval["kind"]
  readonly origin: string | null
  readonly asset: string
  readonly pay_to: string
  readonly amount: string
  readonly rule: string
  readonly asked_at: Date
  readonly mark: string
}

const columns = "id, state, agent, kind, origin, asset, pay_to, amount::text as amount, rule, asked_at, mark"

const decode = ({ asked_at, pay_to, ...row }: Row): Approval => ({
  ...row,
  payTo: pay_to,
  askedAtMillis: asked_at.getTime()
})

export const approvalRows = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const guarded = <A>(effect: Effect.Effect<A, SqlError.SqlError>) =>
    Effect.mapError(effect, (cause) => new BudgetUnavailable({ cause }))
  const since = (maxAgeMillis: number) => sql`now() - ${maxAgeMillis}::float8 * interval '1 millisecond'`

  const ask = Effect.fnUntraced(function* (one: Approval, maxAgeMillis: number) {
    yield* sql`delete from mcp_tools_approvals where asked_at < ${since(maxAgeMillis)}`
    yield* sql`insert into mcp_tools_approvals
      (id, state, agent, kind, origin, asset, pay_to, amount, rule, asked_at, mark)
      select ${one.id}, ${one.state}, ${one.agent}, ${one.kind}, ${one.origin}, ${one.asset}, ${one.payTo},
        ${one.amount}::numeric, ${one.rule}, now(), ${one.mark}
      where (select count(*) from mcp_tools_approvals) < ${pendingMax}
      on conflict (id) do nothing`
    const kept = yield* sql`select 1 from mcp_tools_approvals where id = ${one.id}`
    return kept.length === 1
  })

  const store: ApprovalStore = {
    all: (maxAgeMillis) =>
      guarded(
        Effect.map(
          sql<Row>`select ${sql.literal(columns)} from mcp_tools_approvals where asked_at >= ${since(maxAgeMillis)}
            order by asked_at limit ${pendingMax}`,
          (rows) => rows.map(decode)
        )
      ),
    find: (id, maxAgeMillis) =>
      guarded(
        Effect.map(
          sql<Row>`select ${sql.literal(columns)} from mcp_tools_approvals
            where id = ${id} and asked_at >= ${since(maxAgeMillis)}`,
          ([row]) => (row === undefined ? undefined : decode(row))
        )
      ),
    ask: (approval, maxAgeMillis) => guarded(ask(approval, maxAgeMillis)),
    take: (id) =>
      Effect.match(sql`delete from mcp_tools_approvals where id = ${id} returning id`, {
        onFailure: () => false,
        onSuccess: (rows) => rows.length === 1
      }),
    decide: (id, state, maxAgeMillis) =>
      guarded(
        Effect.map(
          sql`update mcp_tools_approvals set state = ${state}, asked_at = now()
            where id = ${id} and state = 'pending' and asked_at >= ${since(maxAgeMillis)} returning id`,
          (rows) => rows.length === 1
        )
      )
  }
  return store
})
