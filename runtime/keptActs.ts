// Records a command's action in the state folder, because no database can record it.
import { Context, Effect, Option } from "effect"
import { Host } from "../kernel/platform/Host.ts"
import { keepAct } from "../kernel/settlement/operators/keptActs.ts"
import type { AuditChange, AuditEntry } from "../kernel/settlement/operators/OperatorAuditLog.ts"
import { byPerson, Within } from "./commands/CommandTarget.ts"

/** Uses the serving process's folder if that process runs the command. */
export const kept =
  (state: string, entry: Omit<AuditEntry, "person" | "via">) =>
  <A, E extends { readonly message: string }, R>(act: Effect.Effect<A, E, R>, changed?: (result: A) => AuditChange) =>
    Effect.gen(function* () {
      const within = yield* Within
      const host = within === undefined ? Option.none() : Context.getOption(within.services, Host)
      const folder = Option.isSome(host) ? host.value.stateFolder : state
      return yield* keepAct(folder, { ...(yield* byPerson), ...entry })(act, changed)
    })
