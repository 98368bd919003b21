// Malicious declarations: each is refused or cleaned as specified, in time, and the payment that carries it is
// unaffected.
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { describe } from "vitest"
import { databaseKinds } from "../../support/databases.ts"
import { startFacilitator } from "../../support/facilitator.ts"
import {
  browse,
  declaring,
  explain,
  type Json,
  mcpDeclaration,
  outcomes,
  queryDeclaration,
  verified
} from "./support.ts"
import { catalogWorld } from "./catalogWorld.ts"

const ok = "https://shop.example.com/item"

const withSchema = (schema: unknown): Json => ({ ...queryDeclaration(), schema })
const withInput = (change: Json): Json =>
  queryDeclaration({ inputSchema: change["schema"] ?? {}, input: change["input"] ?? {} })
const nested = (depth: number): unknown => (depth === 0 ? {} : { a: nested(depth - 1) })
const doubling = (levels: number): Json => ({
  $ref: "#/$defs/a0",
  $defs: Object.fromEntries(
    Array.from({ length: levels }, (_, at) => [
      `a${at}`,
      at === levels - 1 ? {} : { allOf: [{ $ref: `#/$defs/a${at + 1}` }, { $ref: `#/$defs/a${at + 1}` }] }
    ])
  )
})
const branching = {
  properties: { input: { $ref: "#/$defs/n" } },
  $defs: { n: { allOf: [1, 2, 3].map(() => ({ additionalProperties: { $ref: "#/$defs/n" } })) } }
}

/** The refused declarations, with their public reasons. */
const refused: ReadonlyArray<
  readonly [name: string, declared: { url?: unknown; extension?: unknown; about?: Json }, reason: string]
> = [
  ["no URL", {}, "missing_resource_url"],
  ["an empty URL", { url: "" }, "missing_resource_url"],
  ["a URL that is none", { url: "not a url" }, "missing_resource_url"],
  ["a URL that is a number", { url: 7 }, "missing_resource_url"],
  ["a URL of 5 000 characters", { url: `https://a.example.com/${"x".repeat(5_000)}` }, "missing_resource_url"],
  ["a javascript URL", { url: "javascript:alert(1)" }, "missing_resource_url"],
  ["a file URL", { url: "file:///etc/passwd" }, "missing_resource_url"],
  ["a data URL", { url: "data:text/html,x" }, "missing_resource_url"],
  ["a user name in the URL", { url: "https://good.example.com@evil.example.com/" }, "missing_resource_url"],
  ["a bidirectional override in the URL", { url: "https://a.example.com/\u202egnp.exe" }, "missing_resource_url"],
  ["plain http", { url: "http://shop.example.com/item" }, "insecure_origin"],
  ["localhost", { url: "https://localhost/x" }, "local_origin"],
  ["localhost with a dot behind", { url: "https://localhost./x" }, "local_origin"],
  ["a name below localhost", { url: "https://a.localhost/x" }, "local_origin"],
  ["a .local name", { url: "https://printer.local/x" }, "local_origin"],
  ["a .internal name", { url: "https://metadata.google.internal/x" }, "local_origin"],
  ["a name without a dot", { url: "https://intranet/x" }, "local_origin"],
  ["loopback", { url: "https://127.0.0.1/x" }, "local_origin"],
  ["loopback in decimal", { url: "https://2130706433/x" }, "local_origin"],
  ["loopback in octal", { url: "https://0177.0.0.1/x" }, "local_origin"],
  ["loopback in hex", { url: "https://0x7f000001/x" }, "local_origin"],
  ["loopback, shortened", { url: "https://127.1/x" }, "local_origin"],
  ["the zero address", { url: "https://0.0.0.0/x" }, "local_origin"],
  ["a private range", { url: "https://10.1.2.3/x" }, "local_origin"],
  ["another private range", { url: "https://172.31.255.255/x" }, "local_origin"],
  ["the third private range", { url: "https://192.168.1.1:8443/x" }, "local_origin"],
  ["carrier-grade NAT", { url: "https://100.64.0.1/x" }, "local_origin"],
  ["the metadata service", { url: "https://169.254.169.254/latest/meta-data" }, "local_origin"],
  ["multicast", { url: "https://239.1.1.1/x" }, "local_origin"],
  ["IPv6 loopback", { url: "https://[::1]/x" }, "local_origin"],
  ["IPv6 unspecified", { url: "https://[::]/x" }, "local_origin"],
  ["IPv6 unique local", { url: "https://[fd00::1]/x" }, "local_origin"],
  ["IPv6 link local", { url: "https://[fe80::1]/x" }, "local_origin"],
  ["IPv4 mapped into IPv6", { url: "https://[::ffff:127.0.0.1]/x" }, "local_origin"],
  ["IPv4 mapped in hex", { url: "https://[::ffff:7f00:1]/x" }, "local_origin"],
  ["IPv4 compatible", { url: "https://[::127.0.0.1]/x" }, "local_origin"],
  ["NAT64", { url: "https://[64:ff9b::7f00:1]/x" }, "local_origin"],
  ["6to4", { url: "https://[2002:7f00:1::]/x" }, "local_origin"],
  ["an extension that is a string", { url: ok, extension: "boo" }, "schema_invalid"],
  ["an extension that is an array", { url: ok, extension: [1] }, "schema_invalid"],
  ["no info", { url: ok, extension: { schema: {} } }, "schema_invalid"],
  [
    "an unknown kind of input",
    { url: ok, extension: { info: { input: { type: "ftp" } }, schema: {} } },
    "schema_invalid"
  ],
  ["an unknown method", { url: ok, extension: queryDeclaration({ method: "BREW" }) }, "schema_invalid"],
  ["no schema", { url: ok, extension: { info: queryDeclaration()["info"] } }, "schema_invalid"],
  [
    "info that does not match its schema",
    { url: ok, extension: withInput({ schema: { required: ["city"] }, input: {} }) },
    "schema_invalid"
  ],
  [
    "a remote $ref",
    { url: ok, extension: withSchema({ $ref: "https://evil.example.com/schema.json" }) },
    "schema_invalid"
  ],
  ["a relative $ref", { url: ok, extension: withSchema({ $ref: "other.json" }) }, "schema_invalid"],
  ["a dangling $ref", { url: ok, extension: withSchema({ $ref: "#/$defs/none" }) }, "schema_invalid"],
  [
    "an $id that moves the base",
    { url: ok, extension: withSchema({ $id: "https://evil.example.com/", $ref: "#" }) },
    "schema_invalid"
  ],
  ["a $ref to itself", { url: ok, extension: withSchema({ $ref: "#" }) }, "schema_invalid"],
  [
    "a $ref loop through allOf",
    {
      url: ok,
      extension: withSchema({
        $ref: "#/$defs/a",
        $defs: { a: { allOf: [{ $ref: "#/$defs/b" }] }, b: { anyOf: [{ $ref: "#/$defs/a" }] } }
      })
    },
    "schema_invalid"
  ],
  ["references that double forty times", { url: ok, extension: withSchema(doubling(40)) }, "schema_invalid"],
  [
    "references that branch at each level",
    {
      url: ok,
      extension: { ...withSchema(branching), info: { input: { type: "http", method: "GET", queryParams: nested(11) } } }
    },
    "schema_invalid"
  ],
  ["a dynamic reference", { url: ok, extension: withSchema({ $dynamicRef: "#x" }) }, "schema_invalid"],
  [
    "another dialect",
    { url: ok, extension: withSchema({ $schema: "http://json-schema.org/draft-07/schema#" }) },
    "schema_invalid"
  ],
  [
    "a pattern that wants backtracking",
    {
      url: ok,
      extension: withInput({ schema: { properties: { a: { pattern: "^(?=(a+)+$)b" } } }, input: { a: "b" } })
    },
    "schema_invalid"
  ],
  [
    "a pattern with a back reference",
    { url: ok, extension: withInput({ schema: { properties: { a: { pattern: "(a*)\\1" } } }, input: { a: "b" } }) },
    "schema_invalid"
  ],
  [
    "a pattern that is none",
    { url: ok, extension: withInput({ schema: { properties: { a: { pattern: "(" } } }, input: { a: "b" } }) },
    "schema_invalid"
  ],
  [
    "a pattern that unfolds",
    {
      url: ok,
      extension: withInput({ schema: { properties: { a: { pattern: "((a{100}){100}){100}" } } }, input: { a: "b" } })
    },
    "schema_invalid"
  ],
  [
    "two thousand subschemas",
    {
      url: ok,
      extension: withInput({
        schema: { properties: Object.fromEntries(Array.from({ length: 2_000 }, (_, at) => [`p${at}`, {}])) },
        input: {}
      })
    },
    "schema_invalid"
  ],
  [
    "an enormous enum",
    {
      url: ok,
      extension: withInput({
        schema: { properties: { a: { enum: Array.from({ length: 9_000 }, (_, at) => `v${at}`) } } },
        input: {}
      })
    },
    "metadata_too_large"
  ],
  [
    "a long example of the input",
    { url: ok, extension: withInput({ input: { a: "x".repeat(20_000) } }) },
    "metadata_too_large"
  ],
  [
    "more metadata than is taken",
    { url: ok, extension: { ...queryDeclaration(), padding: "x".repeat(140_000) } },
    "metadata_too_large"
  ],
  ["a tool without a name", { url: ok, extension: mcpDeclaration("") }, "missing_tool_name"],
  ["a tool whose name hides something", { url: ok, extension: mcpDeclaration("add\u200b") }, "missing_tool_name"],
  [
    "a tool whose name is cut within a character",
    { url: ok, extension: mcpDeclaration(`${"x".repeat(127)}\u{1f600}`) },
    "missing_tool_name"
  ],
  [
    "a member's name that no database stores",
    {
      url: ok,
      extension: withInput({ schema: { additionalProperties: { type: "number" } }, input: { "\u0000\ud800": "x" } })
    },
    "schema_invalid"
  ],
  [
    "a tool without a schema of its input",
    { url: ok, extension: mcpDeclaration("add", { inputSchema: 7 }) },
    "schema_invalid"
  ],
  [
    "a symbolic name with a query of commands",
    { url: "mcp://x/../../y z", extension: mcpDeclaration("add") },
    "missing_resource_url"
  ]
]

/** Cases below for which the header reports dropped names, tags or an icon. */
const droppedIn = new Map([
  ["a service name that is not plain", "serviceName"],
  ["a service name that is too long", "serviceName"],
  ["tags of all kinds", "tags"],
  ["an icon at the metadata service", "iconUrl"],
  ["an icon that runs code", "iconUrl"]
])

/** The listing after a field was dropped; `absent` must not appear in the public body. */
const cleaned: ReadonlyArray<
  readonly [
    name: string,
    declared: { url: string; extension?: unknown; about?: Json },
    absent: ReadonlyArray<string>,
    shows: Json
  ]
> = [
  [
    "terminal sequences in a description",
    { url: "https://c.example.com/1", about: { description: "\u001b[31mred\u001b[0m\u0007 alert" } },
    ["\\u001b", "[31m"],
    { description: "red alert" }
  ],
  [
    "bidirectional and invisible characters",
    { url: "https://c.example.com/2", about: { description: "pay\u200b \u202eevil\u2066 \u{e0041}me\u0000" } },
    ["\u200b", "\u202e", "\\u0000"],
    { description: "pay evil me" }
  ],
  [
    "a service name that is not plain",
    { url: "https://c.example.com/3", about: { serviceName: "Pаypal" } },
    ["Pаypal"],
    {}
  ],
  [
    "a service name that is too long",
    { url: "https://c.example.com/4", about: { serviceName: "x".repeat(33) } },
    ["x".repeat(33)],
    {}
  ],
  [
    "tags of all kinds",
    {
      url: "https://c.example.com/5",
      about: { tags: ["a", "A", 7, "", "b\n", "x".repeat(40), "c", "d", "e", "f", "g"] }
    },
    ["b\\n"],
    { tags: ["a", "c", "d", "e", "f"] }
  ],
  [
    "an icon at the metadata service",
    { url: "https://c.example.com/6", about: { iconUrl: "http://169.254.169.254/i.png" } },
    ["iconUrl"],
    {}
  ],
  [
    "an icon that runs code",
    { url: "https://c.example.com/7", about: { iconUrl: "javascript:alert(1)" } },
    ["iconUrl"],
    {}
  ],
  [
    "a description longer than the limit",
    { url: "https://c.example.com/8", about: { description: "y".repeat(9_000) } },
    ["y".repeat(4_001)],
    { description: "y".repeat(4_000) }
  ],
  [
    "an output example that is too long",
    { url: "https://c.example.com/9", extension: queryDeclaration({ example: { a: "z".repeat(17_000) } }) },
    ["zzzz"],
    {}
  ],
  [
    "a template that climbs",
    { url: "https://c.example.com/10", extension: queryDeclaration({ routeTemplate: "/a/../../b" }) },
    ["routeTemplate"],
    { resource: "https://c.example.com/10" }
  ],
  [
    "a template that climbs, escaped twice",
    { url: "https://c.example.com/11", extension: queryDeclaration({ routeTemplate: "/a/%252e%252e/b" }) },
    ["routeTemplate"],
    { resource: "https://c.example.com/11" }
  ],
  [
    "a template of another origin",
    { url: "https://c.example.com/12", extension: queryDeclaration({ routeTemplate: "//evil.example.com/x" }) },
    ["evil"],
    { resource: "https://c.example.com/12" }
  ],
  [
    "a template that the URL does not fit",
    { url: "https://c.example.com/13", extension: queryDeclaration({ routeTemplate: "/users/:id" }) },
    ["routeTemplate"],
    { resource: "https://c.example.com/13" }
  ],
  ["a host with a dot behind", { url: "https://c.example.com./14" }, [], { resource: "https://c.example.com/14" }],
  [
    "an internationalised host",
    { url: "https://bücher.example.com/15" },
    ["bücher"],
    { resource: "https://xn--bcher-kva.example.com/15" }
  ],
  [
    "needless escapes and dot segments in the path",
    { url: "https://c.example.com/a/../%31%36/%2fb" },
    [],
    { resource: "https://c.example.com/16/%2Fb" }
  ],
  [
    "unknown fields",
    {
      url: "https://c.example.com/17",
      extension: { ...queryDeclaration(), evil: { payTo: "me" } },
      about: { evil: 1 }
    },
    ["evil"],
    {}
  ],
  [
    "markup, which is data",
    {
      url: "https://c.example.com/18",
      about: { description: "<img src=x onerror=alert(1)> ![x](https://t.example.com/p.png)" }
    },
    [],
    { description: "<img src=x onerror=alert(1)> ![x](https://t.example.com/p.png)" }
  ],
  [
    "a pattern that would run away elsewhere",
    {
      url: "https://c.example.com/19",
      extension: withInput({ schema: { properties: { a: { pattern: "^(a+)+$" } } }, input: { a: "aaaa" } })
    },
    [],
    {}
  ],
  [
    "broken Unicode",
    { url: "https://c.example.com/20", about: { description: "a\ud800b" } },
    ["\\ud800"],
    { description: "ab" }
  ]
]

describe.each(databaseKinds)("hostile declarations on %s", (database) => {
  it.live(
    `${refused.length} hostile declarations are refused [S20, S21, S24, S25, S254–S257, S288, S289, S293, S294]`,
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const { declare, facilitator } = yield* catalogWorld({
            database,
            closeMillis: 1_000,
            set: [
              "catalog_security.require_https_origins=true",
              "catalog_security.allow_local_origins=false",
              "catalog_security.probe_origins=false"
            ]
          })
          const body = yield* declare({ url: ok })
          const outcomes: Array<unknown> = []
          for (const [name, { about, extension, url }] of refused) {
            const paymentPayload = {
              ...body.paymentPayload,
              resource: { ...(url === undefined ? {} : { url }), ...about },
              extensions: { catalog: extension ?? queryDeclaration() }
            }
            const { answer, outcome } = yield* verified(facilitator, { ...body, paymentPayload })
            expect(answer.headers.get("extension-responses")!.length, name).toBeLessThanOrEqual(2_048)
            outcomes.push([name, answer.json.isValid, outcome])
          }
          expect(outcomes).toEqual(
            refused.map(([name, , rejectedReason]) => [name, true, { status: "rejected", rejectedReason }])
          )
          expect((yield* browse(facilitator)).items).toEqual([])
          const why = yield* explain(facilitator, "https://127.0.0.1/x")
          expect(why["listings"]).toEqual([])
          expect(new Set(why["items"].map(({ decision, reason }: Json) => `${decision} ${reason}`))).toEqual(
            new Set(["rejected local_origin"])
          )
          expect(JSON.stringify(why)).not.toMatch(/by its name|detail|digest/)
          // Text that no database stores keeps back no other observation.
          expect(JSON.stringify(yield* explain(facilitator, ok))).toContain("x".repeat(127))
          expect((yield* facilitator.settle(body)).json.success).toBe(true)
        })
      ),
    240_000
  )

  it.live(
    `${cleaned.length} hostile declarations are listed without their unusable fields`,
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const { facilitator, payer, payTo } = yield* catalogWorld({
            database,
            closeMillis: 1_000,
            set: ["catalog_security.allow_local_origins=false", "catalog_security.probe_origins=false"]
          })
          for (const [name, { about, extension, url }, absent, shows] of cleaned) {
            const declared = { payer, payTo, url, extension, ...(about === undefined ? {} : { about }) }
            const { outcome } = yield* verified(facilitator, yield* declaring(facilitator, declared))
            const dropped = droppedIn.get(name)
            expect(outcome, name).toEqual({
              status: "success",
              ...(dropped === undefined ? {} : { dropped: [dropped] })
            })
            const listed = (yield* browse(facilitator, "?limit=1"))["items"][0]
            expect(listed, name).toMatchObject(shows)
            const text = JSON.stringify(listed)
            for (const word of absent) expect(text.includes(word), `${name}: ${JSON.stringify(word)}`).toBe(false)
          }
          expect((yield* browse(facilitator))["pagination"].total).toBe(cleaned.length)
        })
      ),
    240_000
  )

  it.live(
    "a refused payment carries no declaration result in its header [S327]",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const facilitator = yield* startFacilitator({ database })
          const payer = yield* facilitator.account(0n)
          const body = yield* declaring(facilitator, {
            payer,
            payTo: (yield* facilitator.account()).publicKey(),
            url: ok
          })
          const answer = yield* facilitator.verify(body)
          expect(answer.json.isValid).toBe(false)
          expect(outcomes(answer)).toBeUndefined()
          expect((yield* browse(facilitator))["items"]).toEqual([])
        })
      ),
    240_000
  )
})
