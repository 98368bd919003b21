// JSON that `jsonb` accepts, whatever text third parties sent: every other character keeps its value.
import { describe, expect, it } from "vitest"
import { storableJson } from "../../../kernel/database/storableJson.ts"

describe("storableJson", () => {
  it.each([
    ["NUL", "a\u0000b", "a\ufffdb"],
    ["half a pair at the end", "\u{1f600}".slice(0, 1), "\ufffd"],
    ["halves in the wrong order", "\ude00\ud83d", "\ufffd\ufffd"],
    ["a backslash before NUL", "\\\u0000", "\\\ufffd"]
  ])("replaces %s", (_, text, stored) => {
    expect(JSON.parse(storableJson({ [text]: [text] }))).toEqual({ [stored]: [stored] })
  })

  it.each([["\u{1f600}"], ["\\u0000"], ["\\\\ud83d"], ["\u0001\u001f\u007f"], ['"\\']])("keeps %j", (text) => {
    expect(storableJson({ text })).toBe(JSON.stringify({ text }))
  })
})
