// Picks the named services to be provided to a later caller, and none of the others in the current context: every call
// copies what is merged over its own, and carries it from then on.
import { Context, Effect } from "effect"

/** The services of these keys; a reference without a value stays unset. */
export const pickServices = <const Keys extends ReadonlyArray<Context.Key<any, any>>>(
  ...keys: Keys
): Effect.Effect<
  Context.Context<Context.Service.Identifier<Keys[number]>>,
  never,
  Context.Service.Identifier<Keys[number]>
> => Effect.map(Effect.context<Context.Service.Identifier<Keys[number]>>(), Context.pick(...keys))
