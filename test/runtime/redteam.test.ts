// The red team's table, and its result for a facilitator that accepts everything.
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { expect, it } from "vitest"
import { attacks } from "../../runtime/redteam/attacks.ts"
import { pageOf, totalOf } from "../../runtime/redteam/card.ts"
import { cases, playCases } from "../../runtime/redteam/run.ts"

it("numbers every attack once, with cases or a reason", () => {
  expect(attacks.map(({ number }) => number)).toEqual(Array.from({ length: 133 }, (_, index) => index + 1))
  const played = new Set(cases.map(({ attack }) => attack))
  expect(attacks.filter(({ number, skipped }) => played.has(number) === (skipped !== undefined))).toEqual([])
})

it("names each case of a kind once", () => {
  const names = cases.map(({ attack, name, on }) => `${on} ${attack} ${name}`)
  expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([])
})

it("fails a facilitator that accepts everything", async () => {
  const kinds = [{ x402Version: 2, scheme: "exact", network: "stellar:testnet" }]
  const answers: Readonly<Record<string, object>> = { "/supported": { kinds } }
  const accepting = { isValid: true, success: true, transaction: "\u001B[31m<script>", network: "" }
  const server = createServer((request, response) => {
    request.resume().on("end", () => response.end(JSON.stringify(answers[request.url ?? ""] ?? accepting)))
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const card = await playCases(
    { url, kind: "facilitator" },
    { accepts: ({ attack, pays }) => attack === 42 || pays === true }
  ).finally(() => {
    server.closeAllConnections()
    server.close()
  })
  expect(card.held).toBe(0)
  expect(card.failed).toBeGreaterThan(20)
  expect(card.skipped).toBeGreaterThan(90)
  expect(totalOf(card)).toContain("0 held")
  expect(pageOf([card])).not.toContain("<script")
  expect(pageOf([card])).not.toContain("\u001B")
  expect(pageOf([card])).toContain("needs --ledger")
})
