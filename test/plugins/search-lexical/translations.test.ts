// English translations of Spanish, Russian and Japanese words, by the plugin's lexicon.
import { describe, expect, it } from "vitest"
import { lexicon } from "../../../plugins/search-lexical/lexicon.ts"
import { translationsOf } from "../../../plugins/search-lexical/translations.ts"
import { queryWords } from "../../../plugins/search-lexical/words.ts"

const english = (query: string) => translationsOf(query).flatMap(({ english }) => english)
const covered = (query: string) => translationsOf(query).flatMap(({ covers }) => covers)

describe("the words of a query", () => {
  it.each([
    ["el pronóstico de mañana", "weather"],
    ["traducir una carta", "translation"],
    ["recetas con pollo", "recipe"],
    ["coches de segunda mano", "used"],
    ["нужен прогноз погоды", "weather"],
    ["перевести документы", "translation"],
    ["ресторанов", "restaurant"],
    ["東京の天気", "weather"],
    ["英語に翻訳", "translation"],
    ["駐車場を探す", "parking"]
  ])("%j translates to English %s", (query, word) => {
    expect(english(query)).toContain(word)
  })

  it.each([
    "sale of vino in the casa",
    "find a plan for gas",
    "the republic by plato",
    "is this song mine",
    "rent a horoscope program",
    "email events"
  ])("%j needs no translation", (query) => {
    expect(english(query)).toEqual([])
  })

  it("a word shared with English is Spanish beside Spanish words", () => {
    expect(english("vino")).toEqual([])
    expect(english("vino para la cena")).toContain("wine")
  })

  it("each word belongs to one entry, longest phrase first", () => {
    expect(english("mensajes de texto")).toEqual(["sms", "text", "message"])
    expect(english("電気自動車")).toContain("charging")
    expect(english("電気自動車")).not.toContain("vehicle")
  })

  it("a Japanese word does not match inside other words", () => {
    expect(english("家")).toContain("house")
    expect(english("家来衆")).toEqual([])
    expect(english("バスタオル")).toEqual([])
    expect(english("次のバス")).toContain("bus")
  })

  it("a Japanese word covers the character pairs between two of them", () => {
    expect(covered("中古車の相場")).toEqual(expect.arrayContaining(["中古", "古車", "相場"]))
    expect(covered("中古車の相場")).not.toContain("車の")
  })

  it("translation is bounded for any query length", () => {
    expect(translationsOf("погода рецепт отель банк музыка закон ".repeat(20)).length).toBeLessThan(13)
  })

  it("small words are dropped in their own language alone", () => {
    expect(queryWords("el precio de la luz", "english").words).toEqual(["precio", "luz"])
    expect(queryWords("музыка для сна", "english").words).toEqual(["музыка", "сна"])
    expect(queryWords("from the el train", "english").words).toContain("el")
  })
})

describe("the lexicon", () => {
  it("the lexicon has English and three languages on each line", () => {
    for (const line of lexicon.trim().split("\n")) {
      const parts = line.split(" > ")
      expect(parts, line).toHaveLength(4)
      expect(parts[0]).toMatch(/^[a-z0-9 ]+$/)
      expect(parts[1]).toMatch(/^[a-z0-9 ,*~]+$/)
      expect(parts.every((part) => part.trim() !== "")).toBe(true)
    }
  })
})
