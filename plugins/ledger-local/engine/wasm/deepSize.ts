// About how large and how deep a value is when written out. A contract can build, from a handful of vectors that repeat
// each other, a value whose XDR would fill the machine; its measure is therefore taken from its parts when it is made,
// never by walking it.
import { ScType } from "../xdr/types.ts"
import type { ScVal } from "../xdr/Xdr.ts"

export interface DeepSize {
  /** Bytes of the value's XDR, roughly. */
  readonly bytes: number
  /** Vectors and maps within one another; 0 for a plain value. */
  readonly levels: number
}

const sizes = new WeakMap<ScVal, DeepSize>()
const plain = (bytes: number): DeepSize => ({ bytes, levels: 0 })
const SMALL = plain(20)
const ADDRESS = plain(40)

const sum = (values: Iterable<ScVal>): DeepSize => {
  let bytes = 12
  let levels = 0
  for (const value of values) {
    const part = deepSize(value)
    bytes += part.bytes
    levels = Math.max(levels, part.levels)
  }
  return { bytes, levels: levels + 1 }
}

/** Costs a walk over the direct parts only, once each. */
export const deepSize = (value: ScVal): DeepSize => {
  switch (value.type) {
    case ScType.bytes:
      return plain(8 + value.bytes.length)
    case ScType.string:
      return plain(8 + value.str.bytes.length)
    case ScType.vec:
    case ScType.map: {
      const known = sizes.get(value)
      if (known !== undefined) return known
      const size = sum(
        value.type === ScType.vec ? (value.vec ?? []) : (value.map ?? []).flatMap(({ key, val }) => [key, val])
      )
      sizes.set(value, size)
      return size
    }
    case ScType.address:
      return ADDRESS
    default:
      return SMALL
  }
}
