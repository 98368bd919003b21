// Headers for the ledger's RPC, from the environment, since a provider's key must not be in a profile. One `name:
// value` per line, for every endpoint, or with `@host ` before it only for the endpoints of that host, so that each key
// goes only to its own provider.
import { Redacted } from "effect"

export interface RpcHeader {
  /** Absent: sent to every endpoint. */
  readonly host: string | undefined
  readonly name: string
  readonly value: Redacted.Redacted
}

const line = /^(?:@([^\s@]+)\s+)?([A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}):[ \t]*([\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?)$/
/** Headers that the RPC client sets itself. */
const own = new Set(["content-type", "content-length", "host", "connection", "transfer-encoding", "traceparent"])

/** The headers, or the number of the first malformed line. */
export const readRpcHeaders = (text: string): ReadonlyArray<RpcHeader> | number => {
  const lines = text
    .split("\n")
    .map((one) => one.trim())
    .filter((one) => one !== "")
  const headers: Array<RpcHeader> = []
  for (const [index, one] of lines.entries()) {
    const [, host, name, value] = line.exec(one) ?? []
    if (name === undefined || value === undefined || own.has(name.toLowerCase())) return index + 1
    headers.push({ host, name: name.toLowerCase(), value: Redacted.make(value) })
  }
  return headers
}

export const headersFor = (headers: ReadonlyArray<RpcHeader>, url: string): Readonly<Record<string, string>> => {
  const { host, hostname } = new URL(url)
  return Object.fromEntries(
    headers
      .filter((header) => header.host === undefined || header.host === host || header.host === hostname)
      .map(({ name, value }) => [name, Redacted.value(value)])
  )
}
