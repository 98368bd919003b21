// MCP revision 2026-07-28 over HTTP, from the client's side: without `initialize` and sessions. Each request carries
// its protocol version, client and capabilities in `params._meta`, and headers that mirror its method, its tool and the
// arguments that the tool's schema marks with `x-mcp-header`. The x402 extension is advertised, so a seller of this
// revision may ask for payment by a result of its own type. Pure.
import { Base64 } from "effect/encoding"
import { type Fields, isFields } from "../fields.ts"

export const statelessRevision = "2026-07-28"

/** How a client names itself. */
interface ClientInfo {
  readonly name: string
  readonly version: string
}

/** Parameters as one request of this revision carries them. */
export const withEnvelope = (params: Fields, clientInfo: ClientInfo): Fields => {
  const { _meta, ...others } = params
  return {
    ...others,
    _meta: {
      ...(isFields(_meta) ? _meta : {}),
      "io.modelcontextprotocol/protocolVersion": statelessRevision,
      "io.modelcontextprotocol/clientInfo": clientInfo,
      "io.modelcontextprotocol/clientCapabilities": { extensions: { "org.x402/payment": {} } }
    }
  }
}

/** Whether the answer to `server/discover` offers this revision. */
export const offersStateless = ({ supportedVersions }: Fields): boolean =>
  Array.isArray(supportedVersions) && supportedVersions.includes(statelessRevision)

/** Maximum arguments of one tool that are mirrored in headers. */
const headerParametersMax = 32
const token = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/
const sentinel = /^=\?base64\?.*\?=$/

/**
 * Encodes a header's value: text that is not plain ASCII, or that looks like an encoding, is sent as Base64 of its
 * UTF-8.
 */
const headerValue = (text: string): string =>
  /^[\x20-\x7e]*$/.test(text) && text.trim() === text && !sentinel.test(text)
    ? text
    : `=?base64?${Base64.encode(new TextEncoder().encode(text))}?=`

interface HeaderParameter {
  readonly path: ReadonlyArray<string>
  readonly header: string
}

/** The arguments that a schema marks for headers, along its `properties`; undefined if a mark is invalid. */
const headerParameters = (schema: unknown): ReadonlyArray<HeaderParameter> | undefined => {
  const found: Array<HeaderParameter> = []
  const visit = (schema: unknown, path: ReadonlyArray<string>): boolean => {
    if (!isFields(schema)) return true
    const { properties, type, "x-mcp-header": name } = schema
    if (name !== undefined) {
      const isPrimitive = type === "string" || type === "integer" || type === "boolean"
      if (path.length === 0 || !isPrimitive || typeof name !== "string" || !token.test(name)) return false
      const header = `mcp-param-${name.toLowerCase()}`
      if (found.some((other) => other.header === header) || found.length >= headerParametersMax) return false
      found.push({ path, header })
    }
    return !isFields(properties) || Object.entries(properties).every(([key, one]) => visit(one, [...path, key]))
  }
  return visit(schema, []) ? found : undefined
}

const argumentAt = (args: unknown, path: ReadonlyArray<string>): unknown =>
  path.reduce<unknown>((value, key) => (isFields(value) && Object.hasOwn(value, key) ? value[key] : undefined), args)

/** Headers that mirror one request. Undefined if the tool's schema marks arguments that a schema may not mark. */
export const mirroredHeaders = (
  method: string,
  params: Fields,
  inputSchema: unknown
): Readonly<Record<string, string>> | undefined => {
  const { arguments: args, name } = params
  if (method !== "tools/call" || typeof name !== "string") return { "mcp-method": method }
  const parameters = headerParameters(inputSchema)
  if (parameters === undefined) return undefined
  const mirrored = parameters.flatMap(({ header, path }) => {
    const value = argumentAt(args, path)
    return value === undefined || value === null || typeof value === "object"
      ? []
      : [[header, headerValue(String(value))] as const]
  })
  return { "mcp-method": method, "mcp-name": headerValue(name), ...Object.fromEntries(mirrored) }
}
