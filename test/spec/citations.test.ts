import { describe, expect, it } from "vitest"
import { parseSource, sourcesIn } from "../architecture/sources.ts"
import { citationsOf, numbersIn } from "./citations.ts"
import { requirements, sections } from "./sections.ts"

const cited = (text: string) => citationsOf(parseSource("test/x.test.ts", text)).map(({ requirement }) => requirement)

describe("citations", () => {
  it("are read from the end of a name, with commas and ranges", () => {
    expect(numbersIn("refuses [S1]")).toEqual([1])
    expect(numbersIn("refuses [S1, S84]")).toEqual([1, 84])
    expect(numbersIn("has them all [S285–S287,S9]")).toEqual([285, 286, 287, 9])
    expect(numbersIn("has two [S14][S15]")).toEqual([14, 15])
    for (const none of ["refuses", "refuses [S]", "refuses [S1] and more", "refuses S1", "[12]"])
      expect(numbersIn(none)).toEqual([])
  })

  it("count for tests of every kind, and for cases given as data", () => {
    expect(cited('it("a [S1]", () => {}); it.effect("b [S2]", f); it.each([1])("c %s [S3]", f)')).toEqual([1, 2, 3])
    expect(cited('const c = [{ sentence: "a [S4]" }]; part.check(`b ${c} [S5]`, f)')).toEqual([4, 5])
  })

  it("do not count for groups, nor for skipped or failing tests", () => {
    expect(
      cited('describe("a [S1]", () => {}); it.skip("b [S2]", f); it.todo("c [S3]"); it.effect.fails("d [S4]", f)')
    ).toEqual([])
    expect(cited('it.skipIf(true)("a [S5]", f)')).toEqual([])
  })

  it("of a number that is no requirement are an error", () => {
    expect(() => cited('it("a [S346]", f)')).toThrow("x.test.ts:1 cites S346")
    expect(() => cited('it("a [S0]", f)')).toThrow("S0")
  })

  it("of the tests are all of requirements that exist", () => {
    expect(
      sourcesIn("test")
        .filter(({ path }) => !path.startsWith("test/spec/"))
        .flatMap(citationsOf).length
    ).toBeGreaterThan(0)
  })
})

describe("the sections", () => {
  it("hold every requirement once, in order", () => {
    expect(
      sections.flatMap(({ from, to }) => Array.from({ length: to - from + 1 }, (_, index) => from + index))
    ).toEqual(Array.from({ length: requirements }, (_, index) => index + 1))
  })
})
