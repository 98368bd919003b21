import { expect, it } from "@effect/vitest"
import { inexactIn, membersOf, textAt } from "../../../plugins/mcp-tools/exactJson.ts"
import { makeRandom } from "../../simulation/random.ts"
import { randomJson } from "../../support/randomJson.ts"

/** A JSON text as a tree: members sorted by name, short numbers as decimals without exponent. */
const plain = (text: string): unknown => {
  const members = membersOf(text)
  const first = text.trim()[0]
  if (first === "{") return members.map(([name, one]) => [name, plain(one)]).sort(([a], [b]) => (a! < b! ? -1 : 1))
  if (first === "[") return members.map(([, one]) => plain(one))
  return first === '"' || /[a-z]/.test(first!) ? JSON.parse(text) : Number(text)
}

it("numbers that a double does not hold are found", () => {
  for (const literal of ["1917043659912705296", "1e400", "0.1234567890123456789", "9007199254740993", "1e-400"])
    expect([literal, inexactIn(`{"a":[${literal}]}`)]).toEqual([literal, expect.stringContaining("a double")])
  for (const literal of [
    "0",
    "-0",
    "0.1",
    "1.50",
    "1e2",
    "1E+21",
    "9007199254740992",
    "-12.5e-3",
    "1e308",
    "123456789012345680000"
  ])
    expect([literal, inexactIn(`[${literal}]`)]).toEqual([literal, undefined])
  expect(inexactIn('"1917043659912705296"')).toBe(undefined)
})

it("names that are repeated in an object are found, escaped or not", () => {
  expect(inexactIn('{"a":1,"\\u0061":2}')).toContain("repeated")
  expect(inexactIn('{"a":{"b":1},"c":[{"b":1},{"b":2}],"b":"a,\\"b\\":1"}')).toBe(undefined)
})

it("what is exact is its value, written again", () => {
  for (let seed = 1; seed <= 2_000; seed++) {
    const random = makeRandom(seed)
    const text = randomJson(random, random.chance(0.5))
    const parsed: unknown = JSON.parse(text)
    // A reader that keeps numbers as their literals and members in a list sees the same in both.
    if (inexactIn(text) === undefined) expect([seed, plain(JSON.stringify(parsed))]).toEqual([seed, plain(text)])
    else expect([seed, inexactIn(JSON.stringify(parsed))]).toEqual([seed, undefined])
    if (typeof parsed !== "object" || parsed === null || inexactIn(text) !== undefined) continue
    const members = membersOf(text).map(([name, one]) => [name, JSON.parse(one) as unknown])
    expect([seed, new Map(members as never)]).toEqual([seed, new Map(Object.entries(parsed))])
  }
})

it("the last of several members counts, as in a value", () => {
  expect(textAt('{"a":{"b":[1, {"c":1e400}]},"a":{"b":[2, {"c" : 1e500 }]}}', ["a", "b", "1", "c"])).toBe("1e500")
  expect(textAt('{"a":1}', ["b"])).toBe(undefined)
})
