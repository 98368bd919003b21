import { expect, it } from "@effect/vitest"
import { eventData, findAnswer, readChallenge } from "../../../plugins/mcp-tools-pay/seller/SellerWire.ts"

const asking = { x402Version: 2, accepts: [], resource: { url: "https://a.example/mcp" }, extensions: {} }

const textOf = (text: string) => ({ isError: true, content: [{ type: "text", text }] })
const resultWith = (text: string) => ({ ...textOf(text), structuredContent: asking })

it("terms embedded in a text are bounded like the response around them [S209, S238]", () => {
  expect(readChallenge(resultWith(JSON.stringify(asking)))._tag).toBe("Challenge")
  const deep = "[".repeat(100_000) + "]".repeat(100_000)
  for (const text of [JSON.stringify({ ...asking, extensions: "here" }).replace('"here"', deep), "{"])
    expect(readChallenge(resultWith(text))._tag).toBe("Malformed")
  expect(readChallenge(resultWith('{"x402Version":1,"x402Version":2,"accepts":[]}'))._tag).toBe("Malformed")
})

it("one copy of the terms suffices, and two must agree [S209]", () => {
  const challenge = { _tag: "Challenge", challenge: { resourceUrl: asking.resource.url } }
  expect(readChallenge(textOf(JSON.stringify(asking)))).toMatchObject(challenge)
  for (const text of ["", "Payment required", '{"error":"payment required"}', "[]"])
    expect(readChallenge(resultWith(text))).toMatchObject(challenge)
  expect(readChallenge(resultWith(JSON.stringify({ ...asking, error: "other" })))._tag).toBe("Malformed")
  expect(readChallenge(textOf("Payment required"))._tag).toBe("None")
})

it("a result of the extension's type requests payment and matches other copies [S209]", () => {
  const typed = { resultType: "payment_required", paymentRequired: asking }
  expect(readChallenge(typed)._tag).toBe("Challenge")
  expect(readChallenge({ ...typed, structuredContent: asking })._tag).toBe("Challenge")
  expect(readChallenge({ ...typed, structuredContent: { ...asking, error: "other" } })._tag).toBe("Malformed")
  expect(readChallenge({ resultType: "payment_required" })._tag).toBe("Malformed")
  expect(readChallenge({ resultType: "complete", paymentRequired: asking })._tag).toBe("None")
})

it("events are read whatever their line ends, names and comments, the last ten thousand of them [S238]", () => {
  const stream = "\ufeffdata: 1\n\r\n: ping\r\rid: 4\ndata\n\nevent: ping\ndata: now\r\n\r\ndata: {\ndata:}\n\n"
  expect(eventData(new TextEncoder().encode(stream))).toEqual(["1", "now", "{\n}"])
  const many = eventData(
    new TextEncoder().encode(`${": ping\n\n".repeat(20_000)}${"data:1\n\n".repeat(10_001)}data:2\n\n`)
  )
  expect([many.length, many.at(-1)]).toEqual([10_000, "2"])
})

it("an answer is found under its id, as a number or as text", () => {
  const result = { content: [] }
  for (const id of [4, "4"]) expect(findAnswer([{ method: "x" }, { id, result }], 4)).toEqual({ result })
  for (const id of [5, "5", null, [4], "04"]) expect(findAnswer([{ id, result }], 4)).toBe(undefined)
})
