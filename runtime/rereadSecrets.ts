// SIGHUP and `tollkeeper keys reread` in a serving process: callers' and operators' keys and the secrets that sign
// webhooks are read again, here and on every replica over the same database.
import { Context, Effect, Option } from "effect"
import type { SettingsRefused } from "../kernel/config/Settings.ts"
import {
  KeyRevisions,
  type ReplicasBehind,
  type RereadOptions,
  type RereadReplica
} from "../kernel/accounts/KeyRevisions.ts"

/** Each replica and its changes; none in a process without a database. */
export const rereadSecrets = (
  services: Context.Context<never>,
  options?: RereadOptions
): Effect.Effect<ReadonlyArray<RereadReplica>, SettingsRefused | ReplicasBehind> =>
  Option.match(Context.getOption(services, KeyRevisions), {
    onNone: () => Effect.succeed([]),
    onSome: ({ reread }) => reread(options)
  })
