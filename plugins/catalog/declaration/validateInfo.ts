// Validates a seller's example input and output against the declared schema, with ajv (JSON Schema 2020-12) under
// bounds. The schema is checked first (`schemaBounds.ts`), patterns run on a linear-time engine, formats are not
// checked, and all work that depends on the data is counted as it runs; too much of it ends the validation. Validators
// are cached for the last schemas, since a seller declares the same one with every payment.
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js"
import { RE2JS } from "re2js"
import { canonicalJson } from "../../../kernel/payment/wire/canonicalJson.ts"
import { LruCache } from "../../../kernel/cache/LruCache.ts"
import { cleanLine } from "./cleanText.ts"
import { schemaIssue, weightKeyword, withWeights } from "./schemaBounds.ts"

/** Levels of nesting and values in `info`. */
export const infoDepthMax = 12
export const infoValuesMax = 2_000

const patternLengthMax = 512
/** Instructions of one pattern, and of all patterns of a schema. */
const programSizeMax = 2_000
const programsSizeMax = 6_000
/**
 * Weighed visits of subschemas; characters compared; characters times instructions of patterns. Each some tens of
 * milliseconds.
 */
const visitsMax = 20_000
const comparedMax = 1_000_000
const matchedMax = 10_000_000
/** Cost of comparing a value, in addition to its characters. */
const comparisonCost = 20
/** Cached validators, by schema. */
const cachedMax = 256

interface InfoIssue {
  /** For an operator: a place, never content. */
  readonly detail: string
  /** Position of the value that violates the schema; absent if the schema itself is invalid. */
  readonly at?: { readonly path: string; readonly keyword: string; readonly missing?: string }
}

export type Validator = (
  info: unknown,
  schema: Readonly<Record<string, unknown>>,
  schemaText: string
) => InfoIssue | undefined

class TooMuchWork extends Error {}

/** Counts work of one kind; more than is allowed ends the validation. */
const makeMeter = (max: number) => {
  let used = 0
  return {
    reset: (): void => {
      used = 0
    },
    charge: (amount: number): void => {
      used += amount
      if (used > max) throw new TooMuchWork()
    }
  }
}

const meters = { visits: makeMeter(visitsMax), compared: makeMeter(comparedMax), matched: makeMeter(matchedMax) }

const resetMeters = (): void => Object.values(meters).forEach(({ reset }) => reset())

/** A value as one text, equal for equal values. */
const asText = (value: unknown): string => {
  const text = canonicalJson(value)
  meters.compared.charge(text.length + comparisonCost)
  return text
}

/** Compiles a pattern to a linear automaton. A pattern that needs backtracking throws, which fails the compilation. */
const makeLinearPattern = () => {
  let programs = 0
  return Object.assign(
    (pattern: string) => {
      if (pattern.length > patternLengthMax) throw new Error("a pattern is too long")
      const compiled = RE2JS.compile(RE2JS.translateRegExp(pattern))
      const size = compiled.programSize()
      programs += size
      if (size > programSizeMax || programs > programsSizeMax) throw new Error("patterns are too large")
      return {
        test: (text: string) => {
          meters.matched.charge((text.length + 1) * size)
          return compiled.matcher(text).find()
        }
      }
    },
    { code: "linearPattern" }
  )
}

/** Ajv's own `uniqueItems` and `enum` compare each value with each other one. */
const compareByText = (ajv: Ajv2020): Ajv2020 =>
  ajv
    .removeKeyword("uniqueItems")
    .removeKeyword("enum")
    .addKeyword({
      keyword: "uniqueItems",
      type: "array",
      schemaType: "boolean",
      validate: (isRequired: boolean, items: ReadonlyArray<unknown>) =>
        !isRequired || new Set(items.map(asText)).size === items.length
    })
    .addKeyword({
      keyword: "enum",
      schemaType: "array",
      compile: (values: ReadonlyArray<unknown>) => {
        const known = new Set(values.map((value) => canonicalJson(value)))
        return (value: unknown) => known.has(asText(value))
      }
    })

const compile = (schema: Readonly<Record<string, unknown>>): ValidateFunction | InfoIssue => {
  const error = schemaIssue(schema, infoDepthMax)
  if (error !== undefined) return { detail: error }
  try {
    const ajv = compareByText(
      new Ajv2020({
        strict: false,
        validateFormats: false,
        validateSchema: false,
        inlineRefs: false,
        addUsedSchema: false,
        logger: false,
        messages: false,
        code: { regExp: makeLinearPattern() as never, optimize: false }
      })
    )
    ajv.addKeyword({
      keyword: weightKeyword,
      schemaType: "number",
      validate: (weight: number) => {
        meters.visits.charge(weight)
        return true
      }
    })
    return ajv.compile(withWeights(schema) as Record<string, unknown>)
  } catch {
    return { detail: "the schema cannot be compiled, or a pattern needs backtracking" }
  }
}

/**
 * Makes a validator of `info` against a declared schema; `schemaText` is the schema's JSON and its key in the cache.
 */
export const makeValidator = (): Validator => {
  const cached = new LruCache<string, ValidateFunction | InfoIssue>({ name: "validators", capacity: cachedMax })

  return (info, schema, schemaText) => {
    const known = cached.get(schemaText)
    const validate = known ?? compile(schema)
    if (known === undefined) cached.set(schemaText, validate)
    if (typeof validate !== "function") return validate
    resetMeters()
    try {
      if (validate(info) === true) return undefined
      const [error] = validate.errors ?? []
      const { instancePath: path = "", keyword = "invalid" } = error ?? {}
      const missing: unknown = error?.params["missingProperty"]
      return {
        detail: `info${cleanLine(path, 100)}: ${keyword}`,
        at: { path, keyword, ...(typeof missing === "string" ? { missing } : {}) }
      }
    } catch (error) {
      return { detail: error instanceof TooMuchWork ? "validating would take too long" : "validating did not end" }
    }
  }
}
