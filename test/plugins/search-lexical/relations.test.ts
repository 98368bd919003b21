// The topics of everyday phrases.
import { describe, expect, it } from "vitest"
import { relatedWords } from "../../../plugins/search-lexical/contract.ts"
import { relationsOf } from "../../../plugins/search-lexical/relations.ts"

describe("a phrase of a query", () => {
  it.each([
    ["an acapella of this song", "vocal"],
    ["which memecoins are new", "token"],
    ["clone my voice", "synthesis"],
    ["minutes of the meeting", "transcription"]
  ])("the phrase in %j is about %s", (query, word) => {
    expect(relatedWords(query)).toContain(word)
  })

  it("a phrase is matched whole, in order, allowing a word between", () => {
    expect(relatedWords("clone that old dusty voice")).not.toContain("synthesis")
    expect(relatedWords("the voice of a clone army")).toContain("synthesis")
    expect(relatedWords("clone a repository")).toEqual([])
  })

  it("each word belongs to one phrase, the longest", () => {
    const covered = relationsOf("scan product with a scan code").flatMap(({ covers }) => covers)
    expect(covered.filter((word) => word === "product")).toHaveLength(1)
    expect(relationsOf("scan product")).toHaveLength(1)
  })

  it("phrase matching is bounded for any query length", () => {
    expect(
      relationsOf("weather bike pdf sms song law tax job hotel invoice crop regex".repeat(20)).length
    ).toBeLessThan(7)
  })
})
