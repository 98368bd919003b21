// The estimate of instructions against what the real node metered for the same work.
import { describe, expect, it } from "vitest"
import { InstructionMeter } from "../../../../../plugins/ledger-local/engine/host/InstructionMeter.ts"
import { WasmRuntime } from "../../../../../plugins/ledger-local/engine/wasm/WasmRuntime.ts"
import { paidWorld, succeeded } from "../World.ts"

describe("the instructions of an upload", () => {
  /** Bytes of code, and what stellar-core metered for uploading it. */
  const metered = [
    [460, 1_425_303],
    [1_220, 2_047_924],
    [2_926, 3_419_068],
    [3_890, 4_206_630],
    [6_878, 6_621_894]
  ] as const

  it.each(metered)("are estimated to a twentieth for %i bytes", (bytes, instructions) => {
    const meter = new InstructionMeter()
    meter.upload(bytes)
    expect(Math.abs(meter.total / instructions - 1)).toBeLessThan(0.05)
  })

  it("are declared by a simulation", () => {
    const world = paidWorld()
    world.contracts = new WasmRuntime()
    const wasm = Uint8Array.from([
      0,
      0x61,
      0x73,
      0x6d,
      1,
      0,
      0,
      0,
      0,
      30,
      17,
      ...new TextEncoder().encode("contractenvmetav0"),
      0,
      0,
      0,
      0,
      0,
      0,
      0,
      26,
      0,
      0,
      0,
      0
    ])
    const access = { mode: "record", randomNonce: () => 1n, useUpgradedAuth: true, allowNonRoot: false } as const
    expect(succeeded(world.run({ type: 2, wasm }, [], { access })).instructions).toBeGreaterThan(1_000_000)
  })
})
