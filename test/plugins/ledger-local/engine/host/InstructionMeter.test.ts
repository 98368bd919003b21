// Our metered instructions against the real node's for the same work, and the limit on them.
import { describe, expect, it } from "vitest"
import { InstructionMeter } from "../../../../../plugins/ledger-local/engine/host/InstructionMeter.ts"
import { cpuCosts, withCpuCosts } from "../../../../../plugins/ledger-local/engine/state/cpuCosts.ts"
import { errorOf, succeeded } from "../World.ts"
import { contract, execute, VOID_BODY, world } from "../wasm/assemble.ts"

/** An acceptable module of `bytes` bytes, padded by a custom section, with as much memory as the real ones. */
const moduleOf = (bytes: number): Uint8Array => {
  const plain = contract({ body: VOID_BODY, memory: [0, 16] })
  const filler = bytes - plain.length - 3
  return Uint8Array.from([...plain, 0, (filler & 127) | 128, filler >> 7, 0, ...Array<number>(filler - 1).fill(0)])
}

describe("the instructions of an upload", () => {
  /** Bytes of code, and the instructions that stellar-core metered for uploading it. */
  const metered = [
    [460, 1_425_303],
    [1_220, 2_047_924],
    [2_926, 3_419_068],
    [3_890, 4_206_630],
    [6_878, 6_621_894]
  ] as const

  it.each(metered)("upload instructions are within 1 % for %i bytes", (bytes, instructions) => {
    const result = succeeded(execute(world(), { type: 2, wasm: moduleOf(bytes) }))
    expect(Math.abs(result.instructions / instructions - 1)).toBeLessThan(0.01)
  })
})

describe("the meter", () => {
  it("ends a call beyond its limit, and gives wasm the remaining fuel", () => {
    const meter = new InstructionMeter(cpuCosts, 1_000)
    expect(meter.fuel).toBe(250)
    meter.spend(600)
    expect(meter.fuel).toBe(100)
    meter.burn(100)
    expect(meter.instructions).toBe(1_000)
    expect(() => meter.spend(1)).toThrow(/instruction limit exceeded/)
  })

  it("follows the network's cost parameters", () => {
    const entries = Array.from({ length: 23 }, (_, i) => ({ constTerm: BigInt(i), linearTerm: 128n * BigInt(i) }))
    const costs = withCpuCosts(cpuCosts, entries)
    expect(costs.valDeser).toEqual({ constant: 7, linear128: 896 })
    expect(costs.parseWasmTypes).toEqual(cpuCosts.parseWasmTypes)
    const meter = new InstructionMeter(costs)
    meter.charge(costs.valDeser, 10)
    expect(meter.instructions).toBe(77)
  })

  it("limits a call to its declared instructions", () => {
    const code = contract({ body: VOID_BODY })
    expect(errorOf(execute(world(), { type: 2, wasm: code }, undefined, 900_000))).toMatch(
      /^Error\(Budget, ExceededLimit\)/
    )
  })
})
