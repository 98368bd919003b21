// Text and addresses of strangers: declarations beside a payment, resource addresses of the inside, and queries of the
// catalog. Nothing here pays.
import assert from "node:assert/strict"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { assertRefusedVerify, textOf } from "./ask.ts"
import { templateOf } from "./bodies.ts"
import { type Case, Skipped } from "./cases.ts"
import type { World } from "./target.ts"

/** Time that one request of a stranger may take. */
const answerMillisMax = 3_000

const get = async (world: World, path: string): Promise<{ readonly status: number; readonly text: string }> => {
  const started = performance.now()
  const response = await fetch(`${world.target.url}${path}`, {
    redirect: "manual",
    signal: AbortSignal.timeout(answerMillisMax * 2)
  })
  const text = await textOf(response)
  const millis = performance.now() - started
  assert.ok(millis < answerMillisMax, `${path.slice(0, 60)} took ${Math.round(millis)} ms`)
  assert.ok(response.status < 500, `${path.slice(0, 60)} answered ${response.status}: ${text.slice(0, 200)}`)
  return { status: response.status, text }
}

const needsCatalog = async (world: World): Promise<void> => {
  const { status } = await get(world, "/discovery/resources?limit=1")
  if (status === 404 || status === 405) throw new Skipped("the target has no catalog")
}

interface Query {
  readonly attack: number
  readonly name: string
  readonly paths: ReadonlyArray<string>
  /** No row may be the answer. */
  readonly isRefused?: boolean
}

const words = (count: number, word: (index: number) => string) =>
  Array.from({ length: count }, (_, i) => word(i)).join("+")
const search = (query: string) => `/discovery/search?query=${query}`

const queries: ReadonlyArray<Query> = [
  {
    attack: 50,
    name: "forged and oversized cursors",
    isRefused: true,
    paths: [
      "AAAA",
      "eyJvIjoxfQ",
      "v1.abc.def",
      "x".repeat(5_000),
      "%00",
      "..%2F..%2Fetc",
      "999999999999999999999"
    ].flatMap((cursor) => [`/discovery/resources?cursor=${cursor}`, `${search("weather")}&cursor=${cursor}`])
  },
  {
    attack: 50,
    name: "offsets and limits out of range",
    paths: ["-1", "1e9", "NaN", "99999999999999999999", "0x10"].flatMap((value) => [
      `/discovery/resources?offset=${value}`,
      `/discovery/resources?limit=${value}`
    ])
  },
  {
    attack: 51,
    name: "operators, wildcards and quotes in a search",
    paths: [
      "'%20or%201=1--",
      "%25%25%25",
      "a%26!b%7C(c)",
      "%3C-%3E",
      "$$",
      "\\%5C",
      "%00",
      "%F0%9F%92%A9",
      "%D8%00",
      "the"
    ].map(search)
  },
  {
    attack: 51,
    name: "queries at and beyond the limit of length",
    paths: [512, 513, 2_000, 7_000].map((count) => search("%F0%9F%92%A9".repeat(Math.floor(count / 12))))
  },
  {
    attack: 52,
    name: "price filters out of range",
    paths: ["1", "9".repeat(40), "-1", "0001", "1e3", "NaN", ""].map(
      (price) => `${search("weather")}&maxPrice=${price}`
    )
  },
  {
    attack: 80,
    name: "73 unknown words; 40 mistyped ones",
    paths: [search(words(73, (i) => `q${i}zx`)), search(words(40, (i) => `weathr${"abcdefghij"[i % 10]}`))]
  }
]

const bidi = "\u202Emoc.rellig\u202C\u200B\u0000\u001B[31m<img src=x onerror=alert(1)>![](https://beacon.example/x)"

const recursive = { $ref: "#", properties: { a: { $ref: "#/properties/a" } } }
const declarations: ReadonlyArray<readonly [attack: number, name: string, schema: unknown]> = [
  [45, "a schema that refers to itself", recursive],
  [45, "a pattern that takes exponential time", { type: "string", pattern: "^(a+)+$", default: `${"a".repeat(40)}!` }],
  [45, "an enumeration of 100 KB", { enum: Array.from({ length: 10_000 }, (_, index) => `value ${index}`) }],
  [46, "names with direction marks, escapes and markup", { title: bidi, description: bidi }],
  [77, "a schema 40 levels deep", JSON.parse(`${'{"items":'.repeat(40)}{}${"}".repeat(40)}`)]
]

const verifyDeclared = async (world: World, schema: unknown, url?: string): Promise<void> => {
  const body = await templateOf(world.networks[0]!)
  const input = { type: "http", method: "GET", queryParams: { q: "x" } }
  body.paymentPayload.extensions = { bazaar: { info: { input, output: { type: "json" } }, schema } }
  if (url !== undefined) body.paymentPayload.resource.url = url
  const started = performance.now()
  const answer = await world.ask("/verify", body)
  assertRefusedVerify(answer)
  assert.ok(performance.now() - started < answerMillisMax, "the answer took three seconds")
  assert.ok(!answer.text.includes("\u202E") && !answer.text.includes("\u001B"), "the answer repeats control characters")
}

/** Spellings of this machine's address, and addresses that resemble others. */
const inside = (port: number) =>
  [
    "127.0.0.1",
    "2130706433",
    "0x7f000001",
    "017700000001",
    "[::ffff:7f00:1]",
    "[64:ff9b::7f00:1]",
    "localhost.",
    "0"
  ].map((host) => `http://${host}:${port}/latest/meta-data`)

/** Fails if anything at the target calls the listener of `play`. */
const unvisited = async (world: World, play: (port: number) => Promise<void>): Promise<void> => {
  if (!/^(127\.|localhost$|\[::1\]$)/.test(new URL(world.target.url).hostname))
    throw new Skipped("the target is on another machine, so its inside cannot be watched")
  const visits: Array<string> = []
  const server = createServer((request, response) => {
    visits.push(request.url ?? "")
    response.end("{}")
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  try {
    await play((server.address() as AddressInfo).port)
    await new Promise((resolve) => setTimeout(resolve, 2_000))
    assert.deepEqual(visits, [], "the target visited an address of the inside")
  } finally {
    server.closeAllConnections()
    server.close()
  }
}

const lookAlikes = [
  "https://api.example/%252e%252e/admin",
  "https://user:pass@api.example/a",
  "https://xn--pypal-4ve.example/a",
  "https://api.example./a",
  "https://api.example:0443/a",
  "https://api.example/*",
  "javascript:alert(1)",
  `https://api.example/${bidi}`
]

const still = "nothing can move: the payer does not exist"

export const wordCases: ReadonlyArray<Case> = [
  ...queries.map(({ attack, isRefused, name, paths }): Case => ({
    attack,
    on: "facilitator",
    name,
    accepts: isRefused === true ? "status 4xx within three seconds" : "no status 5xx, within three seconds",
    still: "the time of an answer",
    play: async (world) => {
      await needsCatalog(world)
      for (const path of paths) {
        const { status } = await get(world, path)
        if (isRefused === true) assert.ok(status >= 400, `${path.slice(0, 60)} answered ${status}`)
      }
    }
  })),
  ...declarations.map(([attack, name, schema]): Case => ({
    attack,
    on: "facilitator",
    name,
    accepts: "a refusal within three seconds, without control characters",
    still,
    play: (world) => verifyDeclared(world, schema)
  })),
  {
    attack: 45,
    on: "facilitator",
    name: "a schema with a remote reference",
    accepts: "a refusal, and no visit of the reference",
    still,
    play: (world) => unvisited(world, (port) => verifyDeclared(world, { $ref: `http://127.0.0.1:${port}/schema.json` }))
  },
  {
    attack: 49,
    on: "facilitator",
    name: "resources at spellings of this machine's address",
    accepts: "refusals, and no visit of the address",
    still,
    play: (world) =>
      unvisited(world, async (port) => {
        for (const url of inside(port)) await verifyDeclared(world, {}, url)
      })
  },
  {
    attack: 47,
    on: "facilitator",
    name: "resources whose addresses resemble others",
    accepts: "refusals within three seconds",
    still,
    play: async (world) => {
      for (const url of lookAlikes) await verifyDeclared(world, {}, url)
    }
  },
  {
    attack: 129,
    on: "facilitator",
    name: "60 wrong keys, then the right one",
    accepts: "the right key is served",
    still: "the right key's access",
    play: async (world) => {
      if (world.target.key === undefined) throw new Skipped("needs --key")
      const body = await templateOf(world.networks[0]!)
      for (let index = 0; index < 60; index++) {
        const { status } = await world.ask("/verify", body, { authorization: `Bearer wrong-${index}` })
        assert.ok(status === 401 || status === 403 || status === 429, `a wrong key was answered ${status}`)
      }
      assertRefusedVerify(await world.ask("/verify", body))
    }
  },
  {
    // Last of the facilitator's cases: it examines every answer before it.
    attack: 44,
    on: "facilitator",
    name: "detail and oversized headers in every answer of this run",
    accepts: "no stack frame, path or driver's message; at most 16 KB of headers",
    still: "the target's internals",
    play: async (world) => assert.deepEqual([...new Set(world.leaks)].slice(0, 10), [])
  }
]
