// The network's cost parameters of instructions: for each kind of work a constant and a rate by size, in 128ths. The
// list is the network's own (protocol 27), of which the ones named here are used; its configuration entry is read over
// it. A name's number is its place in the entry.
export interface CpuCost {
  readonly constant: number
  /** Instructions per byte or item, times 128. */
  readonly linear128: number
}

const places = {
  wasmInsnExec: 0,
  valSer: 6,
  valDeser: 7,
  computeSha256Hash: 8,
  computeEd25519PubKey: 9,
  verifyEd25519Sig: 10,
  vmInstantiation: 11,
  vmCachedInstantiation: 12,
  invokeVmFunction: 13,
  computeKeccak256Hash: 14,
  parseWasmInstructions: 23,
  parseWasmFunctions: 24,
  parseWasmGlobals: 25,
  parseWasmTableEntries: 26,
  parseWasmTypes: 27,
  parseWasmDataSegments: 28,
  parseWasmElemSegments: 29,
  parseWasmImports: 30,
  parseWasmExports: 31,
  parseWasmDataSegmentBytes: 32,
  instantiateWasmInstructions: 33,
  instantiateWasmFunctions: 34,
  instantiateWasmGlobals: 35,
  instantiateWasmTableEntries: 36,
  instantiateWasmTypes: 37,
  instantiateWasmDataSegments: 38,
  instantiateWasmElemSegments: 39,
  instantiateWasmImports: 40,
  instantiateWasmExports: 41,
  instantiateWasmDataSegmentBytes: 42
} as const

export type CpuCostName = keyof typeof places
export type CpuCosts = Readonly<Record<CpuCostName, CpuCost>>

const cost = (constant: number, linear128: number): CpuCost => ({ constant, linear128 })

export const cpuCosts: CpuCosts = {
  wasmInsnExec: cost(4, 0),
  valSer: cost(221, 26),
  valDeser: cost(331, 4_369),
  computeSha256Hash: cost(3_636, 7_013),
  computeEd25519PubKey: cost(40_256, 0),
  verifyEd25519Sig: cost(377_551, 4_059),
  vmInstantiation: cost(417_482, 45_712),
  vmCachedInstantiation: cost(41_142, 634),
  invokeVmFunction: cost(1_945, 0),
  computeKeccak256Hash: cost(6_481, 5_943),
  parseWasmInstructions: cost(73_077, 25_410),
  parseWasmFunctions: cost(0, 540_752),
  parseWasmGlobals: cost(0, 176_363),
  parseWasmTableEntries: cost(0, 29_989),
  parseWasmTypes: cost(0, 1_061_449),
  parseWasmDataSegments: cost(0, 237_336),
  parseWasmElemSegments: cost(0, 328_476),
  parseWasmImports: cost(0, 701_845),
  parseWasmExports: cost(0, 429_383),
  parseWasmDataSegmentBytes: cost(0, 28),
  instantiateWasmInstructions: cost(43_030, 0),
  instantiateWasmFunctions: cost(0, 7_556),
  instantiateWasmGlobals: cost(0, 10_711),
  instantiateWasmTableEntries: cost(0, 3_300),
  instantiateWasmTypes: cost(0, 0),
  instantiateWasmDataSegments: cost(0, 23_038),
  instantiateWasmElemSegments: cost(0, 42_488),
  instantiateWasmImports: cost(0, 828_974),
  instantiateWasmExports: cost(0, 297_100),
  instantiateWasmDataSegmentBytes: cost(0, 14)
}

/** The parameters as a configuration entry has them; what a shorter list does not say stays. */
export const withCpuCosts = (
  costs: CpuCosts,
  entries: ReadonlyArray<{ readonly constTerm: bigint; readonly linearTerm: bigint }>
): CpuCosts => {
  const result: Record<CpuCostName, CpuCost> = { ...costs }
  for (const name of Object.keys(places) as Array<CpuCostName>) {
    const entry = entries[places[name]]
    if (entry !== undefined) result[name] = cost(Number(entry.constTerm), Number(entry.linearTerm))
  }
  return result
}
