// A sketch of a text in a few bytes, to find near-duplicates: the hashes of its words, or the smallest hashes if there
// are many. Numbers do not count as words, so that a numbered series of listings counts as one text. Pure.

/** The smallest hashes kept, and the least words of a text that can be compared. */
const hashesMax = 32
const wordsMin = 4
/** The share of the words of both texts that near-duplicates have in common. */
const alikeShare = 0.6

/** FNV-1a over the code units. */
const hashOf = (word: string): number => {
  let hash = 0x811c9dc5
  for (let at = 0; at < word.length; at++) hash = Math.imul(hash ^ word.charCodeAt(at), 0x01000193)
  return hash
}

const foldedTo16 = (hash: number): number => (hash ^ (hash >>> 16)) & 0xffff

const wordsOf = (text: string): ReadonlyArray<string> =>
  text
    .normalize("NFKC")
    .toLowerCase()
    .match(/\p{L}{2,}/gu) ?? []

/** The hashes of its words in their order, two code units each: shorter ones would be shared by chance. */
export const hashedWords = (text: string): string =>
  wordsOf(text)
    .map(hashOf)
    .map((hash) => String.fromCharCode(hash >>> 16, hash & 0xffff))
    .join("")

const hashesIn = (hashed: string): ReadonlyArray<number> =>
  Array.from(
    { length: hashed.length / 2 },
    (_, at) => (hashed.charCodeAt(2 * at) << 16) | hashed.charCodeAt(2 * at + 1)
  )

/** Rising hashes, one per code unit; empty if the text is too short. */
export const sketchOf = (text: string): string => sketchOfHashes(wordsOf(text).map(hashOf))

const sketchOfHashes = (words: Iterable<number>): string => {
  const hashes = [...new Set(Array.from(words, foldedTo16))].sort((a, b) => a - b)
  return hashes.length < wordsMin ? "" : String.fromCharCode(...hashes.slice(0, hashesMax))
}

/** Whether two texts are near-duplicates; a too short text is not similar to any other. */
export const areAlike = (a: string, b: string): boolean => {
  const [short, long] = a.length < b.length ? [a.length, b.length] : [b.length, a.length]
  if (short === 0 || short < alikeShare * long) return false
  // Of two long texts the smallest hashes of both represent all of them.
  const probed = long === hashesMax ? hashesMax : Infinity
  // If one text has this many words that the other lacks, they are not duplicates, whatever the rest have in common: a
  // few words decide most pairs.
  const ownMax = (1 / alikeShare - 1) * short
  let [at, other, both, own] = [0, 0, 0, 0]
  while (both + own < probed && own <= ownMax && (at < a.length || other < b.length)) {
    const one = at < a.length ? a.charCodeAt(at) : Infinity
    const two = other < b.length ? b.charCodeAt(other) : Infinity
    if (one === two) both++
    else own++
    if (one <= two) at++
    if (two <= one) other++
  }
  return both >= alikeShare * (both + own)
}

/** Hashes that share a slot of the table count as one, so that a few more texts are compared than need be. */
const tableSize = 4_096
const placeOf = (sketch: string, at: number): number => sketch.charCodeAt(at) % tableSize

/**
 * Groups of sketches, by index, that are near-duplicates of the first of the group; at most `most` groups. A text that
 * is too short is in none. Each is compared only with texts that it shares enough hashes with.
 */
export const groupAlike = (sketches: ReadonlyArray<string>, most: number): ReadonlyArray<ReadonlyArray<number>> => {
  const groups: Array<[number, ...Array<number>]> = []
  // For each slot of the table a chain of entries that name the groups with such a hash. Entry 0 ends it.
  const last = new Int32Array(tableSize)
  const before = [0]
  const groupOf = [-1]
  const shared = new Uint32Array(most)
  for (const [place, sketch] of sketches.entries()) {
    const met: Array<number> = []
    for (let at = 0; at < sketch.length; at++)
      for (let entry = last[placeOf(sketch, at)]!; entry > 0; entry = before[entry]!) {
        const group = groupOf[entry]!
        if (shared[group] === 0) met.push(group)
        shared[group]! += 1
      }
    let found = Infinity
    for (const group of met) {
      const first = sketches[groups[group]![0]]!
      const isNear = shared[group]! >= alikeShare * Math.min(sketch.length, first.length)
      if (isNear && group < found && areAlike(first, sketch)) found = group
      shared[group] = 0
    }
    if (found < Infinity) groups[found]!.push(place)
    else if (sketch !== "" && groups.length < most) {
      for (let at = 0; at < sketch.length; at++) {
        before.push(last[placeOf(sketch, at)]!)
        last[placeOf(sketch, at)] = groupOf.push(groups.length) - 1
      }
      groups.push([place])
    }
  }
  return groups
}

/** Words on either side of a match of the query, which are compared with another text's. */
const aroundMax = 6

/**
 * For each text (`hashedWords`; undefined: none), a sketch of the words that the query matched and of the words around
 * them, without words that only this text has. Padding that makes a text look distinct is therefore not in any sketch.
 * Empty if too few words are left.
 */
export const matchedSketches = (texts: ReadonlyArray<string | undefined>, query: string): ReadonlyArray<string> => {
  const asked = new Set(wordsOf(query).map(hashOf))
  if (asked.size === 0) return texts.map(() => "")
  const all = texts.map((text = "") => hashesIn(text))
  const counts = new Map<number, number>()
  for (const words of all) for (const word of new Set(words)) counts.set(word, (counts.get(word) ?? 0) + 1)
  return all.map((words) => {
    const shared = words.filter((word) => counts.get(word)! > 1)
    const near = new Set<number>()
    shared.forEach((word, at) => {
      if (!asked.has(word)) return
      for (const one of shared.slice(Math.max(0, at - aroundMax), at + aroundMax + 1)) near.add(one)
    })
    return sketchOfHashes(near)
  })
}
