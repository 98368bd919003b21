// Replaces a service in a test by the members that the test uses; the compiler checks them against the service.
import { type Context, Effect, Layer, type Types } from "effect"

type Members<S extends object> = Types.NoInfer<Partial<S>>

/** A service with only these members; the test must not use any other. */
export const layerTest = <I, S extends object>(key: Context.Key<I, S>, members: Members<S>): Layer.Layer<I> =>
  Layer.succeed(key, members as S)

/** The same for one effect. */
export const provideTest = <I, S extends object>(key: Context.Key<I, S>, members: Members<S>) =>
  Effect.provideService(key, members as S)
