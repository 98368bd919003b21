// How the pages show an address written by an untrusted party, read an amount, and keep filters in the URL.
import { expect, it } from "vitest"
import { address, atomic, bytes, rounded } from "../../../plugins/dashboard/web/format.ts"
import { hrefOf, readPlace } from "../../../plugins/dashboard/web/place.ts"

it.each([
  // A Cyrillic letter in place of a Latin one.
  ["https://\u0430pple.example/pay?x=\u0430", "https://xn--pple-43d.example/pay?x=\u0430"],
  ["HTTPS://shop\uff0eexample:8443/\u00fc", "https://shop.example:8443/\u00fc"],
  ["https://apple.example@\u0430pple.example/", "https://xn--pple-43d.example/"]
])("the host of %j is shown as requested", (text, shown) => expect(address(text)).toBe(shown))

it("text other than an HTTP address stays unchanged", () => {
  for (const text of [
    "https://shop.example/\u00fc",
    "mcp://\u0430pple/tool",
    "javascript:alert(1)",
    "http://\u0430 b/",
    ""
  ])
    expect(address(text)).toBe(text)
})

it("an amount as people write it is exact in atomic units, or refused", () => {
  expect([atomic("1.5", 7), atomic("0", 7), atomic("12", 0), atomic(" 0.0000001 ", 7)]).toEqual([
    "15000000",
    "0",
    "12",
    "1"
  ])
  for (const text of ["1.00000001", "-1", "1e3", "1,5", "", "0x1"])
    expect([text, atomic(text, 7)]).toEqual([text, undefined])
})

it("a headline is rounded down from one on, and exact below", () => {
  const shown = ["31645249267", "99999999", "10000000", "9999999", "1", "0", "-31645249267"].map((units) =>
    rounded(units, 7)
  )
  expect(shown).toEqual(["3,164.52", "9.99", "1.00", "0.9999999", "0.0000001", "0.00", "−3,164.52"])
  expect([rounded("1234", 0), rounded("1234", 2)]).toEqual(["1,234.00", "12.34"])
})

it("bytes have the decimal unit that fits", () => {
  expect([0, 999, 1_000, 29_900_000, 74_960_000_000, 3e15].map(bytes)).toEqual([
    "0 B",
    "999 B",
    "1 kB",
    "29.9 MB",
    "75 GB",
    "3000 TB"
  ])
})

it("a fragment keeps the view, the thing and the filters apart, whatever is in them", () => {
  const { name, query, rest } = readPlace("#origin/https%3A%2F%2Fshop.example%3A8443?status=failed&reason=a%26b")
  expect([name, rest, query.get("status"), query.get("reason")]).toEqual([
    "origin",
    "https://shop.example:8443",
    "failed",
    "a&b"
  ])
  expect(readPlace("#settlement/%").rest).toBe("%")
  expect(hrefOf("account", "GABC", { status: "failed", payer: "" })).toBe("/dashboard#account/GABC?status=failed")
})
