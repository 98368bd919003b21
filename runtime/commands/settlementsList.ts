// `tollkeeper settlements list`: settlements by state, time, payer and reason, and refused payments. A refused payment
// never becomes a settlement; analytics counts refusals by reason and key, with samples.
import { Clock, Effect, Layer, Option, Schema } from "effect"
import { Command, Flag } from "effect/cli"
import { SqlClient } from "effect/sql"
import { Budget } from "../../kernel/budget/Budget.ts"
import { Limits } from "../../kernel/config/Limits.ts"
import { Network } from "../../kernel/config/Network.ts"
import { Server } from "../../kernel/config/Server.ts"
import { neutralReason } from "../../kernel/Dialect.ts"
import { OperatorActions } from "../../kernel/settlement/operators/OperatorActions.ts"
import type { SettlementRecord } from "../../kernel/settlement/store/Settlements.ts"
import * as SqlSettlements from "../../kernel/settlement/store/SqlSettlements.ts"
import { analyticsPlugin } from "./analytics.ts"
import {
  answer,
  type CommandTarget,
  databaseStatus,
  jsonFlag,
  kernelTables,
  placeFlags,
  tablesOf
} from "./CommandTarget.ts"
import { listableStates } from "../operatorWords.ts"
import { visibleLine } from "../visibleText.ts"

const movesAt = (place: CommandTarget) =>
  OperatorActions.layer.pipe(
    Layer.provideMerge(
      databaseStatus(
        SqlSettlements.layer.pipe(
          Layer.provideMerge(Budget.layer),
          Layer.provideMerge(Layer.mergeAll(Limits.layer, Server.layer, Network.layer)),
          Layer.provideMerge(kernelTables(place))
        )
      )
    )
  )

/** Runs an effect with the operator actions over the target's database. */
export const withMoves = <A, E>(
  place: CommandTarget,
  use: (moves: OperatorActions["Service"]) => Effect.Effect<A, E, SqlClient.SqlClient>
) => Effect.provide(Effect.flatMap(OperatorActions, use), movesAt(place))

export const line = ({
  amount,
  asset,
  authorizationExpiresLedger,
  id,
  innerHash,
  reason,
  recordedAt,
  state
}: SettlementRecord): string =>
  [
    id,
    state.padEnd(10),
    recordedAt.toISOString(),
    `until ledger ${authorizationExpiresLedger}`,
    `${amount} of ${asset}`,
    innerHash,
    ...Option.toArray(reason)
  ].join("  ")

const unitMillis = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const

/** An invalid time in `--since` or address in `--payer`, which would silently match nothing. */
class FilterRefused extends Schema.TaggedError<FilterRefused>()("FilterRefused", { message: Schema.String }) {}

const payerOf = (text: string) =>
  /^[CG][A-Z2-7]{55}$/u.test(text)
    ? Effect.succeed(text)
    : Effect.fail(new FilterRefused({ message: `--payer ${text}: expected an address, G… or C…` }))

/** A span before now such as `90m`, `24h` or `7d`, or an ISO 8601 date. */
const sinceOf = Effect.fnUntraced(function* (text: string) {
  const [, number, unit] = /^([1-9][0-9]{0,6})([smhd])$/u.exec(text) ?? []
  const now = yield* Clock.currentTimeMillis
  // The parser accepts other text as dates too: 5 is a day of 2001.
  const date = /^\d{4}-\d\d-\d\d(T\S+)?$/u.test(text) ? Date.parse(text) : Number.NaN
  const time = unit === undefined ? date : now - Number(number) * unitMillis[unit as keyof typeof unitMillis]
  return Number.isNaN(time)
    ? yield* new FilterRefused({
        message: `--since ${text}: expected a span such as 90m, 24h or 7d, or a date such as 2026-01-31T10:00Z`
      })
    : new Date(time)
})

const flags = {
  ...placeFlags(),
  json: jsonFlag,
  which: Flag.Literals("which", listableStates).pipe(
    Flag.withDescription("Which to list; all: those without an outcome; refused: payments without a settlement"),
    Flag.withDefault("all" as const)
  ),
  since: Flag.String("since").pipe(
    Flag.withDescription("Recorded since then: 90m, 24h, 7d, or a date; refusals are kept by UTC day"),
    Flag.optional
  ),
  payer: Flag.String("payer").pipe(Flag.withDescription("Only of this payer's address"), Flag.optional),
  reason: Flag.String("reason").pipe(Flag.withDescription("Only with this reason"), Flag.optional)
}

interface Asked {
  readonly json: boolean
  readonly since: Date | undefined
  readonly payer: string | undefined
  readonly reason: string | undefined
}

/** Groups refusals by reason and key, a line for each group, followed by a line for each sample. */
const listRefusals = Effect.fnUntraced(function* ({ json, payer, reason, since }: Asked) {
  const sql = yield* SqlClient.SqlClient
  const from = since === undefined ? sql`true` : sql`day >= ${since.toISOString().slice(0, 10)}::date`
  const { administration } = yield* analyticsPlugin
  const groups = yield* administration.readRefusals({ payer, reason }, from)
  const total = groups.reduce((sum, { refused }) => sum + refused, 0n)
  const lines = groups.flatMap((group) => [
    [
      `${group.refused} refused`.padEnd(14),
      group.operation.padEnd(6),
      group.reason,
      group.principal === "none" ? "without a listed key" : group.principal,
      `last ${group.last_at.toISOString()}`
    ].join("  "),
    ...group.samples.map((sample) =>
      visibleLine(
        [
          `    ${sample.at}`,
          ...(sample.payer === null ? [] : [`payer ${sample.payer}`]),
          ...(sample.amount === null ? [] : [`${sample.amount} of ${sample.asset}`]),
          ...(sample.resource_url === null ? [] : [JSON.stringify(sample.resource_url)]),
          ...(sample.transaction_hash === null ? [] : [sample.transaction_hash]),
          sample.message
        ].join("  ")
      )
    )
  ])
  const count = `${total} payment${total === 1n ? "" : "s"} refused, ${groups.length} by reason and key`
  yield* answer(json, groups, [...lines, count])
})

export const list = Command.make("list", flags, ({ json, payer, reason, since, which, ...place }) =>
  Effect.gen(function* () {
    const asked = {
      json,
      since: Option.getOrUndefined(yield* Effect.transposeOption(Option.map(since, sinceOf))),
      payer: Option.getOrUndefined(yield* Effect.transposeOption(Option.map(payer, payerOf))),
      reason: Option.getOrUndefined(Option.map(reason, neutralReason))
    }
    if (which === "refused") return yield* Effect.provide(listRefusals(asked), tablesOf(place, "analytics"))
    yield* withMoves(place, (moves) =>
      Effect.gen(function* () {
        const records = yield* moves.list({ which, ...asked })
        const kind = ["all", "open", "unresolved"].includes(which)
          ? "without an end"
          : which === "every"
            ? "in any state"
            : which
        const count = `${records.length} settlement${records.length === 1 ? "" : "s"} ${kind}`
        const hint =
          which === "all" ? ["ended ones: --which settled, failed or expired; refused payments: --which refused"] : []
        yield* answer(json, records, [...records.map(line), count, ...hint])
      })
    )
  })
).pipe(Command.withDescription("List settlements by state, time, payer and reason, and refused payments"))
