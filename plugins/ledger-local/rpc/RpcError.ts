// The errors of JSON-RPC calls, thrown by methods and turned into the `error` of an answer at the edge. A simulation
// that fails is not one of them: it is an answer with a text.
export const RpcCode = {
  parseError: -32700,
  invalidRequest: -32600,
  methodNotFound: -32601,
  invalidParams: -32602,
  internal: -32603
} as const

export class RpcError extends Error {
  readonly code: number
  constructor(code: number, message: string) {
    super(message)
    this.code = code
  }
}

export const invalidParams = (message: string): RpcError => new RpcError(RpcCode.invalidParams, message)
export const invalidRequest = (message: string): RpcError => new RpcError(RpcCode.invalidRequest, message)
