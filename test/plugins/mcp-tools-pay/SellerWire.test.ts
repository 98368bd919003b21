import { expect, it } from "@effect/vitest"
import { readChallenge } from "../../../plugins/mcp-tools-pay/seller/SellerWire.ts"

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
