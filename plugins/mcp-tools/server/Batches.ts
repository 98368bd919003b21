// Collects the answers to a batch on a transport that sends message by message: they are sent together, as one array,
// once every request of the batch is answered or cancelled. Other messages are sent unchanged.
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

  /** The message or array to send; undefined while its batch is incomplete. */
  answer(message: JSONRPCMessage): Sent | undefined {
    const id = answeredBy(message)
    const batch = id === undefined ? undefined : this.#of.get(id)
    if (batch === undefined) return message
    batch.answers.push(message)
    return this.cancel(id!)
  }

  /** Removes a request that will not be answered. The remaining answers of its batch may be complete then. */
  cancel(id: RequestId): Sent | undefined {
    const batch = this.#of.get(id)
    this.#of.delete(id)
    batch?.open.delete(id)
    return batch !== undefined && batch.open.size === 0 && batch.answers.length > 0 ? batch.answers : undefined
  }
}
