// The payment that an HTTP answer asks for: of a 402 alone, by its header or its body, never by two that differ.
import { expect, it } from "vitest"
import { readHttpChallenge } from "../../../plugins/mcp-tools-pay/seller/HttpWire.ts"

const asked = {
  x402Version: 2,
  resource: { url: "https://seller.example/page" },
  accepts: [{ scheme: "exact", network: "stellar:testnet", asset: "C", amount: "1", payTo: "G", maxTimeoutSeconds: 60 }]
}
const coded = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64")
const read = (status: number, header: unknown, body: unknown = {}) =>
  readHttpChallenge({
    status,
    headers: header === undefined ? {} : { "payment-required": typeof header === "string" ? header : coded(header) },
    body: new TextEncoder().encode(JSON.stringify(body))
  } as never)

it("reads a challenge of a 402 alone", () => {
  for (const status of [200, 401, 403, 500]) expect(read(status, asked, asked)).toEqual({ _tag: "None" })
  expect(read(402, asked)).toMatchObject({ _tag: "Challenge", challenge: { version: 2, options: [{ amount: 1n }] } })
  expect(read(402, undefined, asked)).toMatchObject({ _tag: "Challenge" })
})

it("rejects two copies that differ, and an unreadable one", () => {
  const other = { ...asked, accepts: [{ ...asked.accepts[0], amount: "2" }] }
  expect(read(402, asked, asked)._tag).toBe("Challenge")
  expect(read(402, asked, other)._tag).toBe("Malformed")
  // A body of another kind is not a copy.
  expect(read(402, asked, { error: "pay" })._tag).toBe("Challenge")
  for (const wrong of ["no base64!", coded(7), coded({ ...asked, x402Version: 9 })])
    expect(read(402, wrong, asked)._tag).toBe("Malformed")
  expect(read(402, undefined, { error: "pay" })._tag).toBe("Malformed")
})
