// `npm run build:phrasebook`: the small dictionary of semantic search, from the words of other languages to English
// ones. It is derived from Unicode's CLDR (its license is next to the dictionary), which names the same pictures,
// countries, languages, currencies, units and days in every language. The English meaning of a word follows from how
// often both name the same thing: expectation maximization over all of them (IBM model 1 of Brown and others for word
// alignment). The packages have a pinned version and integrity and are fetched when the dictionary is made. The output
// is the same bytes every time; `Phrasebook.ts` has their hash.
//
// A line is a word, as the text splitter yields it, and up to three English ones, the most certain first; lines are
// sorted. Words that are frequent English words themselves ("pain", "gift") are excluded.
import { createHash } from "node:crypto"
import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { wordsOf } from "../../plugins/search-lexical/words.ts"
import { fromPackage } from "./fromPackage.ts"

const version = "48.2.0"
const integrity = {
  annotations: "sha512-DV7A+rEcgUSNTRsVGNGqBZRmAkGfwhGHO5Q1dRwzBoBnVrHWp804JP7/QJdEc66iHmx3+zLWVIMCFLm0lW7PUQ==",
  localenames: "sha512-4o0paYDz0UXhfhChAVFkmVl2CP0YTSEqE6WrC0fNafaSC5u5DAXphxH3SZ1Ujczarikr8DToKZfiok6EqWLdNQ==",
  numbers: "sha512-0EQ+UkVDsyXOlxnWnL1RIENVZFqCnb04D1Yrku0obnOyttbuZz8tHmUd5c5AEvhGS/Gg2zI4fTaCm51LSGITog==",
  dates: "sha512-zMrKvjMO414HDftLr6vKH1fNQHakFNe+F1h4S0eg+zmL4WRi9pI41fxB3UrTJDY42MEM87jCuAw/qlqCgYKcAQ==",
  units: "sha512-BjDC7V46eeXzgalnIumrJ1XQDk8wJaOxNLME4hmkBT9Q0hnzxn3XgtavigPUwnljk7FxlNQW9Wx+hbFrARPrQg=="
} as const

const languages = "ar cs da de el es fa fi fr he hi hu id it ja ko nl no pl pt ro ru sv th tr uk vi zh zh-Hant".split(
  " "
)
const embedded = new URL("../../plugins/search-semantic/embedded/", import.meta.url)
const target = new URL("phrases.txt", embedded)

const turns = 6
const meaningsMax = 3
/** Minimum certainty of the best meaning, and of others relative to it. */
const surenessMin = 0.12
const besideMin = 0.5
/** We assume that the table's most frequent words, up to this rank, are English in any text. */
const englishMax = 12_000

/** Things with a name in every language, by their key: the texts that name them. */
type Named = ReadonlyMap<string, ReadonlyArray<string>>

/** Text at a path of keys in a package's file of one language; empty if the language has no such file. */
const read = (file: string, path: ReadonlyArray<string>): Readonly<Record<string, any>> =>
  existsSync(file) ? path.reduce<any>((at, key) => at[key] ?? {}, JSON.parse(readFileSync(file, "utf8"))) : {}

type Reader = (folder: string, language: string) => ReadonlyArray<readonly [key: string, texts: ReadonlyArray<string>]>

const skinTone = /[\u{1f3fb}-\u{1f3ff}]/u

const readers: Readonly<Record<keyof typeof integrity, Reader>> = {
  annotations: (folder, language) =>
    Object.entries(
      read(join(folder, "annotations", language, "annotations.json"), ["annotations", "annotations"])
    ).flatMap(([sign, { default: words = [], tts = [] }]) =>
      skinTone.test(sign) ? [] : [[sign, [...words, ...tts]] as const]
    ),
  localenames: (folder, language) =>
    ["territories", "languages"].flatMap((kind) =>
      Object.entries(
        read(join(folder, "main", language, `${kind}.json`), ["main", language, "localeDisplayNames", kind])
      ).flatMap(([code, name]) => (/[-_]/.test(code) ? [] : [[`${kind} ${code}`, [name]] as const]))
    ),
  numbers: (folder, language) =>
    Object.entries(
      read(join(folder, "main", language, "currencies.json"), ["main", language, "numbers", "currencies"])
    ).map(([code, { displayName }]) => [`currency ${code}`, [displayName ?? ""]] as const),
  dates: (folder, language) =>
    Object.entries(
      read(join(folder, "main", language, "dateFields.json"), ["main", language, "dates", "fields"])
    ).flatMap(([field, names]) =>
      Object.entries(names as Record<string, unknown>).flatMap(([name, text]) =>
        typeof text === "string" ? [[`date ${field} ${name}`, [text]] as const] : []
      )
    ),
  units: (folder, language) =>
    Object.entries(read(join(folder, "main", language, "units.json"), ["main", language, "units", "long"])).flatMap(
      ([unit, { displayName }]) =>
        displayName === undefined ? [] : [[`unit ${unit}`, [displayName as string]] as const]
    )
}

const named = new Map<string, Map<string, ReadonlyArray<string>>>(
  ["en", ...languages].map((language) => [language, new Map()])
)
for (const [kind, sum] of Object.entries(integrity) as ReadonlyArray<[keyof typeof integrity, string]>)
  fromPackage({ name: `cldr-${kind}-full`, version, integrity: sum }, (folder) => {
    for (const [language, all] of named) for (const [key, texts] of readers[kind](folder, language)) all.set(key, texts)
  })

const small = new Set("a an and at by for from in no not of on or the to with".split(" "))
const wordsIn = (texts: ReadonlyArray<string>): ReadonlyArray<string> => [
  ...new Set(texts.flatMap((text) => wordsOf(text).words).filter((word) => !small.has(word)))
]

type Meanings = Map<string, Map<string, number>>

/** The probability that each word means each English word, from the things that both name. */
const aligned = (theirs: Named, english: Named): Meanings => {
  const pairs = [...theirs].flatMap(([key, texts]) => {
    const [words, meant] = [wordsIn(texts), wordsIn(english.get(key) ?? [])]
    return words.length > 0 && meant.length > 0 ? [{ words, meant }] : []
  })
  let sure: Meanings = new Map()
  for (let turn = 0; turn < turns; turn++) {
    const next: Meanings = new Map()
    for (const { meant, words } of pairs)
      for (const one of meant) {
        const each = words.map((word) => sure.get(word)?.get(one) ?? (turn === 0 ? 1 : 0))
        const all = each.reduce((sum, some) => sum + some, 0)
        if (all === 0) continue
        for (const [at, word] of words.entries()) {
          const row = next.get(word) ?? new Map<string, number>()
          row.set(one, (row.get(one) ?? 0) + each[at]! / all)
          next.set(word, row)
        }
      }
    for (const row of next.values()) {
      const all = [...row.values()].reduce((sum, some) => sum + some, 0)
      for (const [one, some] of row) row.set(one, some / all)
    }
    sure = next
  }
  return sure
}

const table = readFileSync(new URL("words.bin", embedded))
const places = new Map(
  table
    .toString("utf8", 8, 8 + table.readUInt32LE(4))
    .split("\n")
    .map((word, at) => [word, at])
)
const isEnglish = (word: string): boolean => (places.get(word) ?? Infinity) < englishMax
/** A single character counts as a word only in scripts without spaces. */
const isWord = (word: string): boolean => [...word].length > 1 || /\p{Script=Han}/u.test(word)

const book: Meanings = new Map()
for (const language of languages)
  for (const [word, meanings] of aligned(named.get(language)!, named.get("en")!)) {
    if (!isWord(word) || isEnglish(word) || /\d/.test(word)) continue
    const known = [...meanings].filter(([one]) => one !== word && places.has(one)).toSorted((a, b) => b[1] - a[1])
    const surest = known[0]?.[1] ?? 0
    if (surest < surenessMin) continue
    const row = book.get(word) ?? new Map<string, number>()
    for (const [one, sureness] of known)
      if (sureness >= besideMin * surest) row.set(one, Math.max(row.get(one) ?? 0, sureness))
    book.set(word, row)
  }

const lines = [...book]
  .map(([word, row]) => {
    const best = [...row].toSorted((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1))
    const most = best.filter(([, sureness]) => sureness >= besideMin * best[0]![1]).slice(0, meaningsMax)
    return [word, ...most.map(([one]) => one)].join(" ")
  })
  .sort()
const text = `${lines.join("\n")}\n`
writeFileSync(target, text)
console.log(`${lines.length} words, ${Buffer.byteLength(text)} bytes`)
console.log(`sha256 ${createHash("sha256").update(text).digest("hex")}`)
