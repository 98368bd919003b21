// The listen address, if a plugin chooses it: an agent tool server listens at an address from its own settings, or on
// no port if it serves stdin and stdout. Otherwise the section `server` decides. A process has one listener. The
// chooser may also pass a step that runs once every plugin is built. A route with endless streams registers here to end
// them before the listener closes.
import { Context, Deferred, Effect, Layer } from "effect"

export interface ListenChoice {
  readonly at: { readonly host: string; readonly port: number } | "nowhere"
  /** Origins of pages that may read its answers, in lower case; default none. */
  readonly allowedOrigins?: ReadonlyArray<string>
  /** Runs once every plugin is built, before the address is bound; a failure ends the start. */
  readonly begins: Effect.Effect<void, unknown>
  /**
   * Runs when the process is asked to stop, before the listener waits for requests in flight: ends endless streams. Its
   * provider bounds it in time.
   */
  readonly closing: Effect.Effect<void>
}

export class ListenAt extends Context.Service<
  ListenAt,
  {
    /** The last call wins. */
    readonly choose: (choice: ListenChoice) => Effect.Effect<void>
    readonly chosen: Effect.Effect<ListenChoice | undefined>
    /** Ends when the process is asked to stop, before the listener waits for requests in flight. */
    readonly closing: Effect.Effect<void>
    readonly close: Effect.Effect<void>
  }
>()("tollkeeper/http/ListenAt") {
  static readonly layer = Layer.sync(ListenAt, () => {
    let chosen: ListenChoice | undefined
    const closed = Deferred.makeUnsafe<void>()
    return ListenAt.of({
      choose: (choice) => Effect.sync(() => void (chosen = choice)),
      chosen: Effect.sync(() => chosen),
      closing: Deferred.await(closed),
      close: Effect.asVoid(Deferred.succeed(closed, undefined))
    })
  })
}
