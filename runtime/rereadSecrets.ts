// SIGHUP and `tollkeeper keys reread` in a serving process: callers' and operators' keys and the secrets that sign
// webhooks are read again, here and on every replica over the same database.
import { Context, Effect, Option } from "effect"
import type { SettingsRefused } from "../kernel/config/Settings.ts"
import { type AuditEntry, OperatorAuditLog } from "../kernel/settlement/operators/OperatorAuditLog.ts"
import {
  KeyRevisions,
  linesOf,
  type ReplicasBehind,
  type RereadOptions,
  type RereadReplica
} from "../kernel/accounts/KeyRevisions.ts"

/** The action comes first: a key that loses access must lose it even if the database accepts no row. */
const recordedReread = <E extends { readonly message: string }>(
  services: Context.Context<never>,
  reread: Effect.Effect<ReadonlyArray<RereadReplica>, E>,
  { by, subject }: { readonly subject: string; readonly by: Omit<AuditEntry, "action" | "subject"> }
) => {
  const append = (outcome: string, after?: string) =>
    Option.match(Context.getOption(services, OperatorAuditLog), {
      onNone: () => Effect.void,
      onSome: (log) =>
        Effect.catch(log.recordDone({ ...by, action: "reread", subject }, outcome, { after }), (error) =>
          Effect.logError("the reread of keys is not in the audit trail: the database does not answer", error)
        )
    })
  return reread.pipe(
    Effect.tapError(({ message }) => append(message)),
    Effect.tap((replicas) => append("done", linesOf(replicas).join("; ")))
  )
}

/** Each replica and its changes; none in a process without a database. */
export const rereadSecrets = (
  services: Context.Context<never>,
  options: RereadOptions,
  by: Omit<AuditEntry, "action" | "subject">
): Effect.Effect<ReadonlyArray<RereadReplica>, SettingsRefused | ReplicasBehind> =>
  Option.match(Context.getOption(services, KeyRevisions), {
    onNone: () => Effect.succeed([]),
    onSome: ({ reread }) => recordedReread(services, reread(options), { subject: options.part ?? "all", by })
  })
