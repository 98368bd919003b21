// `tollkeeper settlements`: lists settlements without an end, and the operator actions that resolve them. It works on
// the database alone.
import { Effect, Layer, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { Budget } from "../../kernel/budget/Budget.ts"
import { Limits } from "../../kernel/config/Limits.ts"
import { Network } from "../../kernel/config/Network.ts"
import { Server } from "../../kernel/config/Server.ts"
import { OperatorActions } from "../../kernel/settlement/operators/OperatorActions.ts"
import type { SettlementRecord } from "../../kernel/settlement/store/Settlements.ts"
import * as SqlSettlements from "../../kernel/settlement/store/SqlSettlements.ts"
import { explain } from "./settlementsExplain.ts"
import {
  answer,
  jsonFlag,
  kernelTables,
  noted,
  type CommandTarget,
  placeFlags,
  databaseStatus
} from "./CommandTarget.ts"

const settlement = Argument.String("settlement").pipe(
  Argument.withDescription("Its id, or the hash of any of its transactions")
)
const note = Flag.String("note").pipe(Flag.withDescription("Reason, kept in the audit log"))

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
const withMoves = <A, E>(place: CommandTarget, use: (moves: OperatorActions["Service"]) => Effect.Effect<A, E>) =>
  Effect.provide(Effect.flatMap(OperatorActions, use), movesAt(place))

const line = ({
  amount,
  asset,
  authorizationExpiresLedger,
  id,
  innerHash,
  recordedAt,
  state
}: SettlementRecord): string =>
  [
    id,
    state.padEnd(10),
    recordedAt.toISOString(),
    `until ledger ${authorizationExpiresLedger}`,
    `${amount} of ${asset}`,
    innerHash
  ].join("  ")

const listHint = "`tollkeeper settlements list` names those without an end"

const found = Effect.fnUntraced(function* (moves: OperatorActions["Service"], idOrHash: string) {
  const record = yield* moves.find(idOrHash)
  return record === undefined
    ? yield* Effect.fail({
        _tag: "NotFound",
        message: `no settlement has the id or hash ${idOrHash}; ${listHint}`
      } as const)
    : record
})

const list = Command.make(
  "list",
  {
    ...placeFlags(),
    json: jsonFlag,
    which: Flag.Literals("which", ["open", "unresolved", "all"]).pipe(
      Flag.withDescription("State of the settlements to list"),
      Flag.withDefault("all" as const)
    )
  },
  (flags) =>
    withMoves(flags, (moves) =>
      Effect.gen(function* () {
        const records = yield* moves.list(flags.which)
        const count = `${records.length} settlement${records.length === 1 ? "" : "s"} without an end`
        yield* answer(flags.json, records, [...records.map(line), count])
      })
    )
).pipe(Command.withDescription("List settlements that are open or unresolved"))

const show = Command.make("show", { ...placeFlags(), json: jsonFlag, settlement }, (flags) =>
  withMoves(flags, (moves) => Effect.flatMap(found(moves, flags.settlement), (record) => answer(true, record, [])))
).pipe(Command.withDescription("Print a settlement's stored record"))

const giveUp = Command.make("give-up", { ...placeFlags(), json: jsonFlag, settlement, note }, (flags) =>
  withMoves(flags, (moves) =>
    Effect.gen(function* () {
      const { id } = yield* found(moves, flags.settlement)
      const record = yield* noted({ action: "give-up", subject: id, note: flags.note })(moves.giveUp(id, flags.note))
      yield* answer(flags.json, record, [line(record)])
    })
  )
).pipe(Command.withDescription("Mark an open settlement as unresolved, when the ledger can never decide it"))

const resolve = Command.make(
  "resolve",
  {
    ...placeFlags(),
    json: jsonFlag,
    settlement,
    note,
    as: Flag.Literals("as", ["settled", "failed", "expired"]).pipe(Flag.withDescription("Its outcome")),
    ledger: Flag.Int("ledger").pipe(Flag.withDescription("The ledger in which it landed"), Flag.optional),
    feeStroops: Flag.Int("fee-stroops").pipe(
      Flag.withDescription("Fee that the ledger charged the sponsor"),
      Flag.withDefault(0)
    )
  },
  (flags) =>
    withMoves(flags, (moves) =>
      Effect.gen(function* () {
        const { id } = yield* found(moves, flags.settlement)
        const finding = {
          state: flags.as,
          ledger: Option.getOrUndefined(flags.ledger),
          feeChargedStroops: BigInt(flags.feeStroops),
          note: flags.note
        }
        const record = yield* noted({ action: `resolve as ${flags.as}`, subject: id, note: flags.note })(
          moves.resolve(id, finding)
        )
        yield* answer(flags.json, record, [line(record)])
      })
    )
).pipe(Command.withDescription("Record the outcome of an unresolved settlement"))

const give = Command.make(
  "give",
  {
    ...placeFlags(),
    transaction: Argument.String("transaction").pipe(
      Argument.withDescription("Hash of the transaction, as the refusal and the audit name it")
    ),
    to: Flag.String("to").pipe(
      Flag.withDescription("Principal it was settled for: `key:` and the key's label, or `anonymous`")
    ),
    note
  },
  ({ note, to, transaction, ...place }) =>
    withMoves(place, (moves) =>
      Effect.gen(function* () {
        const hash = transaction.toLowerCase()
        yield* noted({ action: `give to ${to}`, subject: hash, note })(moves.give(hash, to, note))
        yield* answer(false, {}, [`${hash} is ${to}'s: it receives the outcome when it settles the same payment again`])
      })
    )
).pipe(Command.withDescription("Assign a settled payment whose record was lost in a restore to its principal"))

export const settlements = Command.make("settlements").pipe(
  Command.withDescription("Inspect payments and resolve settlements without an end, for operators"),
  Command.withSubcommands([list, show, explain, giveUp, resolve, give])
)
