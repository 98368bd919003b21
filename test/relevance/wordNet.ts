// Word relations from WordNet: synonyms, kinds, similar words and parts. Its database files (`data.noun`, `index.noun`
// and so on) are read according to their format's description. Rare senses are ignored, since a query means the usual
// one.
import { readFileSync } from "node:fs"
import { join } from "node:path"

/** Weight of a relation, by the symbol of a pointer; synonyms have weight 1. */
const pointers: Readonly<Record<string, number>> = { "@": 0.5, "~": 0.5, "&": 0.5, $: 0.5, "^": 0.5, "+": 0.7 }
/**
 * Number of senses of a word that count, in the order of their frequency, and the weight reduction for each further
 * one.
 */
const sensesMax = 4
const furtherSense = 0.3

const parts = [
  ["noun", "n"],
  ["verb", "v"],
  ["adj", "a"],
  ["adv", "r"]
] as const

interface Pointer {
  readonly sign: string
  readonly target: string
  /** Words of both sets, counted from 1; 0 means all of them. */
  readonly from: number
  readonly to: number
}

interface Synset {
  readonly words: ReadonlyArray<string>
  readonly pointers: ReadonlyArray<Pointer>
}

const linesOf = (folder: string, file: string): ReadonlyArray<string> =>
  readFileSync(join(folder, file), "latin1")
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("  "))

const synsetOf = (line: string): Synset => {
  const fields = line.split(" | ")[0]!.split(" ")
  const count = Number.parseInt(fields[3]!, 16)
  const pointersAt = 5 + 2 * count
  return {
    words: Array.from({ length: count }, (_, at) => fields[4 + 2 * at]!.toLowerCase().replace(/\(.*\)/, "")),
    pointers: Array.from({ length: Number(fields[pointersAt - 1]) }, (_, at) => {
      const [sign, offset, part, places] = fields.slice(pointersAt + 4 * at)
      return {
        sign: sign!,
        target: `${part === "s" ? "a" : part}${offset}`,
        from: Number.parseInt(places!.slice(0, 2), 16),
        to: Number.parseInt(places!.slice(2), 16)
      }
    })
  }
}

/** By word: its related words, with weights above 0 and up to 1. */
export const relatedWords = (
  folder: string,
  isKnown: (word: string) => boolean
): ReadonlyMap<string, ReadonlyMap<string, number>> => {
  const synsets = new Map<string, Synset>()
  const senses = new Map<string, number>()
  for (const [file, part] of parts) {
    for (const line of linesOf(folder, `data.${file}`)) synsets.set(`${part}${line.slice(0, 8)}`, synsetOf(line))
    for (const line of linesOf(folder, `index.${file}`)) {
      const fields = line.trim().split(" ")
      for (const [at, offset] of fields.slice(-Number(fields[2])).entries())
        senses.set(`${fields[0]} ${part}${offset}`, at)
    }
  }
  const related = new Map<string, Map<string, number>>()
  const relate = (a: string, b: string, says: number): void => {
    if (a === b || !isKnown(a) || !isKnown(b)) return
    for (const [one, other] of [
      [a, b],
      [b, a]
    ] as const) {
      const known = related.get(one) ?? new Map<string, number>()
      known.set(other, Math.max(known.get(other) ?? 0, says))
      related.set(one, known)
    }
  }
  const usual = (id: string) =>
    synsets.get(id)!.words.flatMap((word, at) => {
      const sense = senses.get(`${word} ${id}`) ?? sensesMax
      return sense < sensesMax ? [{ word, place: at + 1, sense }] : []
    })
  for (const [id, synset] of synsets) {
    const own = usual(id)
    for (const a of own) {
      for (const b of own) relate(a.word, b.word, 1 / (1 + furtherSense * Math.max(a.sense, b.sense)))
      for (const { from, sign, target, to } of synset.pointers) {
        const says = pointers[sign]
        if (says === undefined || (from !== 0 && from !== a.place)) continue
        for (const b of usual(target))
          if (to === 0 || to === b.place)
            relate(a.word, b.word, says / (1 + furtherSense * (from === 0 ? Math.max(a.sense, b.sense) : 0)))
      }
    }
  }
  return related
}
