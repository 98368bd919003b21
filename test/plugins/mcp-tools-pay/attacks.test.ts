// Which test covers which attack on paying agents: the known catalogue by number, attacks considered in the design, and
// attacks found since. Every named test runs the real tool server against an attacking seller, facilitator or caller,
// over HTTP if the attack uses HTTP; a renamed or deleted test is reported here.
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
  [
    "55 a live 402 differs from the catalog",
    http,
    "every term is verified literally against the pinned listing version"
  ],
  ["55 the same of an MCP tool", pay, "all of the seller's terms are verified against the catalog"],
  ["56 two copies differ", http, "conflicting terms, unreadable terms and redirects are refused"],
  ["56 the same of an MCP tool", pay, "differing or unreadable copies of the seller's terms are refused"],
  [
    "57 a second 402 after the payment",
    crooks,
    "a seller that requests payment again fails with PAYMENT_REQUIRED after one payment"
  ],
  ["57 a forged settlement", crooks, "a seller's false settlement claim is overruled by the ledger"],
  ["57 no settlement at all", crooks, "a seller's claimed settlement without one on the ledger is not believed"],
  ["57 a refusal with the money taken", crooks, "a settled payment that the seller calls rejected is delivered later"],
  [
    "58 streams without end, a million events, huge blocks",
    hostile,
    "an MCP seller that streams endlessly gets nothing signed and is capped"
  ],
  [
    "58 a result that instructs the agent",
    http,
    "seller text reaches the agent as data beside the facilitator's receipt"
  ],
  ["59 parallel calls race one budget", pay, "the budget holds over parallel calls, per session and per agent"],
  ["59 a storm of retries", http, "identical concurrent HTTP calls share one payment and its result"],
  ["59 an amount in other decimals", http, "an amount in another spelling is refused, even among a hundred options"],
  ["59 more than a call may cost", pay, "a call above the agent's, operator's or asset's limit is refused"],
  [
    "60 a page under another name of this machine",
    transports,
    "a foreign page or Host name for this machine is refused"
  ],
  ["60 a guessed session, or another caller's", transports, "a session accepts only the key that opened it"],
  ["60 a bearer in the query", transports, "access is open without keys; with keys it requires the header"],
  ["61 a symbolic name as an address", stores, "a symbolic name is connected to only where the operator maps it"],
  [
    "61 secrets of the environment over stdio",
    pay,
    "payment works over stdio with an environment seed that is never shown"
  ],
  ["61 a reference that was tampered with", references, "one identity has exactly one reference spelling"],
  ["62 a signer that signs something else", payer, "an external signer's refusal or wrong response gives no signature"],
  [
    "62 a signature of another payload",
    payer,
    "a signer's response must be the requested payment with the payer's signature"
  ]
]

const foreseen: ReadonlyArray<Held> = [
  ["a price raised between reads", http, "an HTTP seller that lies or requests payment again gets one signature"],
  ["a redirect after the payment", hostile, "an MCP seller answering with redirects or garbage has one payment"],
  ["a 402 in a 200", http, "a resource without a 402 costs nothing, whatever its 200 says"],
  ["a body bomb", http, "deep, long, compressed or trailing bodies are refused with their names"],
  ["another asset of the same symbol", http, "every term is verified literally against the pinned listing version"],
  ["a receipt replayed", http, "an HTTP seller that lies or requests payment again gets one signature"],
  ["header injection", http, "agent arguments cannot change payment headers, framing, path or method"],
  ["an approval replayed", policy, "an operator's approval lets exactly one held payment pass"],
  ["a person's answer replayed", policy, "a person is asked without sessions, and the answer covers one payment"],
  ["calls that race one budget", http, "concurrent calls of an HTTP seller never exceed the budget"],
  ["a listing that instructs the agent", errors, "seller text passes through unchanged, with warnings beside it"]
]

const found: ReadonlyArray<Held> = [
  [
    "402 of one version, then of the other",
    hostile,
    "an HTTP seller that misbehaves after payment gets no second signature"
  ],
  [
    "a Location with credentials",
    hostile,
    "an HTTP seller that abuses the connection before payment gets nothing signed"
  ],
  ["one header twice", hostile, "an HTTP seller that abuses the connection before payment gets nothing signed"],
  ["two receipts in one answer", hostile, "an HTTP seller that misbehaves after payment gets no second signature"],
  ["one price to two recipients", hostile, "an HTTP seller offering one price to two recipients is not paid"],
  [
    "exponents and digits of other scripts",
    http,
    "an amount in another spelling is refused, even among a hundred options"
  ],
  ["a receipt of another payer", http, "an HTTP seller that lies or requests payment again gets one signature"],
  ["101 instead of an answer", hostile, "an HTTP seller that abuses the connection before payment gets nothing signed"],
  [
    "a body, headers, interim answers without end",
    hostile,
    "an HTTP seller that abuses the connection before payment gets nothing signed"
  ],
  [
    "a close in the middle, by HTTP/1.0 too",
    hostile,
    "an HTTP seller that abuses the connection before payment gets nothing signed"
  ],
  [
    "two framings of one answer",
    hostile,
    "an HTTP seller that abuses the connection before payment gets nothing signed"
  ],
  ["compressed bombs", http, "deep, long, compressed or trailing bodies are refused with their names"],
  ["events without end", hostile, "an MCP seller answering with redirects or garbage has one payment"],
  [
    "a name that leads elsewhere at the second lookup",
    safeFetch,
    "pins a host name to the checked address on each request"
  ],
  [
    "one payment sent with several concurrent calls",
    sellers,
    "an MCP example seller sells one call for a payment sent concurrently"
  ],
  ["one call at two replicas concurrently", replicas, "two replicas pay once for the same concurrent call"],
  [
    "an approval taken at two replicas concurrently",
    replicas,
    "two replicas honor an approval once for concurrent calls"
  ]
]

const missing = (all: ReadonlyArray<Held>): ReadonlyArray<string> =>
  all.flatMap(([attack, file, test]) => {
    const text = readFileSync(new URL(`../${file}`, import.meta.url), "utf8")
    return text.includes(test) ? [] : [`${attack}: ${file} has no test "${test}"`]
  })

describe("attacks on agents that pay", () => {
  it("every attack of the catalogue from 55 to 62 has a test", () => {
    expect(missing(catalogued)).toEqual([])
    const numbers = new Set(catalogued.map(([attack]) => Number(attack.slice(0, 2))))
    expect([...numbers]).toEqual([55, 56, 57, 58, 59, 60, 61, 62])
  })

  it("every foreseen or found attack on paying agents has a test", () => {
    expect(missing([...foreseen, ...found])).toEqual([])
    expect([foreseen.length >= 10, found.length >= 10]).toEqual([true, true])
  })

  it("an attack without its test is reported as missing", () => {
    expect(missing([["x", http, "a test that does not exist"]])).toHaveLength(1)
  })
})
