// JSON from clients: accepted texts, texts that are refused before they are parsed, and errors that contain a position
// and never the content.
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { parseJson, parseJsonWithMembers } from "../../../kernel/http/BoundedJson.ts"

const bytes = (text: string) => new TextEncoder().encode(text)
const parse = (text: string) => parseJson(bytes(text))
const issueOf = (text: string | Uint8Array) =>
  Effect.map(Effect.flip(parseJson(typeof text === "string" ? bytes(text) : text)), ({ message }) => message)
const nested = (depth: number) => "[".repeat(depth) + "]".repeat(depth)

describe("parseJson", () => {
  it.effect("parses JSON within its bounds as JSON.parse does", () =>
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

  it.effect("refuses empty, truncated, invalid or non-UTF-8 input", () =>
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
      expect(yield* issueOf(new Uint8Array([0x22, 0xff, 0x22]))).toBe("the body is not UTF-8")
      expect(yield* issueOf(new Uint8Array([0x22, 0xed, 0xa0, 0x80, 0x22]))).toBe("the body is not UTF-8")
    })
  )

  it.effect("refuses excessive depth before parsing", () =>
    Effect.gen(function* () {
      expect(yield* issueOf(nested(33))).toContain("deeper than 32")
      expect(yield* issueOf('{"a":'.repeat(33) + "1" + "}".repeat(33))).toContain("deeper than 32")
      expect(yield* issueOf("[".repeat(262_144))).toBe("nested deeper than 32 levels at character 32")
    })
  )

  it.effect("refuses too many values, in arrays and objects", () =>
    Effect.gen(function* () {
      expect(yield* issueOf(`[${"0,".repeat(20_000)}0]`)).toContain("more than 20000 values")
      expect(yield* issueOf(`{${Array.from({ length: 11_000 }, (_, i) => `"k${i}":0`).join(",")}}`)).toContain(
        "more than 20000 values"
      )
    })
  )

  it.effect("refuses duplicate keys and keys special to JavaScript, escaped or not", () =>
    Effect.gen(function* () {
      expect(yield* issueOf('{"amount":"1","amount":"2"}')).toContain("duplicate key")
      expect(yield* issueOf('{"amount":"1","\\u0061mount":"2"}')).toContain("duplicate key")
      for (const key of ["__proto__", "\\u005f_proto__"]) {
        expect(yield* issueOf(`{"a":{"${key}":{"isValid":true}}}`)).toContain("forbidden key")
      }
      for (const key of ["constructor", "prototype", "toString", "hasOwnProperty"]) {
        expect(Object.entries((yield* parse(`{"${key}":1}`)) as object)).toEqual([[key, 1]])
      }
      expect(yield* parse('{"a":"__proto__","b":["a","a"]}')).toEqual({ a: "__proto__", b: ["a", "a"] })
    })
  )

  it.effect("opaque content keeps any key, within the other bounds", () =>
    Effect.gen(function* () {
      const any = (text: string) => parseJson(bytes(text), { depthMax: 4, valuesMax: 20, keys: "any" })
      const text = '{"__proto__":{"a":1},"constructor":[],"a":{"prototype":null,"":0}}'
      expect(JSON.stringify(yield* any(text))).toBe(text)
      expect(yield* any('{"a":1,"a":2}')).toEqual({ a: 2 })
      expect((yield* Effect.flip(any("[[[[[]]]]]"))).message).toContain("nested deeper")
      expect((yield* Effect.flip(any(`[${"0,".repeat(20)}0]`))).message).toContain("more than 20 values")
    })
  )

  it.effect("drops only the member that contains an error", () =>
    Effect.gen(function* () {
      const read = (members: string, after = "") =>
        parseJsonWithMembers(bytes(`{"a":{"x":[1],"members":{${members}}${after}},"z":{"members":{"k":2}}}`), [
          "a",
          "members"
        ])
      const deep = `${"[".repeat(40)}${"]".repeat(40)}`
      const faulty = [
        `"bad":{"k":1,"k":2}`,
        `"bad":{"k":{"__proto__":1}}`,
        `"bad":${deep}`,
        `"bad":{"n":[${"0,".repeat(20_000)}0]}`,
        `"b\\u0061d":{"k":1,"k":2}`,
        `"bad":1 , "bad":2`,
        `"bad":{"members":{"k":1,"k":1}}`,
        `"bad":{"s":"}],\\"","k":1,"k":2}`
      ]
      for (const bad of faulty) {
        for (const text of [`${bad},"good":{"k":[2]}`, `"good":{"k":[2]},${bad}`, `"good":{"k":[2]}, ${bad} `]) {
          const { dropped, value } = yield* read(text)
          expect([bad.slice(0, 40), [...dropped]]).toEqual([bad.slice(0, 40), ["bad"]])
          const { "": _, ...members } = (value as any).a.members
          expect(members).toEqual({ good: { k: [2] } })
          expect((value as any).a.x).toEqual([1])
          expect((value as any).z).toEqual({ members: { k: 2 } })
        }
      }
      const proto = yield* read(`"__proto__":{"k":1},"good":1`)
      expect([[...proto.dropped], Object.hasOwn((proto.value as any).a.members, "__proto__")]).toEqual([
        ["__proto__"],
        false
      ])
      expect([...(yield* read(`"good":1,"constructor":{"prototype":{}}`)).dropped]).toEqual([])
    })
  )

  it.effect("refuses the whole body for an error outside the members", () =>
    Effect.gen(function* () {
      const issueOfMembers = (text: string) =>
        Effect.map(Effect.flip(parseJsonWithMembers(bytes(text), ["a", "members"])), ({ message }) => message)
      expect(yield* issueOfMembers('{"a":{"members":{"k":{"x":1,"x":2}},"members":{}}}')).toContain("duplicate key")
      expect(yield* issueOfMembers('{"a":{"other":{"k":{"x":1,"x":2}}}}')).toContain("duplicate key")
      expect(yield* issueOfMembers('{"a":[{"members":{"k":{"x":1,"x":2}}}]}')).toContain("duplicate key")
      expect(yield* issueOfMembers('{"b":{"members":{"k":{"x":1,"x":2}}}}')).toContain("duplicate key")
      expect(yield* issueOfMembers('{"a":{"members":{"k":{"x":1,"x":2}},"__proto__":1}}')).toContain("forbidden key")
      expect(yield* issueOfMembers('{"a":{"members":{"k":tru}}}')).toBe("the body is not JSON")
      expect(yield* issueOfMembers('{"a":{"members":{"k":{"x":1,"x":2}}')).toBe("the body is not JSON")
    })
  )

  it.effect("an error names its position and quotes no content", () =>
    Effect.gen(function* () {
      const issue = yield* issueOf('{"private":"word","private":"word"}')
      expect(issue).toMatch(/at character 18$/)
      expect(issue).not.toContain("private")
    })
  )
})
