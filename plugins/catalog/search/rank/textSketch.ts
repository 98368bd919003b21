// A sketch of a text in a few bytes, to find near-duplicates: the hashes of its words, the smallest of them where it
// has many. Numbers are no words, so that a series of listings is one text. Pure.

/** The smallest hashes kept, and the least words of a text that can be compared. */
const hashesMax = 32
const wordsMin = 4
/** The share of the words of both texts that near-duplicates have in common. */
const alikeShare = 0.6

/** Sixteen bits: one code unit. */
const hashValues = 65_536

/** FNV-1a over the code units, folded to sixteen bits. */
const hashOf = (word: string): number => {
  let hash = 0x811c9dc5
  for (let at = 0; at < word.length; at++) hash = Math.imul(hash ^ word.charCodeAt(at), 0x01000193)
  return (hash ^ (hash >>> 16)) & 0xffff
}

const wordsOf = (text: string): ReadonlyArray<string> =>
  text
    .normalize("NFKC")
    .toLowerCase()
    .match(/\p{L}{2,}/gu) ?? []

/** Hashes of the words of a text in their order, one a code unit. */
export const wordHashes = (text: string): string => String.fromCharCode(...wordsOf(text).map(hashOf))

/** Code units, whatever pairs they seem to be. */
const codesOf = (hashes: string): ReadonlyArray<number> =>
  Array.from({ length: hashes.length }, (_, at) => hashes.charCodeAt(at))

const sketchOfCodes = (codes: Iterable<number>): string => {
  const rising = [...new Set(codes)].sort((a, b) => a - b)
  return rising.length < wordsMin ? "" : String.fromCharCode(...rising.slice(0, hashesMax))
}

/** The sketch of words' hashes: rising, one a code unit; empty where the text is too short. */
export const sketchOfHashes = (hashes: string): string => sketchOfCodes(codesOf(hashes))

/** The sketch of a text. */
export const sketchOf = (text: string): string => sketchOfHashes(wordHashes(text))

/** Whether two texts are near-duplicates; one that is too short is similar to no other. */
export const areAlike = (a: string, b: string): boolean => {
  const [short, long] = a.length < b.length ? [a.length, b.length] : [b.length, a.length]
  if (short === 0 || short < alikeShare * long) return false
  // Of two long texts the smallest hashes of both represent all of them.
  const probed = long === hashesMax ? hashesMax : Infinity
  // This many words of one text alone exclude a duplicate, whatever the rest have in common: a few decide most pairs.
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
 * For each text, by the hashes of its words (undefined: none), a sketch of what the query matched in it and of the words
 * around that, without those that no other of the texts has: words that were added to make it another text are in none
 * of it. Empty where too little is left.
 */
export const matchedSketches = (texts: ReadonlyArray<string | undefined>, query: string): ReadonlyArray<string> => {
  const asked = new Set(codesOf(wordHashes(query)))
  if (asked.size === 0) return texts.map(() => "")
  // For each hash the last text that has it, from 1 on, and whether another one has it too.
  const lastIn = new Uint16Array(hashValues)
  const isShared = new Uint8Array(hashValues)
  for (const [place, text] of texts.entries())
    for (let at = 0; at < (text?.length ?? 0); at++) {
      const hash = text!.charCodeAt(at)
      if (lastIn[hash] !== 0 && lastIn[hash] !== place + 1) isShared[hash] = 1
      lastIn[hash] = place + 1
    }
  return texts.map((text = "") => {
    const shared = codesOf(text).filter((hash) => isShared[hash] === 1)
    const near = new Set<number>()
    shared.forEach((hash, at) => {
      if (!asked.has(hash)) return
      for (const one of shared.slice(Math.max(0, at - aroundMax), at + aroundMax + 1)) near.add(one)
    })
    return sketchOfCodes(near)
  })
}
