// Whether an untrusted JSON Schema may be compiled and run: references lead to schemas of the document and cannot loop
// in place, and the ways through it are counted beforehand. Work that depends on the data is counted during validation,
// for which each subschema is given a weight (`withWeights`). The validator is synchronous: nothing else could stop it.
// Pure.
import { type Fields, isFields } from "../fields.ts"

/**
 * Subschemas at most, and keywords and entries in all of them: compiling takes about a tenth of a millisecond for each.
 */
const subschemasMax = 400
const keywordsMax = 1_500
const annotations = new Set([
  "title",
  "description",
  "default",
  "examples",
  "deprecated",
  "readOnly",
  "writeOnly",
  "format",
  "$comment",
  "$schema"
])
/** Visits of subschemas at most, for data of the allowed depth with one value at each level. */
const visitsMax = 4_000

/** Applied to the same value: they multiply work without consuming data. */
const inPlaceLists = ["allOf", "anyOf", "oneOf"]
const inPlaceSingles = ["not", "if", "then", "else"]
const inPlaceTables = ["dependentSchemas", "dependencies"]
/** Applied to a part of the value. */
const descendingLists = ["prefixItems"]
const descendingSingles = [
  "items",
  "additionalItems",
  "contains",
  "additionalProperties",
  "propertyNames",
  "unevaluatedItems",
  "unevaluatedProperties"
]
const descendingTables = ["properties", "patternProperties"]
const definitionTables = ["$defs", "definitions"]
/** All others, such as `$id` and ajv's own `$async`, change how a validator is made, or what it returns. */
const coreKeywords = new Set(["$schema", "$ref", "$defs", "$comment"])

interface Below {
  readonly inPlace: ReadonlyArray<unknown>
  readonly descending: ReadonlyArray<unknown>
  readonly definitions: ReadonlyArray<unknown>
}

const lists = (schema: Fields, keys: ReadonlyArray<string>): ReadonlyArray<unknown> =>
  keys.flatMap((key) => (Array.isArray(schema[key]) ? (schema[key] as ReadonlyArray<unknown>) : []))

const singles = (schema: Fields, keys: ReadonlyArray<string>): ReadonlyArray<unknown> =>
  keys.flatMap((key) => (key in schema ? [schema[key]] : []))

const tables = (schema: Fields, keys: ReadonlyArray<string>): ReadonlyArray<unknown> =>
  keys.flatMap((key) => (isFields(schema[key]) ? Object.values(schema[key]) : []))

const below = (schema: Fields): Below => ({
  inPlace: [...lists(schema, inPlaceLists), ...singles(schema, inPlaceSingles), ...tables(schema, inPlaceTables)],
  descending: [
    ...lists(schema, descendingLists),
    ...singles(schema, descendingSingles),
    ...tables(schema, descendingTables)
  ],
  definitions: tables(schema, definitionTables)
})

/** The subschema a local pointer leads to; undefined when it leads nowhere. */
const pointed = (root: Fields, pointer: string): unknown => {
  if (pointer === "#" || pointer === "#/") return root
  if (!pointer.startsWith("#/")) return undefined
  let at: unknown = root
  for (const part of pointer.slice(2).split("/")) {
    let key: string
    try {
      key = decodeURIComponent(part).replaceAll("~1", "/").replaceAll("~0", "~")
    } catch {
      return undefined
    }
    if (Array.isArray(at)) at = at[Number(key)]
    else if (isFields(at) && Object.hasOwn(at, key)) at = at[key]
    else return undefined
  }
  return at
}

const sizeOf = (value: unknown): number =>
  Array.isArray(value) ? value.length : isFields(value) ? Object.keys(value).length : 0

/** Counts the names that depend on others; each is compiled. */
const dependents = (schema: Fields): number =>
  ["dependentRequired", "dependencies"]
    .flatMap((key) => (isFields(schema[key]) ? Object.values(schema[key]) : []))
    .reduce<number>((sum, names) => sum + sizeOf(names), 0)

const keywordsOf = (schema: Fields): number =>
  Object.keys(schema).filter((key) => !annotations.has(key)).length + dependents(schema)

/**
 * Describes the schema's problem for an operator; undefined if the schema may be compiled. `depth`: levels of the data
 * to validate.
 */
export const schemaIssue = (root: unknown, depth: number): string | undefined => {
  if (!isFields(root)) return "the schema is not an object"
  let keywords = 0
  const known = new Set<Fields>()
  const referred: Array<unknown> = []
  const pending: Array<unknown> = [root]
  while (pending.length > 0) {
    const schema = pending.pop()
    if (!isFields(schema)) continue
    known.add(schema)
    const { definitions, descending, inPlace } = below(schema)
    keywords += keywordsOf(schema) + inPlace.length + descending.length + definitions.length
    if (known.size > subschemasMax || keywords > keywordsMax) return "the schema has too many parts"
    const strange = Object.keys(schema).find((key) => key.startsWith("$") && !coreKeywords.has(key))
    if (strange !== undefined) return `${strange} is not supported`
    if ("$schema" in schema && schema !== root) return "$schema inside a schema"
    const reference = schema["$ref"]
    if (reference !== undefined && (typeof reference !== "string" || !isFields(pointed(root, reference))))
      return "$ref points outside the schema"
    if (typeof reference === "string") referred.push(pointed(root, reference))
    pending.push(...definitions, ...descending, ...inPlace)
  }
  // An example or an unknown keyword is not a schema, so its contents were not examined.
  if (!referred.every((target) => known.has(target as Fields))) return "$ref does not lead to a schema"
  const dialect = root["$schema"]
  if (
    dialect !== undefined &&
    (typeof dialect !== "string" || !/^https?:\/\/json-schema\.org\/draft\/2020-12\/schema#?$/.test(dialect))
  ) {
    return "only JSON Schema 2020-12 is supported"
  }
  try {
    return costError(root, depth)
  } catch {
    // The stack limits a chain of references.
    return "validating would take too long"
  }
}

/**
 * Counts visits by unfolding references, level by level of the data; a loop that consumes no data is found on the way.
 */
const costError = (root: Fields, depth: number): string | undefined => {
  const known = new Map<Fields, Map<number, number>>()
  const open = new Set<Fields>()
  const cost = (schema: unknown, left: number): number => {
    if (!isFields(schema)) return 1
    const cached = known.get(schema)?.get(left)
    if (cached !== undefined) return cached
    if (open.has(schema)) return Number.POSITIVE_INFINITY
    open.add(schema)
    const reference = schema["$ref"]
    const { descending, inPlace } = below(schema)
    let sum = 1
    for (const part of typeof reference === "string" ? [pointed(root, reference), ...inPlace] : inPlace)
      sum += cost(part, left)
    open.delete(schema)
    if (left > 0) {
      // Descending consumes data, so a reference that is open above may be met again.
      const above = [...open]
      open.clear()
      for (const part of descending) sum += cost(part, left - 1)
      for (const schema of above) open.add(schema)
    }
    const byDepth = known.get(schema) ?? new Map<number, number>()
    byDepth.set(left, sum)
    known.set(schema, byDepth)
    return sum
  }
  const visits = cost(root, depth)
  if (visits === Number.POSITIVE_INFINITY) return "a $ref loop that consumes no data"
  return visits > visitsMax ? "validating would take too long" : undefined
}

const allLists = new Set([...inPlaceLists, ...descendingLists])
const allSingles = new Set([...inPlaceSingles, ...descendingSingles])
const allTables = new Set([...inPlaceTables, ...descendingTables, ...definitionTables])

export const weightKeyword = "x-weight"

/** Cost of one visit of a subschema itself: each visit iterates its lists. */
const weightOf = (schema: Fields): number =>
  ["required", "properties", "patternProperties", "dependentRequired"].reduce(
    (sum, key) => sum + sizeOf(schema[key]),
    1
  ) + dependents(schema)

/** A copy of a schema that passed, with a weight in every subschema, under `weightKeyword`. */
export const withWeights = (schema: unknown): unknown => {
  if (!isFields(schema)) return schema
  const table = (value: Fields) =>
    Object.fromEntries(Object.entries(value).map(([name, part]) => [name, withWeights(part)]))
  const copied = Object.entries(schema).map(([key, value]) => {
    if (allLists.has(key) && Array.isArray(value)) return [key, value.map(withWeights)] as const
    if (allSingles.has(key)) return [key, withWeights(value)] as const
    return [key, allTables.has(key) && isFields(value) ? table(value) : value] as const
  })
  return { ...Object.fromEntries(copied), [weightKeyword]: weightOf(schema) }
}
