// Validates what a seller shows of its input and output against the schema it declares, with ajv (JSON Schema 2020-12) under
// bounds: the schema is judged first (`schemaBounds.ts`), patterns run on a linear-time engine, formats are not checked. Answers
// are remembered for the last schemas, since a seller declares the same one with every payment.
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js"
import { RE2JS } from "re2js"
import { schemaFault } from "./schemaBounds.ts"

/** Levels of nesting and values in `info`. */
export const infoDepthMax = 12
export const infoValuesMax = 2_000

const patternLengthMax = 512
const programSizeMax = 2_000
/** Schemas whose validators are kept. */
const rememberedMax = 256

/** A pattern as a linear automaton; one that only backtracking can match is refused by throwing, which fails the compilation. */
const linearPattern = Object.assign(
  (pattern: string) => {
    if (pattern.length > patternLengthMax) throw new Error("a pattern is too long")
    const compiled = RE2JS.compile(RE2JS.translateRegExp(pattern))
    if (compiled.programSize() > programSizeMax) throw new Error("a pattern is too large")
    return { test: (text: string) => compiled.matcher(text).find() }
  },
  { code: "linearPattern" }
)

export interface InfoFault {
  /** For an operator: a place, never content. */
  readonly detail: string
}

/** Gives a validator of `info` against a declared schema; `schemaText` is the schema's JSON and its key in the memory. */
export const makeValidator = () => {
  const remembered = new Map<string, ValidateFunction | InfoFault>()

  const compile = (schema: Readonly<Record<string, unknown>>): ValidateFunction | InfoFault => {
    const fault = schemaFault(schema, infoDepthMax)
    if (fault !== undefined) return { detail: fault }
    try {
      const ajv = new Ajv2020({
        strict: false,
        validateFormats: false,
        inlineRefs: false,
        addUsedSchema: false,
        logger: false,
        messages: false,
        code: { regExp: linearPattern as never }
      })
      return ajv.compile(schema)
    } catch {
      return { detail: "the schema cannot be compiled, or a pattern wants backtracking" }
    }
  }

  return (info: unknown, schema: Readonly<Record<string, unknown>>, schemaText: string): InfoFault | undefined => {
    let validate = remembered.get(schemaText)
    if (validate === undefined) validate = compile(schema)
    else remembered.delete(schemaText)
    remembered.set(schemaText, validate)
    if (remembered.size > rememberedMax) remembered.delete(remembered.keys().next().value!)
    if (typeof validate !== "function") return validate
    try {
      if (validate(info) === true) return undefined
      const [error] = validate.errors ?? []
      return { detail: `info${(error?.instancePath ?? "").slice(0, 100)}: ${error?.keyword ?? "invalid"}` }
    } catch {
      return { detail: "validating did not end" }
    }
  }
}
