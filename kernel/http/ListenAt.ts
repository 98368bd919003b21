// Where the process listens, when a plugin decides it: an agent tool server listens at an address of its own settings,
// or nowhere at all when it speaks over stdin and stdout. Otherwise the section `server` decides. One process has one
// listener. Whoever answers with streams that would never end by themselves hears here that the listener is about to
// close.
import { Context, Deferred, Effect, Layer } from "effect"

export interface ListenAddress {
  readonly host: string
  readonly port: number
  /**
   * Runs when the process is asked to stop, before the listener waits for what it has begun: ends streams that would
   * never end by themselves. Bounded by whoever gives it.
   */
  readonly closing: Effect.Effect<void>
}

export type ListenChoice = ListenAddress | "nowhere"

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
