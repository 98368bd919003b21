// `tollkeeper settlements`: lists settlements and refusals, and has the operator actions that resolve settlements
// without an outcome. It only needs the database.
import { Effect, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import type { OperatorActions } from "../../kernel/settlement/operators/OperatorActions.ts"
import { answer, jsonFlag, noted, placeFlags, reasonFlag } from "./CommandTarget.ts"
import { explain } from "./settlementsExplain.ts"
import { line, list, withMoves } from "./settlementsList.ts"

const settlement = Argument.String("settlement").pipe(
  Argument.withDescription("Settlement id, or the hash of any of its transactions")
)

const listHint = "`tollkeeper settlements list` shows those without an outcome"

const found = Effect.fnUntraced(function* (moves: OperatorActions["Service"], idOrHash: string) {
  const record = yield* moves.find(idOrHash)
  return record === undefined
    ? yield* Effect.fail({
        _tag: "NotFound",
        message: `no settlement has the id or hash ${idOrHash}; ${listHint}`
      } as const)
    : record
})

const show = Command.make("show", { ...placeFlags(), json: jsonFlag, settlement }, (flags) =>
  withMoves(flags, (moves) => Effect.flatMap(found(moves, flags.settlement), (record) => answer(true, record, [])))
).pipe(Command.withDescription("Print a settlement's stored record"))

const giveUp = Command.make("give-up", { ...placeFlags(), json: jsonFlag, settlement, reason: reasonFlag }, (flags) =>
  withMoves(flags, (moves) =>
    Effect.gen(function* () {
      const { id, state: old } = yield* found(moves, flags.settlement)
      const record = yield* noted({ action: "give-up", subject: id, reason: flags.reason })(
        moves.giveUp(id, flags.reason),
        ({ state }) => ({ before: old, after: state })
      )
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
    reason: reasonFlag,
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
        const { id, state: old } = yield* found(moves, flags.settlement)
        const finding = {
          state: flags.as,
          ledger: Option.getOrUndefined(flags.ledger),
          feeChargedStroops: BigInt(flags.feeStroops),
          note: flags.reason
        }
        const record = yield* noted({ action: `resolve as ${flags.as}`, subject: id, reason: flags.reason })(
          moves.resolve(id, finding),
          ({ state }) => ({ before: old, after: `${state}, ${flags.feeStroops} stroops charged` })
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
      Argument.withDescription("Hash of the transaction, as shown by the refusal and the audit")
    ),
    to: Flag.String("to").pipe(
      Flag.withDescription("Principal it was settled for: `key:` and the key's label, or `anonymous`")
    ),
    reason: reasonFlag
  },
  ({ reason, to, transaction, ...place }) =>
    withMoves(place, (moves) =>
      Effect.gen(function* () {
        const hash = transaction.toLowerCase()
        yield* noted({ action: `give to ${to}`, subject: hash, reason })(moves.give(hash, to, reason), () => ({
          after: to
        }))
        yield* answer(false, {}, [`${hash} is ${to}'s: it receives the outcome when it settles the same payment again`])
      })
    )
).pipe(Command.withDescription("Assign a settled payment whose record was lost in a restore to its principal"))

export const settlements = Command.make("settlements").pipe(
  Command.withDescription("Inspect payments and resolve settlements without an outcome"),
  Command.withSubcommands([list, show, explain, giveUp, resolve, give])
)
