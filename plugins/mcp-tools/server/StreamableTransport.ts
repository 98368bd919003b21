// The official transport of Streamable HTTP, extended to end the stream of a POST once no request of it is open. The
// SDK ends it with the last answer. A call that its client has cancelled gets no answer, so its stream would stay open
// as long as the session.
import { type JSONRPCMessage, WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/server"
import { answeredBy, cancelledBy, requestsIn } from "./messages.ts"
import type { RequestId } from "./rpcErrors.ts"

export class StreamableTransport extends WebStandardStreamableHTTPServerTransport {
  readonly #open = new Map<RequestId, Set<RequestId>>()

  /** Registers the messages of one POST before they are handled. */
  begin(messages: ReadonlyArray<JSONRPCMessage>): void {
    const open = new Set(requestsIn(messages))
    for (const id of open) this.#open.set(id, open)
  }

  /** Removes messages that were refused. */
  forget(messages: ReadonlyArray<JSONRPCMessage>): void {
    for (const id of requestsIn(messages)) this.#open.delete(id)
  }

  /** Ends the streams of the requests that these messages cancel, after the messages are handled. */
  cancel(messages: ReadonlyArray<JSONRPCMessage>): void {
    for (const message of messages) {
      const id = cancelledBy(message)
      if (id !== undefined) this.#end(id)
    }
  }

  override async send(...[message, options]: Parameters<WebStandardStreamableHTTPServerTransport["send"]>) {
    const id = answeredBy(message)
    try {
      await super.send(message, options)
    } finally {
      if (id !== undefined) this.#end(id)
    }
  }

  #end(id: RequestId): void {
    const open = this.#open.get(id)
    this.#open.delete(id)
    open?.delete(id)
    if (open?.size === 0) this.closeSSEStream(id)
  }
}
