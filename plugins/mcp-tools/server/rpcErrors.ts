// JSON-RPC errors under the protocol's own codes. Separate from `messages.ts`, so that a request can be refused before
// it is read without loading the MCP SDK.

export const rpcCode = { parse: -32_700, invalid: -32_600, server: -32_000, noSession: -32_001 } as const

export type RequestId = string | number

export interface Refused {
  readonly code: number
  readonly message: string
  readonly id: RequestId | null
}

export const errorOf = ({ code, id, message }: Refused) => ({ jsonrpc: "2.0" as const, id, error: { code, message } })
