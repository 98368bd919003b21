// The catalog extension on the wire, as sellers declare it and buyers echo it: `{ info: { input, output? }, schema,
// routeTemplate? }` under `catalog` or `bazaar`, next to `paymentPayload.resource`. Known, well-formed members are
// kept. Everything else is left out, and so are values from the buyer's own request, such as concrete path parameters
// (S20, S24, S25, S256, rules 4).
import { Option } from "effect"
import type { Dialect } from "../../../kernel/Dialect.ts"
import type { Payment, Terms } from "../../../kernel/payment/Payment.ts"
import type { CatalogValues } from "../Config.ts"
import type { Operation } from "../contract.ts"
import { type Fields, isFields } from "../fields.ts"
import { readAbout } from "./aboutResource.ts"
import { cleanJson, cleanLine, cleanString, measureJson } from "./cleanText.ts"
import type { Declaration, Identity, PublicReason, Rejection } from "./Declaration.ts"
import { matchesTemplate, readResourceUrl, readTemplate } from "./resourceUrl.ts"
import { infoDepthMax, infoValuesMax, type Validator } from "./validateInfo.ts"

const queryMethods = ["GET", "HEAD", "DELETE"]
const bodyMethods = ["POST", "PUT", "PATCH"]
const bodyTypes = ["json", "form-data", "text"]
const transports = ["streamable-http", "sse"]

/** Levels of nesting in a schema; it is deeper than the data it describes. */
const schemaDepthMax = 28
const schemaValuesMax = 8_000
const toolNameMax = 128

/** Whether a listing can have this tool name: 1 to 128 characters, without spaces and control characters. */
export const isToolName = (name: string): boolean =>
  name !== "" && name.length <= toolNameMax && cleanString(name) === name && !/\s/.test(name)

/** Thrown inside this file only. */
class Refused extends Error {
  readonly reason: PublicReason
  constructor(reason: PublicReason, detail: string) {
    super(detail)
    this.reason = reason
  }
}

const bytesOf = (value: unknown): number => new TextEncoder().encode(JSON.stringify(value) ?? "").length

const pick = (fields: Fields, keys: ReadonlyArray<string>): Record<string, unknown> =>
  Object.fromEntries(keys.flatMap((key) => (fields[key] === undefined ? [] : [[key, fields[key]]])))

const readHttpInput = (input: Fields): Record<string, unknown> => {
  const { body, bodyType, method } = input
  if (typeof method !== "string" || ![...queryMethods, ...bodyMethods].includes(method))
    throw new Refused("schema_invalid", "info.input.method")
  if (bodyMethods.includes(method)) {
    if (typeof bodyType !== "string" || !bodyTypes.includes(bodyType))
      throw new Refused("schema_invalid", "info.input.bodyType")
    if (body === undefined) throw new Refused("schema_invalid", "info.input.body")
  } else if (bodyType !== undefined)
    throw new Refused("schema_invalid", "info.input.bodyType of a method without a body")
  for (const key of ["queryParams", "headers", "pathParams"]) {
    if (input[key] !== undefined && !isFields(input[key])) throw new Refused("schema_invalid", `info.input.${key}`)
  }
  // Path parameters belong to one buyer's request: the schema has their names.
  return pick(input, ["type", "method", "queryParams", "headers", "bodyType", "body"])
}

const readMcpInput = (input: Fields): Record<string, unknown> => {
  const toolName = input["toolName"] ?? input["tool"]
  if (typeof toolName !== "string" || toolName.trim() === "")
    throw new Refused("missing_tool_name", "info.input.toolName")
  if (!isToolName(toolName)) throw new Refused("missing_tool_name", "info.input.toolName is unusable")
  if (!isFields(input["inputSchema"])) throw new Refused("schema_invalid", "info.input.inputSchema")
  const { description, transport } = input
  if (transport !== undefined && !transports.includes(transport as string))
    throw new Refused("schema_invalid", "info.input.transport")
  if (description !== undefined && typeof description !== "string")
    throw new Refused("schema_invalid", "info.input.description")
  return { ...pick(input, ["type", "description", "transport", "inputSchema", "example"]), toolName }
}

const readOutput = (output: unknown, exampleBytesMax: number): Record<string, unknown> | undefined => {
  if (!isFields(output)) return undefined
  const kept = pick(output, ["type", "format", "example"])
  if (kept["type"] !== undefined && typeof kept["type"] !== "string") return undefined
  if (kept["example"] !== undefined && bytesOf(kept["example"]) > exampleBytesMax) delete kept["example"]
  return kept
}

const checkSizes = (extension: Fields, info: Fields, schema: unknown, config: CatalogValues): void => {
  const tooLarge = (detail: string) => new Refused("metadata_too_large", detail)
  if (bytesOf(extension) > config.metadataBytesMax) throw tooLarge("the extension")
  if (schema !== undefined && bytesOf(schema) > config.schemaBytesMax) throw tooLarge("schema")
  const input = info["input"]
  if (isFields(input)) {
    if (input["inputSchema"] !== undefined && bytesOf(input["inputSchema"]) > config.schemaBytesMax)
      throw tooLarge("info.input.inputSchema")
    for (const key of ["queryParams", "body", "headers", "example"]) {
      if (input[key] !== undefined && bytesOf(input[key]) > config.exampleBytesMax) throw tooLarge(`info.input.${key}`)
    }
  }
  const measured = measureJson(schema, schemaDepthMax, schemaValuesMax)
  if (measured.tooDeep || measured.tooMany)
    throw new Refused("schema_invalid", "the schema is too deep or has too many values")
}

/** Oversized output examples are removed before validation, so that leaving one out keeps the rest valid. */
const validated = (info: Fields, exampleBytesMax: number): Fields => {
  const output = info["output"]
  if (!isFields(output) || bytesOf(output["example"]) <= exampleBytesMax) return info
  const { output: _, ...rest } = info
  return rest
}

/** Renames the tool's legacy member to the name that schemas use, for validation. */
const withToolName = (info: Fields): Fields => {
  const input = info["input"]
  if (!isFields(input) || input["type"] !== "mcp" || input["toolName"] !== undefined || input["tool"] === undefined)
    return info
  const { tool, ...rest } = input
  return { ...info, input: { ...rest, toolName: tool } }
}

interface ReadOptions {
  readonly config: CatalogValues
  readonly validate: Validator
}

const readOperation = (extension: Fields, { config, validate }: ReadOptions): Operation => {
  const { info, schema } = extension
  if (!isFields(info) || !isFields(info["input"])) throw new Refused("schema_invalid", "info.input")
  checkSizes(extension, info, schema, config)
  const measured = measureJson(validated(info, config.exampleBytesMax), schemaDepthMax, schemaValuesMax)
  if (measured.tooDeep || measured.tooMany)
    throw new Refused("schema_invalid", "info is too deep or has too many values")
  const { input } = info
  const isMcp = input["type"] === "mcp"
  const kept = isMcp ? readMcpInput(input) : readHttpInput(input)
  const error = errorOf(validated(withToolName(info), config.exampleBytesMax), schema, validate, isMcp)
  if (error !== undefined && config.requireValidSchema) throw new Refused("schema_invalid", error)
  const output = readOutput(info["output"], config.exampleBytesMax)
  return {
    method: isMcp ? "" : String(kept["method"]),
    info: cleanJson({ input: kept, ...(output === undefined ? {} : { output }) }) as Fields,
    schema: error === undefined && isFields(schema) ? (cleanJson(schema) as Fields) : undefined
  }
}

const errorOf = (
  info: Fields,
  schema: unknown,
  validate: ReadOptions["validate"],
  isMcp: boolean
): string | undefined => {
  if (!isFields(schema)) return "no schema"
  const depth = measureJson(
    isMcp ? { ...info, input: { ...(info["input"] as Fields), inputSchema: {} } } : info,
    infoDepthMax,
    infoValuesMax
  )
  if (depth.tooDeep || depth.tooMany) return "info is too deep or has too many values"
  return validate(info, schema, JSON.stringify(schema))?.detail
}

/** A resource with one way to pay for it, as a payment carries it or its origin offers it. */
export interface Offer {
  readonly dialect: Dialect
  readonly resource: Payment["resource"]
  readonly terms: Terms
}

/**
 * Reads the declaration that an offer carries under `sentKey`. Other members of `extensions` may be the buyer's own and
 * are never published.
 */
export const readDeclaration = (
  offer: Offer,
  sentKey: string,
  value: unknown,
  options: ReadOptions
): Declaration | Rejection => {
  let identity: Identity | undefined
  try {
    if (!isFields(value)) throw new Refused("schema_invalid", "the extension is not an object")
    const input = isFields(value["info"]) && isFields(value["info"]["input"]) ? value["info"]["input"] : {}
    const type = input["type"]
    const declaredUrl = offer.resource["url"]
    if (type !== "http" && type !== "mcp") {
      if (declaredUrl === undefined) throw new Refused("missing_resource_url", "no resource.url")
      throw new Refused("schema_invalid", "info.input.type")
    }
    const template = type === "http" ? readTemplate(value["routeTemplate"]) : undefined
    const usable =
      template !== undefined &&
      typeof declaredUrl === "string" &&
      URL.canParse(declaredUrl) &&
      matchesTemplate(template, new URL(declaredUrl).pathname)
        ? template
        : undefined
    const url = readResourceUrl(type, declaredUrl, usable, options.config)
    if ("_tag" in url) throw new Refused(url.reason, url.detail)
    const tool = type === "mcp" ? (input["toolName"] ?? input["tool"]) : ""
    identity = { type, ...url, toolName: typeof tool === "string" ? cleanLine(tool, toolNameMax) : "" }
    const operation = readOperation(value, options)
    return {
      identity: {
        ...identity,
        toolName: type === "mcp" ? String((operation.info["input"] as Fields)["toolName"]) : ""
      },
      about: {
        ...aboutOf(offer.resource, operation, type),
        ...(usable === undefined ? {} : { routeTemplate: usable })
      },
      operation,
      sentKey,
      dialect: offer.dialect,
      extensions: ["catalog"],
      terms: offer.terms
    }
  } catch (error) {
    if (!(error instanceof Refused)) throw error
    return { _tag: "Rejected", reason: error.reason, detail: error.message, identity }
  }
}

/** Falls back to the tool's own description if the resource has none. */
const aboutOf = (resource: Payment["resource"], operation: Operation, type: string): Declaration["about"] => {
  const input = operation.info["input"] as Fields
  return readAbout({ ...(type === "mcp" ? { description: input["description"] } : {}), ...resource })
}

/** The URL a payment names, for an observation. */
export const declaredUrl = (payment: Payment): string => Option.getOrElse(payment.resourceUrl, () => "").slice(0, 2_048)

export const offerOf = (payment: Payment): Offer => ({
  dialect: payment.dialect,
  resource: payment.resource,
  terms: offered(payment)
})

/**
 * The terms under which a resource is offered: the seller's, with the amount that the buyer accepted. A scheme that
 * charges for usage may settle less; the offer stays the same.
 */
export const offered = ({ accepted, requirements }: Payment): Terms => ({
  ...requirements,
  amount: accepted.amount,
  amountText: accepted.amountText
})
