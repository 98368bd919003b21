// The network's charges for a module before any of its code runs: an instance of it each time, and parsing it if the
// node has not done that yet. Earlier uploads are parsed once a ledger.
import type { ContractHost, ContractModule } from "../host/HostTypes.ts"
import type { CpuCostName } from "../state/cpuCosts.ts"
import { contractCodeKey } from "../state/LedgerKeys.ts"
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

/** The network's sizes of a hash, a key, the head of a list, a module's measurements, and an import. */
const HASH_BYTES = 32
const KEY_BYTES = 120
const LIST_BYTES = 24
const INPUTS_BYTES = 40
const IMPORT_BYTES = 32

/** A module that the network has not read before is read once more, copied, parsed, and linked separately. */
const chargeReading = ({ meter, storage }: ContractHost, inputs: CostInputs, module: ContractModule): void => {
  meter.charge(meter.costs.memCpy, HASH_BYTES)
  meter.charge(meter.costs.memAlloc, KEY_BYTES)
  storage.get(contractCodeKey(module.wasmHash))
  meter.chargeList(LIST_BYTES, module.code.length)
  meter.charge(meter.costs.memCpy, INPUTS_BYTES)
  for (const [name, input] of parsing) meter.charge(meter.costs[name], inputs[input])
  meter.chargeList(LIST_BYTES, inputs.nImports * IMPORT_BYTES)
}

/** Charges for an instance, and for reading a module that was uploaded in this very ledger. */
export const chargeInstance = (host: ContractHost, inputs: CostInputs, module: ContractModule): void => {
  const { meter } = host
  if (module.isNew) chargeReading(host, inputs, module)
  for (const [name, input] of instantiating) meter.charge(meter.costs[name], inputs[input])
}
