// Arguments are checked against the listing's own schema before any request or signature.
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { checkInput, checkRequest } from "../../../plugins/mcp-tools-pay/call/declaredInput.ts"
import { queryDeclaration } from "../catalog/support.ts"

const city = { type: "object", properties: { city: { type: "string" }, days: { type: "integer" } }, required: ["city"] }
const refused = <A>(check: Effect.Effect<A, { readonly message: string }>) =>
  Effect.match(check, { onFailure: ({ message }) => message, onSuccess: () => "passes" })

it.effect("arguments of a tool that its schema refuses are refused", () =>
  Effect.gen(function* () {
    expect(yield* refused(checkInput({}, city, "arguments"))).toContain("`city` is missing")
    expect(yield* refused(checkInput({ city: 1 }, city, "arguments"))).toContain("`arguments.city` (type)")
    expect(yield* refused(checkInput({ city: "Riga", days: 1.5 }, city, "arguments"))).toContain("`arguments.days`")
    expect(yield* refused(checkInput({ city: "Riga", days: 2 }, city, "arguments"))).toBe("passes")
    // A schema that cannot be compiled within limits passes everything, and so does a missing one.
    for (const schema of [undefined, true, { $ref: "https://elsewhere.example" }, { pattern: "(a+)+\\1" }])
      expect(yield* refused(checkInput({}, schema, "arguments"))).toBe("passes")
  })
)

it.effect("a request's query and body are held against theirs", () =>
  Effect.gen(function* () {
    const { properties, required } = city
    const listed = { catalog: queryDeclaration({ inputSchema: { properties, required } }) }
    expect(yield* refused(checkRequest({}, listed))).toContain("`city` is missing")
    expect(yield* refused(checkRequest({ query: { days: "2" } }, listed))).toContain("`city` is missing")
    expect(yield* refused(checkRequest({ query: { city: "Riga", days: "soon" } }, listed))).toContain("`query.days`")
    expect(yield* refused(checkRequest({ query: { city: "Riga", days: "2" } }, listed))).toBe("passes")
    expect(yield* refused(checkRequest({ pathParameters: { name: "riga" } }, listed))).toBe("passes")
    const body = { catalog: { info: {}, schema: { properties: { input: { properties: { body: city } } } } } }
    expect(yield* refused(checkRequest({}, body))).toContain("pass `json`")
    expect(yield* refused(checkRequest({ json: { city: 1 } }, body))).toContain("`json.city` (type)")
    expect(yield* refused(checkRequest({ json: { city: "Riga" } }, body))).toBe("passes")
  })
)
