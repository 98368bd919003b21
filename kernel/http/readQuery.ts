// The reader of a route's query, by the parameters in the route's declaration: an undeclared name does not compile, and
// a value is checked by the declared form. Issues accumulate while the query is read, one sentence each, in the order
// of reading. Pure.
import { Schema, SchemaAST } from "effect"
import type { HttpServerRequest } from "effect/http"
import { text } from "./wireSchema.ts"

/** A parameter's allowed form, and its description for an issue. */
export interface Form {
  readonly pattern: RegExp
  readonly expected: string
  /** What the pattern cannot express. The database must never refuse a value: its error reads as an outage. */
  readonly isValid?: (text: string) => boolean
}

/** A time of ISO 8601 in UTC, or a day, that exists in the calendar of the database. */
export const isTime = (text: string): boolean => {
  const at = Date.parse(text)
  return !Number.isNaN(at) && !text.startsWith("0000") && new Date(at).toISOString().startsWith(text.slice(0, 10))
}

/** A parameter that the document describes by a separate schema and that a form reads. */
export const inForm = <S extends Schema.Top>(schema: S, form: Form) => schema.annotate({ form })

/** A parameter of this form, for the reader and for the document. */
export const parameter = (form: Form, description: string) =>
  inForm(text(description).check(Schema.isPattern(form.pattern)), form)

/** The form of a parameter; undefined if it accepts every text. */
export const formOf = ({ ast }: Schema.Constraint) => SchemaAST.resolveAt<Form>("form")(ast)

/** The query of a request's URL, which is a path or an absolute URL. */
export const queryOf = ({ url }: Pick<HttpServerRequest.HttpServerRequest, "url">): URLSearchParams => {
  const [asked = ""] = url.split("#", 1)
  const at = asked.indexOf("?")
  return new URLSearchParams(at < 0 ? "" : asked.slice(at))
}

export interface QueryReader<Name extends string> {
  readonly issues: ReadonlyArray<string>
  /** Adds an issue about a combination of parameters. */
  readonly refuse: (issue: string) => void
  /** A text in the form; an empty text counts as absent, any other is an issue. */
  readonly check: (name: string, value: string | null | undefined, form: Form | undefined) => string | undefined
  /** The parameter of that name, in its form. */
  readonly given: (name: Name) => string | undefined
  /** The parameter of that name as sent, without a check of its form. */
  readonly raw: (name: Name) => string | null
}

export const readQuery = <Fields extends Schema.Struct.Fields>(
  { fields }: Schema.Struct<Fields>,
  query: URLSearchParams
): QueryReader<keyof Fields & string> => {
  const issues: Array<string> = []
  const check: QueryReader<string>["check"] = (name, value, form) => {
    if (value === null || value === undefined || value === "") return undefined
    if (form === undefined || (form.pattern.test(value) && form.isValid?.(value) !== false)) return value
    issues.push(`${name}: ${form.expected}`)
    return undefined
  }
  return {
    issues,
    refuse: (issue) => void issues.push(issue),
    check,
    given: (name) => check(name, query.get(name), formOf(fields[name]!)),
    raw: (name) => query.get(name)
  }
}
