// HTTP to the addresses that an operator configured, as a port: questions of a kilobyte with answers of a few, many a
// second, over connections that stay open. The answer is read as one text within its bound; no redirect is followed. A
// connection that had been open before may have been closed by the other side in the same moment: a question that met
// that, and of which nothing was answered, is put once more on a new one. Addresses that a stranger named are not for
// this port but for `kernel/http/safeFetch.ts`.
import { Context, Data, type Effect } from "effect"

/** No answer: a timeout, a failed connection, or a body without an end. */
export class CallFailed extends Data.TaggedError("CallFailed")<{
  readonly reason: "timeout" | "unreachable" | "too long"
  /** The system's code of a connection that failed, such as ECONNREFUSED. */
  readonly code?: string | undefined
}> {}

export interface HttpCall {
  /** http or https. */
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  /** From the first packet to the last byte, a second connection included. */
  readonly timeoutMillis: number
  /** Maximum size of the answer's body, bytes, decompressed. */
  readonly bytesMax: number
}

export interface HttpAnswered {
  readonly status: number
  readonly retryAfter: string | undefined
  readonly body: string
}

export class HttpCalls extends Context.Service<
  HttpCalls,
  {
    readonly post: (call: HttpCall) => Effect.Effect<HttpAnswered, CallFailed>
  }
>()("tollkeeper/platform/HttpCalls") {}
