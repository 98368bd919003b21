// The `Idempotency-Key` of a request (IETF httpapi draft): 16 to 128 visible ASCII characters, bare or as a quoted
// string. The quotes do not belong to the key. A header that is sent twice arrives joined by a comma and a space, and
// no key contains those.
import { Option } from "effect"

const isKey = /^[\x21-\x7e]{16,128}$/

/** None without the header; undefined if it is not a key. */
export const readIdempotencyKey = (header: string | undefined): Option.Option<string> | undefined => {
  if (header === undefined) return Option.none()
  const quoted = /^"((?:[^"\\]|\\["\\])*)"$/.exec(header)?.[1]
  const key = quoted === undefined ? header : quoted.replace(/\\(["\\])/g, "$1")
  if (!isKey.test(key) || (quoted === undefined && header.startsWith('"'))) return undefined
  return Option.some(key)
}
