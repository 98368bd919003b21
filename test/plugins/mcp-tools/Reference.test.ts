import { describe, expect, it } from "vitest"
import { decodeReference, encodeReference, type Identity } from "../../../plugins/mcp-tools/Reference.ts"

const encode = (value: unknown) =>
  `v1.${Buffer.from(typeof value === "string" ? value : JSON.stringify(value)).toString("base64url")}`

describe("references", () => {
  it.each<Identity>([
    { type: "http", url: "https://weather.example/v1/:city", toolName: "" },
    { type: "mcp", url: "https://tools.example/mcp", toolName: "add" },
    { type: "mcp", url: "mcp://calculator", toolName: "Größe \u{1f30d}" }
  ])("a reference carries the identity of $url both ways, with prefix v1. [S193]", (identity) => {
    const ref = encodeReference(identity)
    expect(ref).toMatch(/^v1\.[A-Za-z0-9_-]+$/)
    expect(decodeReference(ref)).toEqual(identity)
  })

  it("one identity has exactly one reference spelling [S199]", () => {
    expect(decodeReference(encode({ t: "http", u: "https://a.example/" }))).toBeDefined()
    for (const other of [
      '{"u":"https://a.example/","t":"http"}',
      '{ "t":"http","u":"https://a.example/"}',
      '{"t":"http","u":"https://a.example/","x":1}'
    ]) {
      expect(decodeReference(encode(other))).toBeUndefined()
    }
  })

  it.each([
    ["nothing", ""],
    [
      "another version",
      encodeReference({ type: "http", url: "https://a.example/", toolName: "" }).replace("v1.", "v2.")
    ],
    ["a URL", "https://a.example/"],
    ["no base64url", "v1.***"],
    ["padding", `${encodeReference({ type: "http", url: "https://a.example/", toolName: "" })}=`],
    ["no JSON", encode("{")],
    ["no object", encode("null")],
    ["an unknown kind", encode({ t: "ftp", u: "https://a.example/" })],
    ["no URL", encode({ t: "http", u: "" })],
    ["a tool of an HTTP resource", encode({ n: "add", t: "http", u: "https://a.example/" })],
    ["an MCP resource without a tool", encode({ t: "mcp", u: "https://a.example/" })],
    ["a URL that is too long", encode({ t: "http", u: `https://a.example/${"a".repeat(2_048)}` })],
    ["a tool's name that is too long", encode({ n: "a".repeat(257), t: "mcp", u: "https://a.example/" })]
  ])("no reference is made of %s [S199]", (_, text) => {
    expect(decodeReference(text)).toBeUndefined()
  })
})
