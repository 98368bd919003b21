// `tollkeeper reset`: deletes the local state: the database, the embedded ledger and the development keys. It only
// works in a folder with our mark, deletes only our own files, and only while no process uses the folder. It asks for
// confirmation: by a prompt on a terminal, elsewhere by `--yes`.
import { Effect } from "effect"
import { Command, Flag, Prompt } from "effect/cli"
import process from "node:process"
import { isForPeople } from "../logging.ts"
import { leaveBeside } from "../../kernel/settlement/operators/keptActs.ts"
import { answer, jsonFlag, kept, stateFlag, whyFlag } from "./CommandTarget.ts"
import { carryOutReset, planReset, StateRefused } from "../state.ts"

const confirmed = Effect.fnUntraced(function* (folder: string, what: string) {
  if (isForPeople(process.stdin) && isForPeople(process.stdout)) {
    return yield* Prompt.run(Prompt.Confirm({ message: `Delete ${what} in ${folder}?`, initial: false }))
  }
  return yield* new StateRefused({ message: `reset deletes ${what} in ${folder}; confirm with --yes` })
})

export const reset = Command.make(
  "reset",
  {
    state: stateFlag,
    json: jsonFlag,
    reason: whyFlag,
    yes: Flag.Boolean("yes").pipe(
      Flag.withAlias("y"),
      Flag.withDescription("Delete without asking; default false"),
      Flag.withDefault(false)
    )
  },
  Effect.fn(function* ({ json, reason, state, yes }) {
    const plan = yield* planReset(state)
    if (plan === undefined) return yield* answer(json, { deleted: false }, [`there is no ${state}; nothing to delete`])
    const what = "database, ledger and development keys"
    if (!yes && !(yield* confirmed(state, what)))
      return yield* answer(json, { deleted: false }, ["nothing was deleted"])
    yield* kept(state, { action: "reset", subject: state, reason })(carryOutReset(state, plan))
    yield* leaveBeside(state)
    yield* answer(json, { deleted: true, kept: plan.foreign }, [
      plan.foreign.length === 0
        ? `deleted ${state}: ${what}`
        : `deleted ${what} in ${state}; kept files that are not Tollkeeper's: ${plan.foreign.join(", ")}`
    ])
  })
).pipe(Command.withDescription("Delete the local state: database, embedded ledger and development keys"))
