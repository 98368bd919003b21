// What the network charges for a module before any of its code runs: an instance of it each time, and reading it when
// the node has not done that already, which is once a ledger for what was uploaded before.
import type { InstructionMeter } from "../host/InstructionMeter.ts"
import type { CpuCostName } from "../state/cpuCosts.ts"
import type { CostInputs } from "./readModule.ts"

type Charge = readonly [name: CpuCostName, input: keyof CostInputs]

const parsing: ReadonlyArray<Charge> = [
  ["parseWasmInstructions", "nInstructions"],
  ["parseWasmFunctions", "nFunctions"],
  ["parseWasmGlobals", "nGlobals"],
  ["parseWasmTableEntries", "nTableEntries"],
  ["parseWasmTypes", "nTypes"],
  ["parseWasmDataSegments", "nDataSegments"],
  ["parseWasmElemSegments", "nElemSegments"],
  ["parseWasmImports", "nImports"],
  ["parseWasmExports", "nExports"],
  ["parseWasmDataSegmentBytes", "nDataSegmentBytes"]
]

const instantiating: ReadonlyArray<Charge> = [
  ["instantiateWasmInstructions", "nInstructions"],
  ["instantiateWasmFunctions", "nFunctions"],
  ["instantiateWasmGlobals", "nGlobals"],
  ["instantiateWasmTableEntries", "nTableEntries"],
  ["instantiateWasmTypes", "nTypes"],
  ["instantiateWasmDataSegments", "nDataSegments"],
  ["instantiateWasmElemSegments", "nElemSegments"],
  ["instantiateWasmImports", "nImports"],
  ["instantiateWasmExports", "nExports"],
  ["instantiateWasmDataSegmentBytes", "nDataSegmentBytes"]
]

/** Charges for an instance; `isNew` is true for a module that was uploaded in this very ledger. */
export const chargeInstance = (meter: InstructionMeter, inputs: CostInputs, isNew: boolean): void => {
  if (isNew) for (const [name, input] of parsing) meter.charge(meter.costs[name], inputs[input])
  for (const [name, input] of instantiating) meter.charge(meter.costs[name], inputs[input])
}
