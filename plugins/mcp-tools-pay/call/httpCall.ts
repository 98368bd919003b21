// Builds an agent's HTTP request within the operator's bounds: a listed method, the listed URL with its parameters
// filled in, headers of an allowlist, one body. An agent's input cannot change the origin or the path of the resource,
// and cannot add a header that frames the message or pays. Pure.
import { Effect } from "effect"
import { type CanonicalResource, toolError, type Identity, type ToolError } from "../../mcp-tools/contract.ts"
import type { HttpCall } from "../seller/httpSeller.ts"
import { reservedHeaders } from "../seller/HttpWire.ts"
import { isFields } from "../seller/SellerWire.ts"

export const methods = ["GET", "POST", "PUT", "PATCH", "DELETE"] as const

interface HttpGiven {
  readonly method?: (typeof methods)[number]
  readonly pathParameters?: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, string>>
  readonly headers?: Readonly<Record<string, string>>
  readonly json?: unknown
  readonly text?: string
}

interface HttpBounds {
  /** In lower case. */
  readonly requestHeaders: ReadonlyArray<string>
  readonly requestBytesMax: number
}

const wrong = (message: string, details?: unknown) => toolError("INVALID_ARGUMENT", message, details)
const unwritable = wrong("a query parameter or `text` has half of a surrogate pair, which no request can carry")
const isHalf = (text: string): boolean => /\p{Surrogate}/u.test(text)
const urlLengthMax = 8_192
const headerValueLengthMax = 1_024

interface Operation {
  readonly method: string
  readonly accepts: unknown
}

const operationsOf = ({ operations }: CanonicalResource): ReadonlyArray<Operation> =>
  Array.isArray(operations)
    ? operations.flatMap((one) =>
        isFields(one) && typeof one["method"] === "string" ? [{ method: one["method"], accepts: one["accepts"] }] : []
      )
    : []

/** The requested operation; the only one if the agent names none. */
export const chooseOperation = (
  resource: CanonicalResource,
  method: HttpGiven["method"]
): Effect.Effect<Operation, ToolError> => {
  const listed = operationsOf(resource)
  const found =
    method === undefined ? (listed.length === 1 ? listed[0] : undefined) : listed.find((one) => one.method === method)
  return found !== undefined && methods.some((known) => known === found.method)
    ? Effect.succeed(found)
    : wrong("the resource is not listed with this method, or with several: name one of them", {
        methods: methods.filter((known) => listed.some((one) => one.method === known))
      })
}

const fillPath = Effect.fnUntraced(function* (path: string, given: Readonly<Record<string, string>>) {
  const left = new Set(Object.keys(given))
  const segments: Array<string> = []
  for (const segment of path.split("/")) {
    const at = segment.indexOf(":")
    const name = at < 0 ? undefined : /^[A-Za-z_]\w*/.exec(segment.slice(at + 1))?.[0]
    if (name === undefined) {
      segments.push(segment)
      continue
    }
    const value = Object.hasOwn(given, name) ? given[name]! : ""
    if (value === "" || value === "." || value === ".." || isHalf(value))
      return yield* wrong("a path parameter is missing or is not a valid segment", { parameter: name })
    left.delete(name)
    segments.push(`${segment.slice(0, at)}${encodeURIComponent(value)}${segment.slice(at + 1 + name.length)}`)
  }
  return left.size === 0
    ? segments.join("/")
    : yield* wrong("the path has no such parameter", { parameters: [...left].slice(0, 10) })
})

/** The listed URL with the agent's parameters. */
const urlOf = Effect.fnUntraced(function* (identity: Identity, resource: CanonicalResource, given: HttpGiven) {
  const { pathParameters = {}, query = {} } = given
  if (!URL.canParse(identity.url)) return yield* wrong("`ref` does not name a URL")
  const listed = new URL(identity.url)
  const isTemplate = typeof resource["routeTemplate"] === "string"
  const path = isTemplate ? yield* fillPath(listed.pathname, pathParameters) : listed.pathname
  if (!isTemplate && Object.keys(pathParameters).length > 0)
    return yield* wrong("the resource has no parameters in its path")
  const url = new URL(`${listed.origin}${path}`)
  if (Object.entries(query).flat().some(isHalf)) return yield* unwritable
  if (url.origin !== listed.origin || url.pathname !== path) return yield* wrong("the parameters change the path")
  // Sorted, so that the order of an agent's members does not change the invocation.
  for (const name of Object.keys(query).toSorted()) url.searchParams.append(name, query[name]!)
  return url.href.length <= urlLengthMax ? url : yield* wrong("the URL is too long")
})

const headersOf = Effect.fnUntraced(function* (
  given: Readonly<Record<string, string>>,
  allowed: ReadonlyArray<string>
) {
  const headers: Record<string, string> = {}
  for (const [written, value] of Object.entries(given)) {
    const name = written.toLowerCase()
    if (!allowed.includes(name) || reservedHeaders.has(name))
      return yield* wrong("this header is not allowed", { allowed })
    if (!/^[\x20-\x7e]*$/.test(value) || value.length > headerValueLengthMax)
      return yield* wrong("a header's value contains invalid characters or is too long", { header: name })
    if (Object.hasOwn(headers, name)) return yield* wrong("a header is given in two spellings", { header: name })
    headers[name] = value
  }
  return headers
})

/** The complete request. */
export const httpCall = Effect.fnUntraced(function* (
  identity: Identity,
  resource: CanonicalResource,
  method: string,
  given: HttpGiven,
  bounds: HttpBounds
): Effect.fn.Return<HttpCall, ToolError> {
  const url = yield* urlOf(identity, resource, given)
  const headers = yield* headersOf(given.headers ?? {}, bounds.requestHeaders)
  if (given.json !== undefined && given.text !== undefined) return yield* wrong("pass one body: `json` or `text`")
  const text = given.json === undefined ? given.text : JSON.stringify(given.json)
  if (text === undefined) return { url, method, headers, body: undefined }
  // JSON escapes it.
  if (isHalf(text)) return yield* unwritable
  if (method === "GET") return yield* wrong("a GET request cannot have a body")
  const body = new TextEncoder().encode(text)
  if (body.length > bounds.requestBytesMax)
    return yield* wrong("the body is too long", { bytesMax: bounds.requestBytesMax })
  const contentType = given.json === undefined ? "text/plain; charset=utf-8" : "application/json"
  return { url, method, headers: { "content-type": contentType, ...headers }, body }
})
