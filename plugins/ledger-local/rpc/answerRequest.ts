// Answers a JSON-RPC request against the current ledger, or as an injected fault has it: refused, lost, late, of a node
// that lags, or altered on the way back. An internal error becomes an error of the answer.
import { Effect } from "effect"
import type { RpcFault } from "../node/Faults.ts"
import type { LedgerMachine } from "../node/LedgerMachine.ts"
import { callMethod, errorResponse, readRequest, type RpcRequest, type RpcResponse } from "./jsonRpc.ts"
import { RpcCode, RpcError } from "./RpcError.ts"
import { viewOf } from "./View.ts"

/** Outcome of a request without a response: a status without a body, or the loss of the response after the work. */
export type Unanswered = { readonly _tag: "Unanswered"; readonly status: number }

/** A source that repeats its bytes in each attempt: a new nonce would be a new entry to fetch, without end. */
const repeatable = (randomBytes: (length: number) => Uint8Array) => {
  const drawn: Array<Uint8Array> = []
  return () => {
    let draws = 0
    return (length: number): Uint8Array => (drawn[draws++] ??= randomBytes(length))
  }
}

/** The method that runs contracts: its clients take turns, so that ledgers still close in time. */
const SLOW_METHOD = "simulateTransaction"

const answer = Effect.fnUntraced(function* (
  machine: LedgerMachine,
  friendbotUrl: string | undefined,
  { id, method, params }: RpcRequest,
  ledgersBehind = 0
) {
  const { ledger, passphrase } = machine
  const now = yield* machine.now
  const randomness = repeatable(ledger.options.crypto.randomBytes)
  const called = machine.lookup(() =>
    callMethod(viewOf(ledger, { passphrase, friendbotUrl }, now, ledgersBehind, randomness()), method, params)
  )
  return yield* (method === SLOW_METHOD ? machine.inTurn(called) : called).pipe(
    Effect.matchEffect({
      // A failed fetch does not show whether the entry exists.
      onFailure: (failed) => Effect.succeed(errorResponse(id, RpcCode.internal, failed.message)),
      onSuccess: (result) => Effect.as(machine.reportDefects, { jsonrpc: "2.0" as const, id, result })
    }),
    Effect.catchDefect((error): Effect.Effect<RpcResponse> => {
      if (error instanceof RpcError) return Effect.succeed(errorResponse(id, error.code, error.message))
      return Effect.as(
        Effect.logError(`the embedded ledger failed in ${method}`, error),
        errorResponse(id, RpcCode.internal, "internal error")
      )
    })
  )
})

const withFault = Effect.fnUntraced(function* (
  fault: RpcFault,
  id: unknown,
  answered: (ledgersBehind?: number) => Effect.Effect<RpcResponse>
): Effect.fn.Return<RpcResponse, Unanswered> {
  switch (fault.kind) {
    case "error":
      return errorResponse(id, fault.code, fault.message)
    case "status":
      return yield* Effect.fail<Unanswered>({ _tag: "Unanswered", status: fault.status })
    case "silent":
      return yield* Effect.never
    case "lost":
      yield* answered()
      return yield* Effect.fail<Unanswered>({ _tag: "Unanswered", status: 504 })
    case "late":
      yield* Effect.sleep(fault.millis)
      return yield* answered()
    case "stale":
      return yield* answered(fault.ledgers)
    case "wrong": {
      const response = yield* answered()
      return "result" in response ? { ...response, result: fault.change(response.result) } : response
    }
  }
})

export const answerRequest = Effect.fn("LocalLedger.rpc")(function* (
  machine: LedgerMachine,
  friendbotUrl: string | undefined,
  request: unknown
): Effect.fn.Return<RpcResponse, Unanswered> {
  const read = readRequest(request)
  if (!("method" in read)) return read
  const answered = (ledgersBehind?: number) => answer(machine, friendbotUrl, read, ledgersBehind)
  const fault = machine.ledger.faults.onRpc(read.method, read.params)
  return yield* fault === undefined ? answered() : withFault(fault, read.id, answered)
})
