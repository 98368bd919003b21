// What a client sent, as a message of JSON-RPC in MCP's own terms; undefined for anything else. Pure.
import { type JSONRPCMessage, parseJSONRPCMessage } from "@modelcontextprotocol/server"

export const messageIn = (value: unknown): JSONRPCMessage | undefined => {
  try {
    return parseJSONRPCMessage(value)
  } catch {
    return undefined
  }
}
