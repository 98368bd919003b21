// The Crypto port's service as a plain value, for tests without effects.
import { Effect } from "effect"
import { Crypto } from "../../kernel/platform/Crypto.ts"
import { layer } from "../../runtime/platform/nodeCrypto.ts"

export const engineCrypto: Crypto["Service"] = Effect.runSync(
  Effect.gen(function* () {
    return yield* Crypto
  }).pipe(Effect.provide(layer))
)
