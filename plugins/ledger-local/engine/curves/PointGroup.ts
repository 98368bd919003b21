// Groups of points on the curves that contracts may use: reads points from bytes and writes them, as the network's host
// does, on the arithmetic of `@noble/curves`. A point is two coordinates, big-endian, x first; an element of a
// quadratic extension is its imaginary part before its real one. Coordinates that are not below the field's prime are
// refused. Checks of the curve and of the subgroup are separate functions, because each has a separate price.
import type { WeierstrassPoint, WeierstrassPointCons } from "@noble/curves/abstract/weierstrass.js"
import { bls12_381 } from "@noble/curves/bls12-381.js"
import { bn254 } from "@noble/curves/bn254.js"

/** An element of the quadratic extension of either curve's field. */
export type Pair = typeof bls12_381.fields.Fp2.ZERO

/** Refused bytes, with the reason. */
export class BadPoint extends Error {}

/** A field's elements and their bytes. */
interface Elements<F> {
  readonly bytes: number
  /** Prime field elements within one, which is how the network counts them. */
  readonly units: number
  readonly read: (bytes: Uint8Array) => F
  readonly write: (element: F) => Uint8Array
}

const bigOfBytes = (bytes: Uint8Array): bigint => bytes.reduce((sum, byte) => (sum << 8n) | BigInt(byte), 0n)

const bytesOf = (value: bigint, length: number): Uint8Array =>
  Uint8Array.from({ length }, (_, i) => Number((value >> BigInt(8 * (length - 1 - i))) & 255n))

const primeField = (prime: bigint, bytes: number): Elements<bigint> => ({
  bytes,
  units: 1,
  read: (content) => {
    const value = bigOfBytes(content)
    if (value >= prime) throw new BadPoint("unable to deserialize")
    return value
  },
  write: (element) => bytesOf(element, bytes)
})

const extension = (field: Elements<bigint>): Elements<Pair> => ({
  bytes: 2 * field.bytes,
  units: 2,
  read: (content) => {
    const [c1, c0] = [field.read(content.subarray(0, field.bytes)), field.read(content.subarray(field.bytes))]
    return { c0, c1 }
  },
  write: ({ c0, c1 }) => Uint8Array.from([...field.write(c1), ...field.write(c0)])
})

/**
 * Allowed values of the free bits of the first byte: with `infinity` one of them marks the point at infinity; without
 * it, all are unset and the point at infinity is all zeros.
 */
interface Flags {
  readonly all: number
  readonly infinity: number
}

/** Coordinates after reading; undefined is the point at infinity. */
export type Coordinates<F> = { readonly x: F; readonly y: F } | undefined

export interface PointGroup<F> {
  readonly name: string
  readonly elements: Elements<F>
  readonly Point: WeierstrassPointCons<F>
  /** Throws `BadPoint` for bytes that do not encode coordinates. */
  readonly read: (bytes: Uint8Array) => Coordinates<F>
  readonly write: (point: WeierstrassPoint<F>) => Uint8Array
  /** True if the point satisfies the curve's equation, and for infinity. */
  readonly isOnCurve: (at: Coordinates<F>) => boolean
  readonly pointAt: (at: Coordinates<F>) => WeierstrassPoint<F>
  readonly isInSubgroup: (point: WeierstrassPoint<F>) => boolean
}

const reading =
  <F>(elements: Elements<F>, flags: Flags) =>
  (content: Uint8Array): Coordinates<F> => {
    if (content.length !== 2 * elements.bytes) throw new BadPoint("invalid input length to deserialize")
    const flagged = content[0]! & flags.all
    if (flagged !== 0 && flagged !== flags.infinity) throw new BadPoint("a flag bit is set that must not be")
    const isEmpty = content.every((byte, i) => byte === (i === 0 ? flagged : 0))
    if (flags.infinity === 0 ? isEmpty : flagged !== 0) {
      if (!isEmpty) throw new BadPoint("the infinity flag is set while other bits are not zero")
      return undefined
    }
    return { x: elements.read(content.subarray(0, elements.bytes)), y: elements.read(content.subarray(elements.bytes)) }
  }

const groupOf = <F>(
  name: string,
  Point: WeierstrassPointCons<F>,
  elements: Elements<F>,
  flags: Flags
): PointGroup<F> => ({
  name,
  elements,
  Point,
  read: reading(elements, flags),
  write: (point) => {
    if (point.is0()) return Uint8Array.from({ length: 2 * elements.bytes }, (_, i) => (i === 0 ? flags.infinity : 0))
    const { x, y } = point.toAffine()
    return Uint8Array.from([...elements.write(x), ...elements.write(y)])
  },
  isOnCurve: (at) => {
    const { Fp } = Point
    return at === undefined || Fp.eql(Fp.sqr(at.y), Fp.add(Fp.mul(Fp.sqr(at.x), at.x), Point.CURVE().b))
  },
  pointAt: (at) => (at === undefined ? Point.ZERO : Point.fromAffine(at)),
  isInSubgroup: (point) => point.is0() || point.isTorsionFree()
})

const blsFlags: Flags = { all: 0b1110_0000, infinity: 0b0100_0000 }
const bnFlags: Flags = { all: 0b1100_0000, infinity: 0 }

const blsField = primeField(bls12_381.fields.Fp.ORDER, 48)
const bnField = primeField(bn254.fields.Fp.ORDER, 32)

export const blsG1 = groupOf("bls12-381 G1", bls12_381.G1.Point, blsField, blsFlags)
export const blsG2 = groupOf("bls12-381 G2", bls12_381.G2.Point, extension(blsField), blsFlags)
export const bnG1 = groupOf("bn254 G1", bn254.G1.Point, bnField, bnFlags)
export const bnG2 = groupOf("bn254 G2", bn254.G2.Point, extension(bnField), bnFlags)
