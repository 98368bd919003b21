// Shared by the tests of analytics over whole facilitators: reads reports by path and validates a body against the
// schema that /openapi.json gives for it.
import { Ajv2020 } from "ajv/dist/2020.js"
import { Effect } from "effect"
import type { Answer, Facilitator } from "../../support/facilitator.ts"
import type { Json } from "../catalog/support.ts"

export const report = (facilitator: Facilitator, path: string) =>
  Effect.map(facilitator.ask(`/analytics/v1${path}`), ({ json }) => json as Json)

const formats = { "date-time": (text: string) => !Number.isNaN(Date.parse(text)), date: /^\d{4}-\d{2}-\d{2}$/ }

/** Validation errors of a response against the document's schema for its route. */
export const describedErrors = (document: Json) => {
  const ajv = new Ajv2020({ strict: false, allErrors: true, formats: formats as never })
  ajv.addSchema({ ...document, $id: "http://interface/" })
  return (path: string, answer: Answer): ReadonlyArray<string> => {
    const pointer = ["paths", path, "get", "responses", String(answer.status), "content", "application/json", "schema"]
      .map((key) => `/${encodeURIComponent(key.replaceAll("/", "~1"))}`)
      .join("")
    const validate = ajv.compile({ $ref: `http://interface/#${pointer}` })
    return validate(answer.json)
      ? []
      : (validate.errors ?? []).map(({ instancePath, message }) => `${path} ${instancePath} ${message}`)
  }
}
