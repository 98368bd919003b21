// The evidence of words before and after a catalog has been counted.
import { describe, expect, it } from "vitest"
import { commonShareOf, singularOf } from "../../../plugins/search-lexical/commonWords.ts"
import { discriminativeTerms } from "../../../plugins/search-lexical/contract.ts"
import { evidenceOf, fullEvidence, isMedium, priorEvidence } from "../../../plugins/search-lexical/evidence.ts"

const small = { documents: 60, origins: 60 }
const large = { documents: 100_000, origins: 20_000 }
const held = (origins: number, documents = origins) => ({ documents, origins })

describe("the evidence of a word", () => {
  it("a word that names the medium is no evidence", () => {
    for (const word of ["api", "APIs".toLowerCase(), "endpoints", "service", "tools", "json", "http", "paid"]) {
      expect(isMedium(held(1), small, commonShareOf(word)), word).toBe(true)
      expect(priorEvidence(word), word).toBe(0)
    }
    for (const word of ["weather", "translation", "email", "image", "stock", "ap"]) {
      expect(isMedium(held(5), small, commonShareOf(word)), word).toBe(false)
      expect(priorEvidence(word), word).toBe(1)
    }
  })

  it("a word used by many origins becomes evidence", () => {
    expect(isMedium(held(3_000), large)).toBe(true)
    expect(isMedium(held(200), large)).toBe(false)
  })

  it("evidence counts origins, not listings of one", () => {
    expect(isMedium(held(1, 30_000), large)).toBe(false)
    expect(evidenceOf(held(3_000, 30_000), large)).toBeLessThan(0.1 * evidenceOf(held(1, 30_000), large))
    expect(evidenceOf(held(1), large)).toBe(fullEvidence(large))
  })

  it("a small catalog of one trade keeps full evidence", () => {
    expect(isMedium(held(20), small)).toBe(false)
  })

  it("listings without evidence make no word frequent", () => {
    const flooded = { documents: 1_050, origins: 50, proven: true }
    const [asked, other] = [held(5, 1_005), held(5, 5)]
    expect(evidenceOf(asked, flooded) / evidenceOf(other, flooded)).toBeGreaterThan(0.3)
    expect(evidenceOf(asked, { ...flooded, proven: false })).toBeLessThan(0.1)
    expect(evidenceOf(held(0, 1_000), flooded)).toBeLessThanOrEqual(fullEvidence(flooded))
  })

  it("evidence counts documents until origins have been counted", () => {
    const uncounted = { documents: 100_000, origins: 0 }
    expect(evidenceOf(held(0, 10), uncounted)).toBeGreaterThan(evidenceOf(held(0, 1_000), uncounted))
  })

  it("singular and plural of a noun have the same evidence", () => {
    expect(["services", "queries", "status", "news", "gas"].map(singularOf)).toEqual([
      "service",
      "query",
      "status",
      "new",
      "gas"
    ])
  })
})

const frames = [
  (question: string) => `find me an API to ${question}`,
  (question: string) => `I need a tool that can ${question} please`,
  (question: string) => `paid endpoint for ${question} in JSON`,
  (question: string) => `best ${question} service`,
  (question: string) => `which x402 service lets me ${question}?`
]

describe("an agent's framing", () => {
  it.each(["translate a letter", "remove the background of a photo", "exchange rates"])(
    "framing leaves only words of the medium beside %j",
    (question) => {
      const bare = discriminativeTerms(question)
      for (const frame of frames)
        expect(discriminativeTerms(frame(question)).filter((word) => priorEvidence(word) > 0)).toEqual(bare)
    }
  )

  it.each([
    ["necesito una API para traducir texto", "traducir texto"],
    ["ich brauche eine API für Wetter bitte", "Wetter"],
    ["мне нужен сервис чтобы найти погоду", "погоду"],
    ["東京の天気を教えてください", "東京の天気"],
    ["帮我找一个可以翻译文件", "翻译文件"]
  ])("an agent's framing contributes nothing in %j", (framed, question) => {
    const asked = new Set(discriminativeTerms(framed))
    for (const word of discriminativeTerms(question)) expect(asked.has(word), word).toBe(true)
    for (const word of ["necesito", "brauche", "bitte", "нужен", "教え", "くだ", "帮我", "可以"])
      expect(asked.has(word)).toBe(false)
  })
})
