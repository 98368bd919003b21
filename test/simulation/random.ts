// A seeded source of chance: the same seed gives the same run, on every machine. The generator is mulberry32.

export interface Random {
  /** From 0 up to, not including, 1. */
  readonly next: () => number
  readonly chance: (probability: number) => boolean
  /** An integer from `min` to `max`, both possible. */
  readonly int: (min: number, max: number) => number
  readonly pick: <A>(items: ReadonlyArray<A>) => A
  readonly bytes: (length: number) => Uint8Array
}

export const makeRandom = (seed: number): Random => {
  let state = (seed ^ 0x9e3779b9) >>> 0
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
  const int = (min: number, max: number) => min + Math.floor(next() * (max - min + 1))
  return {
    next,
    chance: (probability) => next() < probability,
    int,
    pick: (items) => items[int(0, items.length - 1)]!,
    bytes: (length) => Uint8Array.from({ length }, () => int(0, 255))
  }
}
