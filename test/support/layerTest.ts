// Services that a test replaces: by the members that it uses, which the compiler compares with the service.
import { type Context, Effect, Layer, type Types } from "effect"

type Members<S extends object> = Types.NoInfer<Partial<S>>

/** A service of these members; the others are undefined, and nothing of the test may use them. */
export const layerTest = <I, S extends object>(key: Context.Key<I, S>, members: Members<S>): Layer.Layer<I> =>
  Layer.succeed(key, members as S)

/** The same for one effect. */
export const provideTest = <I, S extends object>(key: Context.Key<I, S>, members: Members<S>) =>
  Effect.provideService(key, members as S)
