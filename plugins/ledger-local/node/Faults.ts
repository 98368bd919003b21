// Injected faults, for tests of clients: transactions that are dropped, delayed or refused; responses that fail, arrive
// late, stale or wrong, or are lost after the work was done. The ledger asks a fault at each injection point, and the
// fault decides from its input. `noFaults` injects nothing.
import type { Frame } from "../transaction/Frame.ts"
import type { TxErrorCode } from "../transaction/Wire.ts"

export type RpcFault =
  /** A JSON-RPC error in place of the answer. */
  | { readonly kind: "error"; readonly code: number; readonly message: string }
  /** An HTTP status without a JSON-RPC body. */
  | { readonly kind: "status"; readonly status: number }
  /** The work is done and its answer replaced by an HTTP 504. */
  | { readonly kind: "lost" }
  /** The answer comes after a while. */
  | { readonly kind: "late"; readonly millis: number }
  /** No answer; the connection stays open until the client times out. */
  | { readonly kind: "silent" }
  /** The answer of a node that is some ledgers behind. */
  | { readonly kind: "stale"; readonly ledgers: number }
  /** The true answer, changed. */
  | { readonly kind: "wrong"; readonly change: (result: unknown) => unknown }

export interface Faults {
  /** The status of a sent transaction instead of the true one: come again, or a result code. It is not queued. */
  readonly onSend: (frame: Frame) => "TRY_AGAIN_LATER" | TxErrorCode | undefined
  /**
   * True keeps a queued transaction out of the ledger being closed; if it stays true, the transaction ages out of the
   * queue.
   */
  readonly drops: (frame: Frame) => boolean
  /** Ledgers a queued transaction is held back. */
  readonly delayLedgers: (frame: Frame) => number
  readonly onRpc: (method: string, params: unknown) => RpcFault | undefined
}

export const noFaults: Faults = {
  onSend: () => undefined,
  drops: () => false,
  delayLedgers: () => 0,
  onRpc: () => undefined
}

/** Combines several faults; the first one that answers decides. */
export const combineFaults = (all: ReadonlyArray<Partial<Faults>>): Faults => ({
  onSend: (frame) => first(all, (faults) => faults.onSend?.(frame)),
  drops: (frame) => all.some((faults) => faults.drops?.(frame) === true),
  delayLedgers: (frame) => Math.max(0, ...all.map((faults) => faults.delayLedgers?.(frame) ?? 0)),
  onRpc: (method, params) => first(all, (faults) => faults.onRpc?.(method, params))
})

const first = <A, B>(all: ReadonlyArray<A>, ask: (one: A) => B | undefined): B | undefined => {
  for (const one of all) {
    const answer = ask(one)
    if (answer !== undefined) return answer
  }
  return undefined
}
