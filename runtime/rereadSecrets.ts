// SIGHUP and `tollkeeper keys reread` in a serving process: rereads callers' and operators' keys, and the secrets that
// sign webhooks. A refused part stays unchanged, and does not keep the other from being reread.
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
