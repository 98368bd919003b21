// An agent's HTTP request within the operator's bounds: it cannot leave the listed origin and path.
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { chooseOperation, httpCall } from "../../../plugins/mcp-tools-pay/call/httpCall.ts"

const bounds = { requestHeaders: ["accept", "x-note", "content-type"], requestBytesMax: 10 }
type Given = Parameters<typeof httpCall>[3]

/** The request's parts, or the reason of the refusal. */
const built = (
  given: Given = {},
  method = "POST",
  template: string | undefined = undefined,
  url = "https://a.example/x"
) =>
  httpCall(
    { url } as never,
    (template === undefined ? {} : { routeTemplate: template }) as never,
    method,
    given,
    bounds
  ).pipe(
    Effect.match({
      onFailure: ({ message }) => message,
      onSuccess: ({ body, headers, url }) => ({
        url: url.href,
        headers,
        body: body === undefined ? undefined : new TextDecoder().decode(body)
      })
    })
  )

const template = "/users/:id/v:version"
const templated = (pathParameters: Record<string, string>) =>
  built({ pathParameters }, "GET", template, `https://a.example${template}`)

it.effect("fills in parameters of the path, each one segment", () =>
  Effect.gen(function* () {
    expect(yield* templated({ id: "a/b", version: "2" })).toMatchObject({ url: "https://a.example/users/a%2Fb/v2" })
    for (const id of ["", ".", "..", "\ud800"])
      expect(yield* templated({ id, version: "2" })).toMatch(/missing or is not a valid segment/)
    expect(yield* templated({ version: "2" })).toMatch(/missing or is not a valid segment/)
    expect(yield* templated({ id: "7", version: "2", other: "x" })).toMatch(/the path has no such parameter/)
    expect(yield* built({ pathParameters: { id: "7" } })).toMatch(/has no parameters in its path/)
    expect(yield* built({}, "GET", undefined, "mcp tool")).toMatch(/does not name a URL/)
  })
)

it.effect("refuses text that the request would change, before it pays", () =>
  Effect.gen(function* () {
    const half = "\ud83d"
    for (const given of [{ query: { a: half } }, { query: { [half]: "a" } }, { text: `a${half}` }])
      expect(yield* built(given)).toMatch(/half of a surrogate pair/)
    expect(yield* built({ query: { a: "😀" }, text: "😀" })).toMatchObject({ body: "😀" })
    expect(yield* built({ json: half })).toMatchObject({ body: '"\\ud83d"' })
    expect(yield* built({ headers: { Accept: "a", accept: "b" } })).toBe("a header is given in two spellings")
  })
)

it.effect("sorts the query and bounds the URL to 8,192 characters", () =>
  Effect.gen(function* () {
    expect(yield* built({ query: { b: "2 &", a: "1" } })).toMatchObject({ url: "https://a.example/x?a=1&b=2+%26" })
    const room = 8_192 - "https://a.example/x?a=".length
    expect(yield* built({ query: { a: "x".repeat(room) } })).toMatchObject({ url: expect.stringMatching(/xx$/) })
    expect(yield* built({ query: { a: "x".repeat(room + 1) } })).toBe("the URL is too long")
  })
)

it.effect("sends allowed headers of visible characters, in lower case", () =>
  Effect.gen(function* () {
    const value = "v".repeat(1_024)
    expect(yield* built({ headers: { Accept: "text/html", "X-Note": value } })).toMatchObject({
      headers: { accept: "text/html", "x-note": value }
    })
    for (const name of ["x-other", "host", "payment-signature"])
      expect(yield* built({ headers: { [name]: "1" } })).toBe("this header is not allowed")
    for (const wrong of [`${value}v`, "a\nb", "é"])
      expect(yield* built({ headers: { accept: wrong } })).toMatch(/value/)
  })
)

it.effect("sends one body, typed and within its bound, except with GET", () =>
  Effect.gen(function* () {
    expect(yield* built()).toEqual({ url: "https://a.example/x", headers: {}, body: undefined })
    expect(yield* built({ json: { a: 1 } })).toMatchObject({
      headers: { "content-type": "application/json" },
      body: '{"a":1}'
    })
    expect(yield* built({ text: "0123456789" })).toMatchObject({
      headers: { "content-type": "text/plain; charset=utf-8" },
      body: "0123456789"
    })
    expect(yield* built({ text: "x", headers: { "content-type": "text/csv" } })).toMatchObject({
      headers: { "content-type": "text/csv" }
    })
    expect(yield* built({ text: "01234567890" })).toBe("the body is too long")
    expect(yield* built({ text: "x", json: 1 })).toMatch(/pass one body/)
    expect(yield* built({ text: "x" }, "GET")).toBe("a GET request cannot have a body")
  })
)

it.effect("chooses a listed method, the only one without a wish", () =>
  Effect.gen(function* () {
    const choose = (methods: ReadonlyArray<unknown>, wish?: Given["method"]) =>
      chooseOperation({ operations: methods.map((method) => ({ method })) } as never, wish).pipe(
        Effect.match({ onFailure: ({ details }) => (details as any).methods, onSuccess: ({ method }) => method })
      )
    expect(yield* choose(["GET"])).toBe("GET")
    expect(yield* choose(["GET", "POST"], "POST")).toBe("POST")
    expect(yield* choose(["GET", "POST"])).toEqual(["GET", "POST"])
    expect(yield* choose(["GET"], "POST")).toEqual(["GET"])
    expect(yield* choose(["HEAD"])).toEqual([])
    expect(yield* choose([7, "PUT"])).toBe("PUT")
    expect(yield* Effect.flip(chooseOperation({} as never, undefined))).toMatchObject({ code: "INVALID_ARGUMENT" })
  })
)
