// The cost of a host function's call by the size of its data. A simulation that omits it declares too little, and the
// network refuses the transaction. The numbers follow from the network's own cost parameters: 16/128 of an instruction
// for each allocated byte, and as much for each copied byte.
import { describe, expect, it } from "vitest"
import { succeeded } from "../World.ts"
import { call, contract, hostImport, I64, section, signed, sized, VOID_BODY } from "./assemble.ts"

const DROP = 0x1a
const u32 = (value: number): Array<number> => [0x42, ...signed(BigInt.asIntN(64, (BigInt(value) << 32n) | 4n))]
const run = (index: number): Array<number> => [0x10, index]
const imports = [
  hostImport("v", "_", 1),
  hostImport("v", "6", 2),
  hostImport("b", "3", 2),
  hostImport("b", "e", 2),
  hostImport("b", "_", 3),
  hostImport("b", "0", 3),
  hostImport("v", "h", 4),
  hostImport("v", "g", 2)
]
const [vecNew, push, bytesFrom, append, serialize, deserialize, unpack, vecFrom] = imports.map((_, i) => run(i))

const instructionsOf = (body: ReadonlyArray<number>, data: ReadonlyArray<number> = []): number => {
  const after = data.length === 0 ? [] : section(11, [0, 0x41, 0, 0x0b, ...sized(data)])
  const code = contract({ imports, locals: [1, 1, I64], body: [...body, ...VOID_BODY], after })
  return succeeded(call(code)).instructions
}

/** Maximum extra cost of a module because larger numbers are longer in its code. */
const MODULE_MAX = 300

/** The extra cost of the second body; both have the same length apart from their numbers. */
const more = (first: ReadonlyArray<number>, second: ReadonlyArray<number>): number =>
  instructionsOf(second) - instructionsOf(first)

const bytes = (length: number): Array<number> => [...u32(0), ...u32(length), ...bytesFrom!]

describe("a host function's price", () => {
  it("holds the handle by which the contract names what it is given", () => {
    const plain = [0x42, 2, DROP]
    // Dispatch 295, an object 442, visiting it 60 and its handle 435; the instructions of wasm are 4 each.
    expect(more(plain, [...vecNew!, DROP])).toBeGreaterThanOrEqual(295 + 442 + 60 + 435)
  })

  it("grows with the bytes that are made from memory, and copied", () => {
    const made = more([...bytes(40), DROP], [...bytes(60_040), DROP])
    expect(made).toBeGreaterThanOrEqual(60_000 / 4)
    expect(made).toBeLessThan(60_000 / 4 + MODULE_MAX)
    const twice = (length: number): Array<number> => [...bytes(length), ...bytes(length), ...append!, DROP]
    const appended = more(twice(40), twice(30_040))
    expect(appended).toBeGreaterThanOrEqual((2 * 30_000) / 4 + 60_000 / 4)
    expect(appended).toBeLessThan((2 * 30_000) / 4 + 60_000 / 4 + MODULE_MAX)
  })

  it("grows with the items of a vector that is made anew", () => {
    const grown = (count: number): Array<number> => [...u32(0), ...u32(count), ...vecFrom!, ...u32(1), ...push!, DROP]
    // Memory of zeros is a list of false: eight bytes an item, allocated once and copied four times, then both again.
    expect(more(grown(10), grown(1_010))).toBe(1_000 * (1 + 1 + 3) + 1_000 * 2)
  })

  it("holds a handle for every object that is written to memory", () => {
    const unpacked = (item: ReadonlyArray<number>): Array<number> => [
      ...vecNew!,
      ...item,
      ...push!,
      ...u32(64),
      ...u32(1),
      ...unpack!,
      DROP
    ]
    expect(more(unpacked(u32(1)), unpacked(vecNew!))).toBeGreaterThanOrEqual(295 + 442 + 60 + 435 + 435)
  })

  it("holds encoding and decoding of a value", () => {
    const there = (length: number): Array<number> => [...bytes(length), ...serialize!, ...deserialize!, DROP]
    const difference = more(there(40), there(4_040))
    // Decoding takes 4369/128 of an instruction for each byte, encoding 26/128.
    expect(difference).toBeGreaterThan(4_000 * ((4_369 + 26) / 128 + 1))
    expect(difference).toBeLessThan(4_000 * ((4_369 + 26) / 128 + 2))
  })
})
