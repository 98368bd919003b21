// The approximate encoded size and depth of a value. From a handful of vectors that repeat each other, a contract can
// build a value whose XDR would exhaust memory. So the measure is computed from the value's parts at its creation,
// never by walking the value.
import { HostError } from "../host/HostError.ts"
import { ScType } from "./types.ts"
import type { ScVal } from "./Xdr.ts"

interface DeepSize {
  /** Bytes of the value's XDR, roughly. */
  readonly bytes: number
  /** Vectors and maps within one another; 0 for a plain value. */
  readonly levels: number
}

const sizes = new WeakMap<ScVal, DeepSize>()
const plain = (bytes: number): DeepSize => ({ bytes, levels: 0 })
const SMALL = plain(20)
const ADDRESS = plain(40)

/** A value that has others within it. */
type Nesting = Extract<ScVal, { type: 16 } | { type: 17 }>

const isNesting = (value: ScVal): value is Nesting => value.type === ScType.vec || value.type === ScType.map

const forEachPart = (value: Nesting, visit: (part: ScVal) => void): void => {
  if (value.type === ScType.vec) return value.vec?.forEach(visit)
  for (const { key, val } of value.map ?? []) {
    visit(key)
    visit(val)
  }
}

const sizeOfPlain = (value: ScVal): DeepSize => {
  switch (value.type) {
    case ScType.bytes:
      return plain(8 + value.bytes.length)
    case ScType.string:
      return plain(8 + value.str.bytes.length)
    case ScType.address:
      return ADDRESS
    default:
      return SMALL
  }
}

const sum = (value: Nesting): DeepSize => {
  let bytes = 12
  let levels = 0
  forEachPart(value, (part) => {
    const size = isNesting(part) ? sizes.get(part)! : sizeOfPlain(part)
    bytes += size.bytes
    levels = Math.max(levels, size.levels)
  })
  return { bytes, levels: levels + 1 }
}

/**
 * Visits the direct parts only, once each, except of values that were never measured. It does not recurse: a contract
 * can nest a value far more deeply than the stack of this machine reaches.
 */
export const deepSize = (value: ScVal): DeepSize => {
  if (!isNesting(value)) return sizeOfPlain(value)
  const cachedSize = sizes.get(value)
  if (cachedSize !== undefined) return cachedSize
  const pending: Array<Nesting> = [value]
  for (let next = pending.at(-1); next !== undefined; next = pending.at(-1)) {
    const before = pending.length
    if (!sizes.has(next)) {
      forEachPart(next, (part) => {
        if (isNesting(part) && !sizes.has(part)) pending.push(part)
      })
      if (pending.length === before) sizes.set(next, sum(next))
    }
    if (pending.length === before) pending.pop()
  }
  return sizes.get(value)!
}

/** The network converts no value that is nested this deeply. */
const VALUE_LEVELS_MAX = 100

/** True for a value that is nested more deeply than the network converts. */
export const isTooDeep = (value: ScVal): boolean => deepSize(value).levels >= VALUE_LEVELS_MAX

/** The error of the network's host for such a value. */
export const tooDeep = (): HostError => HostError.of("Context", "ExceededLimit", "value is nested too deeply")
