// How the pages show an untrusted address, read an amount and pasted search input, show an error, and keep filters in
// the URL.
import { expect, it } from "vitest"
import { sentenceOf } from "../../../plugins/dashboard/web/ask.ts"
import { address, atomic, bytes, percent, rounded } from "../../../plugins/dashboard/web/format.ts"
import { searchedFor } from "../../../plugins/dashboard/web/identifiers.ts"
import { hrefOf, readPlace } from "../../../plugins/dashboard/web/place.ts"
import { coreReasons } from "../../../kernel/payment/Refusal.ts"
import { explainReason } from "../../../kernel/payment/reasons.ts"
import { reasons as catalog } from "../../../plugins/catalog/plugin.ts"
import { reasons as exact } from "../../../plugins/x402-exact/plugin.ts"
import { reasons as upto } from "../../../plugins/x402-upto/plugin.ts"
import { reasons as batch } from "../../../plugins/x402-batch/plugin.ts"
import { reasonLabel, reasonOf, reasonsKnown, takeReasons } from "../../../plugins/dashboard/web/reasons.ts"

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
  // In the pages' form: grouped thousands, and a cent without a leading zero.
  expect([atomic("1,234,567.8", 7), atomic(".5", 7), atomic("3.", 7)]).toEqual([
    "12345678000000",
    "5000000",
    "30000000"
  ])
  for (const text of ["1.00000001", "-1", "1e3", "1,5", "1,23,456", ",123", "", ".", "0x1"])
    expect([text, atomic(text, 7)]).toEqual([text, undefined])
})

it("a headline is rounded down from one on, and exact below", () => {
  const shown = ["31645249267", "99999999", "10000000", "9999999", "1", "0", "-31645249267"].map((units) =>
    rounded(units, 7)
  )
  expect(shown).toEqual(["3,164.52", "9.99", "1.00", "0.9999999", "0.0000001", "0.00", "−3,164.52"])
  expect([rounded("1234", 0), rounded("1234", 2)]).toEqual(["1,234.00", "12.34"])
})

it("a share is never rounded to all or to none", () => {
  expect([percent(9_999, 10_000), percent(1, 10_000), percent(10_000, 10_000), percent(0, 7), percent(1, 0)]).toEqual([
    "99.9 %",
    "< 0.1 %",
    "100 %",
    "0 %",
    "–"
  ])
  expect([percent(1, 3), percent("89", "100")]).toEqual(["33.3 %", "89 %"])
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

const hash = "3f2a91c0ffee".padEnd(64, "0")
const account = `G${"ABCDEFG234567".repeat(5).slice(0, 55)}`
const id = "3f2a91c0-0000-4000-a000-00000000beef"

it.each([
  [`  ${hash}\n`, hash],
  [`"${hash.toUpperCase()}",`, hash],
  [`0x${hash}`, hash],
  [`${hash.slice(0, 30)} \n ${hash.slice(30)}`, hash],
  [`\u200b${account.toLowerCase()}\u200b`, account],
  [`https://stellar.expert/explorer/testnet/tx/${hash}`, hash],
  [`https://stellar.expert/explorer/public/account/${account}?filter=x`, account],
  [`http://127.0.0.1/dashboard#settlement/${id}`, id],
  [`/payee?account=${account}`, account],
  // Other texts stay unchanged.
  ["  weather   of a city ", "weather of a city"],
  [`https://shop.example/tx/${hash}0`, `https://shop.example/tx/${hash}0`],
  ["order_2026-0001-a", "order_2026-0001-a"]
])("what is pasted as %j is searched for as %j", (pasted, searched) => expect(searchedFor(pasted)).toBe(searched))

it("an error is said without its code, with the filter that does not fit", () => {
  expect(sentenceOf(400, { error: "invalid_parameter", details: ["payTo: an address, or a pseudonym of one"] })).toBe(
    "A filter does not fit. Recipient: an address, or a pseudonym of one"
  )
  for (const error of ["temporarily_unavailable", "not_found", "something_else"])
    expect(sentenceOf(500, { error })).not.toContain("_")
  expect(sentenceOf(409, { error: "move_refused", message: "the count must be from 1" })).toBe(
    "The count must be from 1"
  )
  expect(sentenceOf(502, undefined)).toBe("Status 502")
})

it("a reason is chosen by its label, each of which is one reason's", () => {
  takeReasons([...coreReasons, ...exact].map(explainReason))
  expect(reasonsKnown().length).toBeGreaterThan(50)
  for (const word of reasonsKnown()) expect(reasonOf(reasonLabel(word).toUpperCase())).toBe(word)
  expect(reasonOf("invalid_exact_ledger_payload")).toBe("invalid_exact_ledger_payload")
  expect(reasonOf(reasonLabel("settle_stellar_transaction_failed"))).toBe("settle_ledger_transaction_failed")
})

it("every reason has a status, a label, a sentence and a remedy, and one meaning", () => {
  const all = [...coreReasons, ...exact, ...upto, ...batch, ...catalog].map(explainReason)
  expect(all.length).toBeGreaterThan(89)
  expect(new Set(all.map(({ reason }) => reason)).size).toBe(all.length)
  for (const { label, remedy, sentence, status } of all) {
    expect(status).toBeGreaterThanOrEqual(200)
    expect(label).toMatch(/^[A-Z0-9]/)
    for (const text of [sentence, remedy]) expect(text).toMatch(/^[A-Z`].*[.]$/)
  }
})
