// A module's cost before it runs, against stellar-core's metering of one module, called in the ledger of its upload and
// in a later one: stream `Module_cache_miss_on_immediate_execution`, 466,075 and 297,895 instructions.
import { describe, expect, it } from "vitest"
import type { ContractHost } from "../../../../../plugins/ledger-local/engine/host/HostTypes.ts"
import { InstructionMeter } from "../../../../../plugins/ledger-local/engine/host/InstructionMeter.ts"
import { cpuCosts } from "../../../../../plugins/ledger-local/engine/state/cpuCosts.ts"
import { chargeInstance } from "../../../../../plugins/ledger-local/engine/wasm/moduleCosts.ts"

const CODE_BYTES = 584
const inputs = {
  nInstructions: 119,
  nFunctions: 3,
  nGlobals: 3,
  nTableEntries: 0,
  nTypes: 3,
  nDataSegments: 0,
  nElemSegments: 0,
  nImports: 2,
  nExports: 5,
  nDataSegmentBytes: 0
}
/** Cost of a lookup in the two entries of that call's footprint. */
const LOOKUP = 309

const costOfInstance = (isNew: boolean) => {
  const meter = new InstructionMeter(cpuCosts)
  let lookups = 0
  const get = (): undefined => {
    lookups++
    meter.spend(LOOKUP)
  }
  const host = { meter, storage: { get } } as unknown as ContractHost
  chargeInstance(host, inputs, { wasmHash: new Uint8Array(32), code: new Uint8Array(CODE_BYTES), isNew })
  return { instructions: meter.instructions, lookups }
}

describe("a module's costs", () => {
  it("charges reading and linking a module again in the ledger of its upload", () => {
    const [cached, read] = [costOfInstance(false), costOfInstance(true)]
    expect([cached.lookups, read.lookups]).toEqual([0, 1])
    const real = 466_075 - 297_895
    expect(Math.abs(read.instructions - cached.instructions - real)).toBeLessThanOrEqual(5)
  })
})
