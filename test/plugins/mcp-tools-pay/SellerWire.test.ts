import { expect, it } from "@effect/vitest"
import { readChallenge } from "../../../plugins/mcp-tools-pay/seller/SellerWire.ts"

const asking = { x402Version: 2, accepts: [], resource: { url: "https://a.example/mcp" }, extensions: {} }

const resultWith = (text: string) => ({
  isError: true,
  structuredContent: asking,
  content: [{ type: "text", text }]
})

it("a copy of the terms within a text is bounded as the answer around it is [S209, S238]", () => {
  expect(readChallenge(resultWith(JSON.stringify(asking)))._tag).toBe("Challenge")
  const deep = "[".repeat(100_000) + "]".repeat(100_000)
  for (const text of [deep, JSON.stringify({ ...asking, extensions: "here" }).replace('"here"', deep), "", "{"])
    expect(readChallenge(resultWith(text))._tag).toBe("Malformed")
  expect(readChallenge(resultWith('{"x402Version":1,"x402Version":2,"accepts":[]}'))._tag).toBe("Malformed")
})
