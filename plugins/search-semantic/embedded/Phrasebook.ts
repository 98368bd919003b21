// The small dictionary that ships with the plugin (`phrases.txt`, made by `npm run build:phrasebook`): English
// translations of words of other languages. Loaded only if its hash matches the constant below. It stays one text of
// sorted lines with the offsets of the lines, some 5 MB: a map would take three times as much. Pure.

export const phrasesHash = "95624a6a8bbca498cb5513ff58f870ff46b391058d01b7dba71e4c73acb55a37"

/** A shorter word's forms are other words. */
const formLengthMin = 5
/** Maximum letters in the differing endings of two forms of one word. */
const endingMax = 2
/** Number of words to compare before and after the position of a word in the sorted lines. */
const neighboursMax = 8
/** Minimum length of the pieces of a compound. */
const pieceMin = 4

const sharedLength = (a: string, b: string): number => {
  let at = 0
  while (at < a.length && a[at] === b[at]) at++
  return at
}

export class Phrasebook {
  readonly #text: string
  readonly #starts: Uint32Array

  /** The text's lines are sorted by code units and terminated: a word, and its English separated by blanks. */
  constructor(text: string) {
    this.#text = text
    const starts: Array<number> = []
    for (let at = 0, end = text.indexOf("\n"); end >= 0; at = end + 1, end = text.indexOf("\n", at)) starts.push(at)
    this.#starts = Uint32Array.from(starts)
  }

  #lineAt(position: number): string {
    const start = this.#starts[position]
    return start === undefined ? "" : this.#text.slice(start, this.#text.indexOf("\n", start))
  }

  #wordAt(position: number): string {
    return this.#lineAt(position).split(" ", 1)[0]!
  }

  /** The first position with a word that sorts at or after this one. */
  #positionOf(word: string): number {
    let [low, high] = [0, this.#starts.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if (this.#wordAt(middle) < word) low = middle + 1
      else high = middle
    }
    return low
  }

  /** The English of a word, most certain first; empty for an unknown word. */
  meanings(word: string): ReadonlyArray<string> {
    const [found, ...meant] = this.#lineAt(this.#positionOf(word)).split(" ")
    return found === word ? meant : []
  }

  /** The English of a word through another form in the book: one with another ending. */
  meaningsOfForm(word: string): ReadonlyArray<string> {
    if (word.length < formLengthMin) return []
    const position = this.#positionOf(word)
    const forms = Array.from({ length: 2 * neighboursMax }, (_, at) => position - neighboursMax + at).flatMap((at) => {
      const form = this.#wordAt(at)
      const shared = sharedLength(form, word)
      const isForm = shared >= formLengthMin - 1 && Math.max(form.length, word.length) - shared <= endingMax
      return isForm ? [{ form, shared }] : []
    })
    const [best] = forms.toSorted((a, b) => b.shared - a.shared || a.form.length - b.form.length)
    return best === undefined ? [] : this.meanings(best.form)
  }

  /** The English of a compound's pieces, if the book has both: "Benzinpreis". */
  meaningsOfPieces(word: string): ReadonlyArray<string> {
    for (let at = word.length - pieceMin; at >= pieceMin; at--) {
      const [head, tail] = [this.meanings(word.slice(0, at)), this.meanings(word.slice(at))]
      if (head.length > 0 && tail.length > 0) return [...head, ...tail]
    }
    return []
  }
}
