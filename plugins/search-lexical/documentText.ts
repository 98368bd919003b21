// The searched texts of a resource, by weight: A names (service, tool, route, host), B descriptions (description, names
// and descriptions of parameters), C tags, D examples (rules 5). Payment terms are left out: they are filters, and as
// text they would match every query about payments. Everything comes from strangers and is bounded in depth, count and
// length.
import type { ResourceDocument } from "../catalog/contract.ts"
import { boundedText, urlNames } from "./words.ts"

export interface WeightedText {
  readonly a: string
  readonly b: string
  readonly c: string
  readonly d: string
}

const depthMax = 8
const stringsMax = 400
const exampleLengthMax = 120

/** Keys of declarations and JSON Schema that are grammar, not names that a seller chose. */
const grammar = new Set(
  `$defs $id $ref $schema additionalProperties allOf anyOf body bodyType bodyFields const content default
  definitions enum example examples format headers headerFields http info input inputSchema items json maximum
  maxItems maxLength mcp method minimum minItems minLength oneOf output outputSchema pathParams pattern
  prefixItems properties query queryParams required schema structured text title toolName transport type
  uniqueItems`.split(/\s+/)
)

/** Keys of the schema language: their strings are not words of the listing. */
const wordless = new Set(["type", "format", "pattern", "method", "bodyType", "required"])

interface CollectedTexts {
  readonly names: Array<string>
  readonly prose: Array<string>
  readonly examples: Array<string>
}

const collectTexts = (value: unknown, key: string, depth: number, into: CollectedTexts): void => {
  if (depth > depthMax || into.names.length + into.prose.length + into.examples.length > stringsMax) return
  if (typeof value === "string") {
    if (key === "description" || key === "title") into.prose.push(value)
    else if (value.length <= exampleLengthMax && !grammar.has(value) && !wordless.has(key)) into.examples.push(value)
    return
  }
  if (Array.isArray(value)) {
    for (const item of value.slice(0, 20)) collectTexts(item, key, depth + 1, into)
    return
  }
  if (typeof value !== "object" || value === null) return
  for (const [name, inner] of Object.entries(value)) {
    if (name === "$schema" || name === "$id" || name === "$ref") continue
    if (!grammar.has(name) && name !== "description") into.names.push(name)
    collectTexts(inner, name, depth + 1, into)
  }
}

export const documentText = (resource: ResourceDocument): WeightedText => {
  const collected: CollectedTexts = { names: [], prose: [], examples: [] }
  for (const { info, schema } of resource.operations) {
    collectTexts(info, "", 0, collected)
    collectTexts(schema, "", 0, collected)
  }
  return {
    a: boundedText([resource.serviceName, resource.toolName, ...urlNames(resource.resource)], {
      timesMax: 2,
      wordsMax: 60
    }),
    b: boundedText([resource.description, ...new Set(collected.names), ...new Set(collected.prose)], {
      timesMax: 3,
      wordsMax: 600
    }),
    c: boundedText(resource.tags, { timesMax: 1, wordsMax: 60 }),
    d: boundedText(new Set(collected.examples), { timesMax: 1, wordsMax: 200 })
  }
}
