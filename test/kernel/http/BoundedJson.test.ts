// JSON from strangers: what is taken, what is refused before it is parsed, and that a fault names a place and never the
// content.
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { parseJson } from "../../../kernel/http/BoundedJson.ts"

const bytes = (text: string) => new TextEncoder().encode(text)
const parse = (text: string) => parseJson(bytes(text))
const faultOf = (text: string | Uint8Array) =>
  Effect.map(Effect.flip(parseJson(typeof text === "string" ? bytes(text) : text)), ({ message }) => message)
const nested = (depth: number) => "[".repeat(depth) + "]".repeat(depth)

describe("parseJson", () => {
  it.effect("takes any JSON within its bounds, as the platform reads it", () =>
    Effect.gen(function* () {
      for (const text of [
        "null",
        "[]",
        "0",
        '"a\\"b\\\\"',
        ' {"a":[1,2,{"b":"}{][,"}],"c":null} ',
        '{"a":1,"b":{"a":1}}',
        nested(32)
      ]) {
        expect(yield* parse(text)).toEqual(JSON.parse(text))
      }
    })
  )

  it.effect("refuses what is empty, cut off, no JSON or not UTF-8", () =>
    Effect.gen(function* () {
      for (const text of [
        "",
        "  \n",
        "{",
        '{"a":',
        '{"a":1,}',
        "[1,]",
        "nul",
        "{'a':1}",
        '"open',
        '"open\\"',
        '{"a":1} {}',
        "NaN",
        "[1}",
        "]",
        "\ufeff{}"
      ]) {
        expect([text, (yield* Effect.exit(parse(text)))._tag]).toEqual([text, "Failure"])
      }
      expect(yield* faultOf(new Uint8Array([0x22, 0xff, 0x22]))).toBe("the body is not UTF-8")
      expect(yield* faultOf(new Uint8Array([0x22, 0xed, 0xa0, 0x80, 0x22]))).toBe("the body is not UTF-8")
    })
  )

  it.effect("refuses depth before anything is parsed, at the first bracket too many", () =>
    Effect.gen(function* () {
      expect(yield* faultOf(nested(33))).toContain("deeper than 32")
      expect(yield* faultOf('{"a":'.repeat(33) + "1" + "}".repeat(33))).toContain("deeper than 32")
      expect(yield* faultOf("[".repeat(262_144))).toBe("nested deeper than 32 levels at character 32")
    })
  )

  it.effect("refuses more values than its bound, in arrays and in objects", () =>
    Effect.gen(function* () {
      expect(yield* faultOf(`[${"0,".repeat(20_000)}0]`)).toContain("more than 20000 values")
      expect(yield* faultOf(`{${Array.from({ length: 11_000 }, (_, i) => `"k${i}":0`).join(",")}}`)).toContain(
        "more than 20000 values"
      )
    })
  )

  it.effect("refuses keys that stand twice or that JavaScript treats specially, however they are written", () =>
    Effect.gen(function* () {
      expect(yield* faultOf('{"amount":"1","amount":"2"}')).toContain("stands twice")
      expect(yield* faultOf('{"amount":"1","\\u0061mount":"2"}')).toContain("stands twice")
      for (const key of ["__proto__", "constructor", "prototype", "\\u005f_proto__"]) {
        expect(yield* faultOf(`{"a":{"${key}":{"isValid":true}}}`)).toContain("forbidden key")
      }
      expect(yield* parse('{"a":"__proto__","b":["a","a"]}')).toEqual({ a: "__proto__", b: ["a", "a"] })
    })
  )

  it.effect("says where a fault is and nothing of what was sent", () =>
    Effect.gen(function* () {
      const fault = yield* faultOf('{"private":"word","private":"word"}')
      expect(fault).toMatch(/at character 18$/)
      expect(fault).not.toContain("private")
    })
  )
})
