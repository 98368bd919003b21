// HTTP to addresses that an operator configured, as a port: requests of a kilobyte and answers of a few, many per
// second, over connections that stay open. The answer is read as one text within its bound; no redirect is followed.
// The other side may close an open connection at the same moment: a request that meets this, and has received no part
// of an answer, is sent once more on a new connection. Addresses from others do not go through this port but through
// `kernel/http/safeFetch.ts`.
import { Context, Data, type Effect } from "effect"

/** No answer: a timeout, a failed connection, or a body without an end. */
export class CallFailed extends Data.TaggedError("CallFailed")<{
  readonly reason: "timeout" | "unreachable" | "too long"
  /** The system's error code of a failed connection, such as ECONNREFUSED. */
  readonly code?: string | undefined
}> {}

export interface HttpCall {
  /** http or https. */
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  /** From the first packet to the last byte, including a second connection. */
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
