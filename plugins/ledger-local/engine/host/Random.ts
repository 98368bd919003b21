// Random numbers for contracts, as the network makes them: ChaCha20 from a seed of 32 bytes, which goes through an HMAC
// with a public key first, because its author may have chosen it. A transaction has one generator; each contract frame
// derives its own on first use and may reseed it. Frames do not see each other's numbers. Drawing from ranges and the
// shuffle follow the network's library to the bit, so a seed gives the same numbers as there.
import type { Crypto } from "../../../../kernel/platform/Crypto.ts"

/** The synchronous cryptography that the engine needs: the service behind the kernel's port, given in by its caller. */
export type EngineCrypto = Crypto["Service"]

const MASK64 = (1n << 64n) - 1n
const CONSTANTS = [0x61707865, 0x3320646e, 0x79622d32, 0x6b206574] as const
export const SEED_BYTES = 32
/** The public network's id, which the protocol made the key of every seed's HMAC. */
const EXTRACTOR_KEY = Uint8Array.from(
  "7ac33997544e3175d266bd022439b22cdb16508c01163f26e5cb2a3e1045a979".match(/../g)!,
  (byte) => parseInt(byte, 16)
)
/** Bytes that the network draws from a transaction's generator for internal purposes before any contract draws. */
const DISCARDED_BYTES = 64

type Hmac = Pick<EngineCrypto, "hmacSha256">

const rotate = (value: number, by: number): number => (value << by) | (value >>> (32 - by))

const quarter = (x: Uint32Array, a: number, b: number, c: number, d: number): void => {
  x[a]! += x[b]!
  x[d] = rotate(x[d]! ^ x[a]!, 16)
  x[c]! += x[d]!
  x[b] = rotate(x[b]! ^ x[c]!, 12)
  x[a]! += x[b]!
  x[d] = rotate(x[d]! ^ x[a]!, 8)
  x[c]! += x[d]!
  x[b] = rotate(x[b]! ^ x[c]!, 7)
}

export class Random {
  readonly #start = new Uint32Array(16)
  #block = new Uint32Array(0)
  #at = 0

  /** `seed` has 32 bytes. */
  constructor(seed: Uint8Array) {
    const view = new DataView(seed.buffer, seed.byteOffset, SEED_BYTES)
    this.#start.set(CONSTANTS)
    for (let i = 0; i < 8; i++) this.#start[4 + i] = view.getUint32(4 * i, true)
  }

  #refill(): void {
    const x = Uint32Array.from(this.#start)
    for (let round = 0; round < 10; round++) {
      for (let i = 0; i < 4; i++) quarter(x, i, 4 + i, 8 + i, 12 + i)
      for (let i = 0; i < 4; i++) quarter(x, i, 4 + ((i + 1) % 4), 8 + ((i + 2) % 4), 12 + ((i + 3) % 4))
    }
    for (let i = 0; i < 16; i++) x[i]! += this.#start[i]!
    // The counter has 64 bits.
    this.#start[12]!++
    if (this.#start[12] === 0) this.#start[13]!++
    this.#block = x
    this.#at = 0
  }

  #next32(): number {
    if (this.#at >= this.#block.length) this.#refill()
    return this.#block[this.#at++]!
  }

  #next64(): bigint {
    const low = BigInt(this.#next32())
    return (BigInt(this.#next32()) << 32n) | low
  }

  bytes(length: number): Uint8Array {
    const words = new Uint32Array(Math.ceil(length / 4))
    for (let i = 0; i < words.length; i++) words[i] = this.#next32()
    const bytes = new Uint8Array(words.length * 4)
    const view = new DataView(bytes.buffer)
    words.forEach((word, i) => view.setUint32(4 * i, word, true))
    return bytes.slice(0, length)
  }

  /** From `low` to `high`, both included; both unsigned 64-bit, `low` not above `high`. */
  u64(low: bigint, high: bigint): bigint {
    const range = (high - low + 1n) & MASK64
    if (range === 0n) return this.#next64()
    const zone = MASK64 - ((MASK64 - range + 1n) % range)
    for (;;) {
      const product = this.#next64() * range
      if ((product & MASK64) <= zone) return low + (product >> 64n)
    }
  }

  /** Below `bound`, which is 1 to 2^32 − 1. */
  #below(bound: number): number {
    const range = BigInt(bound)
    const zone = (range << BigInt(Math.clz32(bound))) - 1n
    for (;;) {
      const product = BigInt(this.#next32()) * range
      if ((product & 0xffff_ffffn) <= zone) return Number(product >> 32n)
    }
  }

  shuffled<A>(items: ReadonlyArray<A>): Array<A> {
    const out = [...items]
    for (let i = out.length - 1; i > 0; i--) {
      const other = this.#below(i + 1)
      const item = out[i]!
      out[i] = out[other]!
      out[other] = item
    }
    return out
  }

  /** A generator from a chosen seed. */
  static ofSeed(crypto: Hmac, seed: Uint8Array): Random {
    return new Random(crypto.hmacSha256(EXTRACTOR_KEY, seed))
  }

  /** The generator of a transaction, which seeds the generators of its frames. */
  static ofTransaction(crypto: Hmac, seed: Uint8Array): Random {
    const random = Random.ofSeed(crypto, seed)
    random.bytes(DISCARDED_BYTES)
    return random
  }

  /** Another generator, seeded by this one. */
  child(): Random {
    return new Random(this.bytes(SEED_BYTES))
  }
}
