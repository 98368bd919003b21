// What everyday phrases are about.
import { describe, expect, it } from "vitest"
import { relatedWords } from "../../../plugins/search-lexical/contract.ts"
import { relationsOf } from "../../../plugins/search-lexical/relations.ts"

describe("a phrase of a query", () => {
  it.each([
    ["an acapella of this song", "vocal"],
    ["which memecoins are new", "token"],
    ["clone my voice", "synthesis"],
    ["minutes of the meeting", "transcription"]
  ])("of %j is about %s", (query, word) => {
    expect(relatedWords(query)).toContain(word)
  })

  it("is found whole, in its order and with a word or so between its own", () => {
    expect(relatedWords("clone that old dusty voice")).not.toContain("synthesis")
    expect(relatedWords("the voice of a clone army")).toContain("synthesis")
    expect(relatedWords("clone a repository")).toEqual([])
  })

  it("takes each word for one phrase, the longest", () => {
    const covered = relationsOf("scan product with a scan code").flatMap(({ covers }) => covers)
    expect(covered.filter((word) => word === "product")).toHaveLength(1)
    expect(relationsOf("scan product")).toHaveLength(1)
  })

  it("is bounded however much is asked", () => {
    expect(
      relationsOf("weather bike pdf sms song law tax job hotel invoice crop regex".repeat(20)).length
    ).toBeLessThan(7)
  })
})
