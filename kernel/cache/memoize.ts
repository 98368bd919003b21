// What is read of a text that comes again and again: a header that every request of a client has, the address it comes
// from. The last few are kept by their text, so that nobody fills the memory with texts of his own; a long one is read
// each time.
import { setBounded } from "./setBounded.ts"

/** Characters of a text that is kept. */
const lengthMax = 256

/** The reader, with what it read of up to `max` texts kept; the one that was read first is forgotten first. */
export const memoize = <A>(max: number, read: (text: string) => A): ((text: string) => A) => {
  const known = new Map<string, { readonly read: A }>()
  return (text) => {
    const before = known.get(text)
    if (before !== undefined) return before.read
    const now = { read: read(text) }
    if (text.length > lengthMax) return now.read
    setBounded(known, max, text, now)
    return now.read
  }
}
