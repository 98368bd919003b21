// Repeatable random numbers for fuzzing: the same seed gives the same sequence (mulberry32).
export class Dice {
  #state: number

  constructor(seed: number) {
    this.#state = seed >>> 0
  }

  /** From 0 to below `bound`. */
  below(bound: number): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296) * bound)
  }

  /** True once in `times`. */
  onceIn(times: number): boolean {
    return this.below(times) === 0
  }

  pick<A>(items: ReadonlyArray<A>): A {
    return items[this.below(items.length)]!
  }

  /** A number that is often an edge case. */
  edgy(): bigint {
    const edges = [0n, 1n, -1n, 2n, 255n, 256n, 65_535n, 65_536n, 0x7fff_ffffn, 0x8000_0000n, 0xffff_ffffn]
    if (this.onceIn(2)) return this.pick(edges)
    return BigInt.asIntN(64, (BigInt(this.below(0x1_0000_0000)) << 32n) | BigInt(this.below(0x1_0000_0000)))
  }
}
