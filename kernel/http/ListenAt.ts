// Where the process listens, when a plugin decides it: an agent tool server listens at an address of its own settings,
// or nowhere at all when it speaks over stdin and stdout. Otherwise the section `server` decides. One process has one
// listener. Whoever chooses also says what begins once every plugin stands. Whoever answers with streams that would
// never end by themselves hears here that the listener is about to close.
import { Context, Deferred, Effect, Layer } from "effect"

export interface ListenChoice {
  readonly at: { readonly host: string; readonly port: number } | "nowhere"
  /** Runs once every plugin stands, before the address is bound; a failure ends the start. */
  readonly begins: Effect.Effect<void, unknown>
  /**
   * Runs when the process is asked to stop, before the listener waits for what it has begun: ends streams that would
   * never end by themselves. Bounded by whoever gives it.
   */
  readonly closing: Effect.Effect<void>
}

export class ListenAt extends Context.Service<
  ListenAt,
  {
    /** The last word counts; a plugin that speaks twice means the second. */
    readonly choose: (choice: ListenChoice) => Effect.Effect<void>
    readonly chosen: Effect.Effect<ListenChoice | undefined>
    /** Ends when the process is asked to stop, before the listener waits for what it has begun. */
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
