// One JSON-RPC request against a view of the ledger. Methods are pure functions of the view and their parameters,
// except sendTransaction, which queues. A failure inside becomes an error response, never an exception of the caller.
import { getEvents } from "./getEvents.ts"
import { getLedgerEntries } from "./getLedgerEntries.ts"
import { inJson } from "./inJson.ts"
import { getLedgers } from "./getLedgers.ts"
import { getTransaction, getTransactions } from "./getTransaction.ts"
import { getFeeStats, getHealth, getLatestLedger, getNetwork, getVersionInfo } from "./info.ts"
import { type Params, paramsOf, checkFormat, text } from "./params.ts"
import { RpcCode, RpcError, invalidParams } from "./RpcError.ts"
import { decodeEnvelope, simulateTransaction } from "./simulateTransaction.ts"
import type { View } from "./View.ts"
import { codec } from "../engine/xdr/Xdr.ts"
import { toBase64 } from "../node/text.ts"
import { codecs } from "../transaction/Wire.ts"

/**
 * Hands an envelope to the queue and reports the result. A response never means that the transaction
 * happened; only getTransaction shows that.
 */
const sendTransaction = ({ ledger, latest, now }: View, params: Params) => {
  checkFormat(params)
  const decoded = decodeEnvelope(text(params, "transaction"))
  if (decoded === undefined) throw invalidParams("invalid_xdr")
  const { status, hash, error, diagnostics = [] } = ledger.send(decoded.envelope, decoded.bytes, now)
  return {
    ...(error === undefined ? {} : { errorResultXdr: toBase64(codecs.TransactionResult.encode(error)) }),
    ...(diagnostics.length === 0
      ? {}
      : { diagnosticEventsXdr: diagnostics.map((event) => toBase64(codec.DiagnosticEvent.encode(event))) }),
    status,
    hash,
    latestLedger: latest.sequence,
    latestLedgerCloseTime: latest.closeTime.toString()
  }
}

type Method = (view: View, params: Params) => unknown

const methods = new Map<string, Method>([
  ["getHealth", getHealth],
  ["getNetwork", getNetwork],
  ["getLatestLedger", getLatestLedger],
  ["getVersionInfo", getVersionInfo],
  ["getFeeStats", getFeeStats],
  ["getLedgerEntries", getLedgerEntries],
  ["simulateTransaction", simulateTransaction],
  ["sendTransaction", sendTransaction],
  ["getTransaction", getTransaction],
  ["getTransactions", getTransactions],
  ["getLedgers", getLedgers],
  ["getEvents", getEvents]
])

export interface RpcRequest {
  readonly id: unknown
  readonly method: string
  readonly params: unknown
}

export interface RpcResponse {
  readonly jsonrpc: "2.0"
  readonly id: unknown
  readonly result?: unknown
  readonly error?: { readonly code: number; readonly message: string }
}

export const errorResponse = (id: unknown, code: number, message: string): RpcResponse => ({
  jsonrpc: "2.0",
  id,
  error: { code, message }
})

/** Decodes a request; a response in its place reports why it is invalid. */
export const readRequest = (value: unknown): RpcRequest | RpcResponse => {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return errorResponse(null, RpcCode.invalidRequest, "invalid request")
  }
  const { id = null, jsonrpc, method, params } = value as Record<string, unknown>
  if (jsonrpc !== "2.0" || typeof method !== "string")
    return errorResponse(id, RpcCode.invalidRequest, "invalid request")
  return { id, method, params }
}

/** True if a request lacks an id, even null, so it expects no response. */
export const isNotification = (value: unknown): boolean =>
  typeof value === "object" && value !== null && !("id" in value) && "method" in readRequest(value)

/** The result of a method. Throws `RpcError`. */
export const callMethod = (view: View, method: string, params: unknown): unknown => {
  const handler = methods.get(method)
  if (handler === undefined) throw new RpcError(RpcCode.methodNotFound, "method not found")
  const read = paramsOf(params)
  const result = handler(view, read)
  return read["xdrFormat"] === "json" ? inJson(method, result) : result
}
