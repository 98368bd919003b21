// Which test holds which attack on agents that pay: the catalogue of known ones by number, those that the tools were
// built against, and those found since. Every named test runs the real tool server against a seller, a facilitator or a
// caller that does it, over HTTP where the attack comes over HTTP; one that is renamed or lost is missed here.
import { readFileSync } from "node:fs"
import { describe, expect, it } from "vitest"

type Held = readonly [attack: string, file: string, test: string]

const pay = "mcp-tools-pay/pay.daily.test.ts"
const http = "mcp-tools-pay/http.daily.test.ts"
const hostile = "mcp-tools-pay/hostile.daily.test.ts"
const crooks = "mcp-tools-pay/crooks.slow.test.ts"
const policy = "mcp-tools-pay/policy.daily.test.ts"
const payer = "mcp-tools-pay/payer.test.ts"
const stores = "mcp-tools-pay/stores.slow.test.ts"
const replicas = "mcp-tools-pay/replicas.slow.test.ts"
const sellers = "mcp-tools-pay/sellers.daily.test.ts"
const transports = "mcp-tools/transports.daily.test.ts"
const errors = "mcp-tools/faults.test.ts"
const references = "mcp-tools/Reference.test.ts"
const safeFetch = "../kernel/http/safeFetch.test.ts"

const catalogued: ReadonlyArray<Held> = [
  ["55 a live 402 differs from the catalog", http, "every term is held against the pinned version, word for word"],
  ["55 the same of an MCP tool", pay, "holds everything the seller asks for against the catalog"],
  ["56 two copies differ", http, "two copies of its terms that differ, an unreadable one and a redirect are refused"],
  ["56 the same of an MCP tool", pay, "refuses copies of the seller's terms that differ"],
  ["57 a second 402 after the payment", crooks, "and asks for payment again gets none: PAYMENT_REQUIRED"],
  [
    "57 a forged settlement",
    crooks,
    "and lies about the settlement is not believed: the ledger says what was paid, and the content is delivered"
  ],
  ["57 no settlement at all", crooks, "and never settles it, but says so, is not believed either"],
  [
    "57 a refusal with the money taken",
    crooks,
    "and settles it, and answers with an error that calls it rejected, delivers it for the same payment later"
  ],
  ["58 streams without end, a million events, huge blocks", hostile, "and holds nobody up for longer than the cap"],
  ["58 a result that instructs the agent", http, "may write what it likes to the agent: it comes as data"],
  ["59 parallel calls race one budget", pay, "is held over parallel calls, for a session and over all sessions"],
  ["59 a storm of retries", http, "is paid once by identical calls made at once"],
  ["59 an amount in other decimals", http, "an amount in any other spelling is another amount"],
  ["59 more than a call may cost", pay, "refuses what a call may not cost: by the agent, the operator, or the asset"],
  ["60 a page under another name of this machine", transports, "is no web page, and nobody who was told another name"],
  ["60 a guessed session, or another caller's", transports, "gives a session to nobody but the key that opened it"],
  ["60 a bearer in the query", transports, "and with keys only who sends one, in the header alone"],
  ["61 a symbolic name as an address", stores, "is never connected to by itself, and leads where the operator says"],
  ["61 secrets of the environment over stdio", pay, "with a seed from the environment, which is nowhere to be seen"],
  [
    "61 a reference that was tampered with",
    references,
    "are one for one identity: another spelling of the same content is none"
  ],
  ["62 a signer that signs something else", payer, "that refuses, or answers with something else, has not signed"],
  ["62 a signature of another payload", payer, "is the payment that was asked for with the payer's own signature"]
]

const foreseen: ReadonlyArray<Held> = [
  [
    "a price raised between looks",
    http,
    "and asks again, lies, redirects, or answers too much gets no second signature"
  ],
  ["a redirect after the payment", hostile, "has one payment, which went nowhere else"],
  ["a 402 in a 200", http, "that asks for nothing costs nothing, also when its words ask for money in a 200"],
  ["a body bomb", http, "bombs are refused by name: deep, many, long, compressed, with something behind them"],
  ["another asset of the same symbol", http, "every term is held against the pinned version, word for word"],
  ["a receipt replayed", http, "and asks again, lies, redirects, or answers too much gets no second signature"],
  ["header injection", http, "what an agent gives changes neither headers that pay or frame, nor the path"],
  ["an approval replayed", policy, "holds a payment for an operator, whose approval lets one payment pass"],
  [
    "a person's answer replayed",
    policy,
    "asks the person behind a client without sessions too, whose answer is good for"
  ],
  ["calls that race one budget", http, "does not get more than the budget from calls made at once"],
  ["a listing that instructs the agent", errors, "pass through unchanged, hostile or not, with warnings beside them"]
]

const found: ReadonlyArray<Held> = [
  ["402 of one version, then of the other", hostile, "after it is paid gets no second signature"],
  ["a Location with credentials", hostile, "before it is paid gets nothing signed, whatever it does"],
  ["one header twice", hostile, "before it is paid gets nothing signed, whatever it does"],
  ["two receipts in one answer", hostile, "after it is paid gets no second signature"],
  ["one price to two recipients", hostile, "that offers one price to two recipients"],
  ["exponents and digits of other scripts", http, "an amount in any other spelling is another amount"],
  ["a receipt of another payer", http, "and asks again, lies, redirects, or answers too much gets no second signature"],
  ["101 instead of an answer", hostile, "before it is paid gets nothing signed, whatever it does"],
  ["a body, headers, interim answers without end", hostile, "before it is paid gets nothing signed, whatever it does"],
  ["a close in the middle, by HTTP/1.0 too", hostile, "before it is paid gets nothing signed, whatever it does"],
  ["two framings of one answer", hostile, "before it is paid gets nothing signed, whatever it does"],
  ["compressed bombs", http, "bombs are refused by name: deep, many, long, compressed"],
  ["events without end", hostile, "after it is paid and answers with a redirect or with rubbish"],
  ["a name that leads elsewhere at the second look", safeFetch, "pins a public name to the address it was judged by"],
  ["one payment sent with several calls at once", sellers, "sells one call for a payment that is sent with several"],
  ["one call at two replicas at once", replicas, "pay once for one call that is made at both at once"],
  ["an approval taken at two replicas at once", replicas, "honour an approval once: asked for at one"]
]

const missing = (all: ReadonlyArray<Held>): ReadonlyArray<string> =>
  all.flatMap(([attack, file, test]) => {
    const text = readFileSync(new URL(`../${file}`, import.meta.url), "utf8")
    return text.includes(test) ? [] : [`${attack}: ${file} has no test "${test}"`]
  })

describe("attacks on agents that pay", () => {
  it("of the catalogue, 55 to 62, are each held by a test", () => {
    expect(missing(catalogued)).toEqual([])
    const numbers = new Set(catalogued.map(([attack]) => Number(attack.slice(0, 2))))
    expect([...numbers]).toEqual([55, 56, 57, 58, 59, 60, 61, 62])
  })

  it("that were foreseen, and those found since, are each held by a test", () => {
    expect(missing([...foreseen, ...found])).toEqual([])
    expect([foreseen.length >= 10, found.length >= 10]).toEqual([true, true])
  })

  it("are missed when their test is gone", () => {
    expect(missing([["x", http, "a test that nobody wrote"]])).toHaveLength(1)
  })
})
