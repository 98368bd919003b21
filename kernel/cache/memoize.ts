// A bounded cache of values computed from repeated texts, such as a header that every request of a client has, or its
// source address. The least recently used texts are evicted, and long texts are not cached, so that no client can fill
// the memory.
import { type CacheOptions, LruCache } from "./LruCache.ts"

/** Maximum length of a cached text, characters. */
const lengthMax = 256

/** The function, with its results for the most recently used texts cached. */
export const memoize = <A>(options: CacheOptions, read: (text: string) => A): ((text: string) => A) => {
  const cache = new LruCache<string, { readonly read: A }>(options)
  return (text) => {
    if (text.length > lengthMax) return read(text)
    const before = cache.get(text)
    if (before !== undefined) return before.read
    const now = { read: read(text) }
    cache.set(text, now)
    return now.read
  }
}
