// Extra listening sockets for plugins that serve something in addition to the facilitator's port, such as the embedded
// ledger's RPC. The runtime implements it; a listener closes with the Scope that opened it.
import { Context, type Effect, Schema, type Scope } from "effect"

/** A socket that failed to open; the cause has the system's error code. */
export class ListenFailed extends Schema.TaggedError<ListenFailed>()("ListenFailed", {
  host: Schema.String,
  port: Schema.Int,
  /** The setting of the port, for the operator's message. */
  setting: Schema.optionalKey(Schema.String),
  cause: Schema.Defect()
}) {
  override get message() {
    return `port ${this.port} of ${this.host} cannot be opened`
  }
}

export interface ListenOptions {
  readonly host: string
  /** 0 picks a free port. */
  readonly port: number
  /** Dotted path of the setting that chose the port, for the failure message. */
  readonly setting?: string
  /** PEM key and certificate; HTTPS if present. */
  readonly tls?: { readonly key: string; readonly cert: string }
  /** A request body longer than this is answered 413 and not read on. */
  readonly bodyBytesMax: number
}

export class Listeners extends Context.Service<
  Listeners,
  {
    /** Opens a socket and answers each request with `handle`. Succeeds with the port actually bound. */
    readonly open: (
      options: ListenOptions,
      handle: (request: Request) => Effect.Effect<Response>
    ) => Effect.Effect<{ readonly port: number }, ListenFailed, Scope.Scope>
  }
>()("tollkeeper/platform/Listeners") {}
