// Services to be put over those of whoever calls later: the named ones, and nothing of all else that there is when they
// are asked for. Every call copies what is put over its own, and carries it from then on.
import { Context, Effect } from "effect"

/** The services of these keys; a reference that nobody has set stays unset. */
export const pickServices = <const Keys extends ReadonlyArray<Context.Key<any, any>>>(
  ...keys: Keys
): Effect.Effect<
  Context.Context<Context.Service.Identifier<Keys[number]>>,
  never,
  Context.Service.Identifier<Keys[number]>
> => Effect.map(Effect.context<Context.Service.Identifier<Keys[number]>>(), Context.pick(...keys))
