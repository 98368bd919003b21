// The issues of a profile's section, in terms of the YAML: the dotted path of the setting, the expected value, and for
// an unknown name the closest known name. Values are not repeated, since a misplaced one may be a secret.
import { Schema, SchemaIssue } from "effect"
import { suggestionSuffix } from "./didYouMean.ts"

interface SettingIssue {
  /** Dotted, from the section on. */
  readonly path: string
  readonly message: string
}

interface JsonSchema {
  readonly properties?: Readonly<Record<string, JsonSchema>>
  readonly additionalProperties?: JsonSchema | boolean
  readonly items?: JsonSchema | ReadonlyArray<JsonSchema>
  readonly anyOf?: ReadonlyArray<JsonSchema>
  readonly allOf?: ReadonlyArray<JsonSchema>
  readonly enum?: ReadonlyArray<unknown>
}

const isSchema = (value: unknown): value is JsonSchema =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** The schemas that one step of a path may lead to. */
const below = (schema: JsonSchema, step: PropertyKey): ReadonlyArray<JsonSchema> => {
  const own =
    typeof step === "number" ? schema.items : (schema.properties?.[String(step)] ?? schema.additionalProperties)
  const found = isSchema(own) ? [own] : []
  return [...found, ...[...(schema.anyOf ?? []), ...(schema.allOf ?? [])].flatMap((one) => below(one, step))]
}

const namesOf = (schema: JsonSchema): ReadonlyArray<string> => [
  ...Object.keys(schema.properties ?? {}),
  ...[...(schema.anyOf ?? []), ...(schema.allOf ?? [])].flatMap(namesOf)
]

const dotted = (path: ReadonlyArray<PropertyKey>): string =>
  path.reduce<string>(
    (text, step) => (typeof step === "number" ? `${text}[${step}]` : `${text}${text === "" ? "" : "."}${String(step)}`),
    ""
  )

const format = SchemaIssue.makeFormatterStandardSchemaV1()

/** The issues of a value, in document order; `schema` is the JSON schema of the section `name`. */
export const settingIssues = (
  name: string,
  schema: Schema.Top,
  issue: SchemaIssue.Issue
): ReadonlyArray<SettingIssue> => {
  const document = { properties: { [name]: Schema.toJsonSchemaDocument(schema).schema as JsonSchema } }
  return format(issue).issues.map(({ message, path: steps }) => {
    const path = (steps ?? []).map((step) => (typeof step === "object" ? step.key : step))
    const last = path.at(-1)
    if (!message.includes("excess property") || last === undefined)
      return {
        path: dotted(path),
        message: message
          .replace(/^E/, "e")
          .replace(/^M/, "m")
          .replace(/\s*\n\s*/g, " ")
      }
    const parents = path
      .slice(0, -1)
      .reduce<ReadonlyArray<JsonSchema>>((schemas, step) => schemas.flatMap((one) => below(one, step)), [document])
    return { path: dotted(path), message: `no such setting${suggestionSuffix(String(last), parents.flatMap(namesOf))}` }
  })
}
