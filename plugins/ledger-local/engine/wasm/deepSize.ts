// About how large a value is when written out. A contract can build, from a handful of vectors that repeat each other, a value
// whose XDR would fill the machine; its size is therefore added up from its parts when it is made, never by walking it.
import type { ScVal } from "../Xdr.ts"

const sizes = new WeakMap<ScVal, number>()

/** Bytes of the value's XDR, roughly. Costs a walk over the direct parts only, once each. */
export const deepSizeBytes = (value: ScVal): number => {
  switch (value.type) {
    case 13:
      return 8 + value.bytes.length
    case 14:
      return 8 + value.str.bytes.length
    case 16:
    case 17: {
      const known = sizes.get(value)
      if (known !== undefined) return known
      let size = 12
      if (value.type === 16) for (const item of value.vec ?? []) size += deepSizeBytes(item)
      else for (const { key, val } of value.map ?? []) size += deepSizeBytes(key) + deepSizeBytes(val)
      sizes.set(value, size)
      return size
    }
    case 18:
      return 40
    default:
      return 20
  }
}
