// What SIGHUP and `tollkeeper keys reread` do in a process that serves: callers' and operators' keys are read again,
// and the secrets that sign webhooks. What is refused stays as it was, and does not keep the other from being read.
import { Context, Effect, Option } from "effect"
import type { SettingsRefused } from "../kernel/config/Settings.ts"
import { Keys } from "../kernel/http/Keys.ts"
import { SigningSecrets } from "../plugins/webhooks/plugin.ts"

type Reread = Effect.Effect<void, SettingsRefused>

const rereadOf = (found: Option.Option<{ readonly reread: Reread }>): Reread =>
  Option.match(found, { onNone: () => Effect.void, onSome: ({ reread }) => reread })

/** Reads both, as far as the process has them; fails with the first refusal. */
export const rereadSecrets = Effect.fnUntraced(function* (
  services: Context.Context<never>
): Effect.fn.Return<void, SettingsRefused> {
  const keys = yield* Effect.exit(rereadOf(Context.getOption(services, Keys)))
  const signing = yield* Effect.exit(rereadOf(Context.getOption(services, SigningSecrets)))
  yield* keys
  yield* signing
})
