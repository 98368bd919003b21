// Corrects an unknown word: to a known one within one edit (a letter less, more or other, or two swapped), the
// commonest of them. The first letter is taken as correct, so that few words are candidates. Two edits match too many
// words; those are resolved by the words that listings hold. Pure, in some hundredths of a millisecond.

/** A shorter word with a slip may be too many words. */
const lengthMin = 5
const lengthMax = 24
const isPlain = (word: string): boolean => /^[a-z]+$/.test(word)

/** Words of one length with one first letter, the commonest first; their letters one behind another. */
interface Alike {
  readonly positions: ReadonlyArray<number>
  readonly letters: Uint8Array
}

/** Whether a word is within one edit of the word at `from`, of `length` letters, given the same first letter. */
const isOneSlip = (word: Uint8Array, letters: Uint8Array, from: number, length: number): boolean => {
  const short = Math.min(word.length, length)
  let same = 1
  while (same < short && word[same] === letters[from + same]) same++
  let tail = 0
  const left = short - same
  while (tail < left && word[word.length - 1 - tail] === letters[from + length - 1 - tail]) tail++
  if (word.length !== length) return tail === left
  const isSwapped = word[same] === letters[from + same + 1] && word[same + 1] === letters[from + same]
  return left - tail === 1 || (left - tail === 2 && isSwapped)
}

export class Spelling {
  readonly #words: ReadonlyArray<string>
  #groups: ReadonlyMap<string, Alike> | undefined

  /** `words` are in the order of their frequency. */
  constructor(words: ReadonlyArray<string>) {
    this.#words = words
  }

  /** The commonest word that a slip makes of this one; never the word itself. */
  likeliest(word: string): string | undefined {
    if (word.length < lengthMin || word.length > lengthMax || !isPlain(word)) return undefined
    const all = (this.#groups ??= this.#group())
    const letters = new TextEncoder().encode(word)
    let first = this.#words.length
    for (const length of [word.length - 1, word.length, word.length + 1]) {
      const group = all.get(`${word[0]}${length}`)
      const found = group?.positions.find(
        (position, at) => position > first || isOneSlip(letters, group.letters, at * length, length)
      )
      first = Math.min(first, found ?? first)
    }
    return this.#words[first]
  }

  #group(): ReadonlyMap<string, Alike> {
    const positions = [...this.#words.keys()].filter((position) => isPlain(this.#words[position]!))
    const groups = Map.groupBy(positions, (position) => `${this.#words[position]![0]}${this.#words[position]!.length}`)
    return new Map(
      Array.from(groups, ([key, positions]): [string, Alike] => {
        const letters = new TextEncoder().encode(positions.map((position) => this.#words[position]!).join(""))
        return [key, { positions, letters }]
      })
    )
  }
}
