// A bounded cache of values computed from repeated texts: a header that every request of a client has, the address it
// comes from. The oldest entries are evicted, and long texts are not cached, so that no client can fill the memory.
import { setBounded } from "./setBounded.ts"

/** Characters of a text that is kept. */
const lengthMax = 256

/** The function, with its results for up to `max` texts cached; the oldest entry is evicted first (FIFO). */
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
