// The reader of a route's query, from the parameters that its declaration names: a name that is not declared does not
// compile, and a value is checked by the form that the declaration gives. Issues accumulate while the query is read,
// one sentence each, in the order of reading. Pure.
import { Schema, SchemaAST } from "effect"
import type { HttpServerRequest } from "effect/http"
import { text } from "./wireSchema.ts"

/** A parameter's allowed form, and its description for an issue. */
export interface Form {
  readonly pattern: RegExp
  readonly expected: string
}

/** A parameter that the document describes by a schema of its own and that is read by a form. */
export const inForm = <S extends Schema.Top>(schema: S, form: Form) => schema.annotate({ form })

/** A parameter of this form, as it is read and as the document describes it. */
export const parameter = (form: Form, description: string) =>
  inForm(text(description).check(Schema.isPattern(form.pattern)), form)

/** The form of a parameter; undefined where every text is one. */
export const formOf = ({ ast }: Schema.Constraint) => SchemaAST.resolveAt<Form>("form")(ast)

/** The query of a request's URL, which is a path or an absolute URL. */
export const queryOf = ({ url }: Pick<HttpServerRequest.HttpServerRequest, "url">): URLSearchParams => {
  const [asked = ""] = url.split("#", 1)
  const at = asked.indexOf("?")
  return new URLSearchParams(at < 0 ? "" : asked.slice(at))
}

/** One query, parsed. */
export interface QueryReader<Name extends string> {
  readonly issues: ReadonlyArray<string>
  /** Adds an issue of parameters together. */
  readonly refuse: (issue: string) => void
  /** A text in the form; an empty one counts as absent, another one is an issue. */
  readonly check: (name: string, value: string | null | undefined, form: Form | undefined) => string | undefined
  /** The parameter of that name, in its form. */
  readonly given: (name: Name) => string | undefined
  /** The parameter of that name as it was sent, whatever its form. */
  readonly raw: (name: Name) => string | null
}

export const readQuery = <Fields extends Schema.Struct.Fields>(
  { fields }: Schema.Struct<Fields>,
  query: URLSearchParams
): QueryReader<keyof Fields & string> => {
  const issues: Array<string> = []
  const check: QueryReader<string>["check"] = (name, value, form) => {
    if (value === null || value === undefined || value === "") return undefined
    if (form === undefined || form.pattern.test(value)) return value
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
