// Errors of JSON-RPC as they are sent, under the protocol's own codes. Apart from `messages.ts`, so that who refuses a
// request before it is read does not load the SDK of MCP.

export const rpcCode = { parse: -32_700, invalid: -32_600, server: -32_000, noSession: -32_001 } as const

export type RequestId = string | number

export interface Refused {
  readonly code: number
  readonly message: string
  readonly id: RequestId | null
}

export const errorOf = ({ code, id, message }: Refused) => ({ jsonrpc: "2.0" as const, id, error: { code, message } })
