// The answers to a batch on a transport that sends message by message: they are sent together, as one array, once every
// request of the batch is answered or cancelled. A message that answers no batch is sent as it is.
import type { JSONRPCMessage } from "@modelcontextprotocol/server"
import { answeredBy, requestsIn } from "./messages.ts"
import type { RequestId } from "./rpcErrors.ts"

interface Batch {
  readonly open: Set<RequestId>
  readonly answers: Array<JSONRPCMessage>
}

export type Sent = JSONRPCMessage | ReadonlyArray<JSONRPCMessage>

export class Batches {
  readonly #of = new Map<RequestId, Batch>()

  begin(messages: ReadonlyArray<JSONRPCMessage>): void {
    const batch: Batch = { open: new Set(requestsIn(messages)), answers: [] }
    for (const id of batch.open) this.#of.set(id, batch)
  }

  /** What is sent in place of a message; undefined while its batch is not whole. */
  answer(message: JSONRPCMessage): Sent | undefined {
    const id = answeredBy(message)
    const batch = id === undefined ? undefined : this.#of.get(id)
    if (batch === undefined) return message
    batch.answers.push(message)
    return this.cancel(id!)
  }

  /** A request is answered no more; what is left of its batch may be whole then. */
  cancel(id: RequestId): Sent | undefined {
    const batch = this.#of.get(id)
    this.#of.delete(id)
    batch?.open.delete(id)
    return batch !== undefined && batch.open.size === 0 && batch.answers.length > 0 ? batch.answers : undefined
  }
}
