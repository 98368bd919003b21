// The network's cost parameters of instructions: for each kind of work a constant and a rate by size, in 128ths. The
// list is the network's own (protocol 27) and in its order; its configuration entry is read over it.
export interface CpuCost {
  readonly constant: number
  /** Instructions per byte or item, times 128. */
  readonly linear128: number
}

const cost = (constant: number, linear128: number): CpuCost => ({ constant, linear128 })

/** In the order of the configuration entry. */
export const cpuCosts = {
  wasmInsnExec: cost(4, 0),
  memAlloc: cost(434, 16),
  memCpy: cost(42, 16),
  memCmp: cost(44, 16),
  dispatchHostFunction: cost(295, 0),
  visitObject: cost(60, 0),
  valSer: cost(221, 26),
  valDeser: cost(331, 4_369),
  computeSha256Hash: cost(3_636, 7_013),
  computeEd25519PubKey: cost(40_256, 0),
  verifyEd25519Sig: cost(377_551, 4_059),
  vmInstantiation: cost(417_482, 45_712),
  vmCachedInstantiation: cost(41_142, 634),
  invokeVmFunction: cost(1_945, 0),
  computeKeccak256Hash: cost(6_481, 5_943),
  decodeEcdsaCurve256Sig: cost(711, 0),
  recoverEcdsaSecp256k1Key: cost(2_314_804, 0),
  int256AddSub: cost(4_176, 0),
  int256Mul: cost(4_716, 0),
  int256Div: cost(4_680, 0),
  int256Pow: cost(4_256, 0),
  int256Shift: cost(884, 0),
  chaCha20DrawBytes: cost(1_059, 502),
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
  instantiateWasmDataSegmentBytes: cost(0, 14),
  sec1DecodePointUncompressed: cost(1_882, 0),
  verifyEcdsaSecp256r1Sig: cost(3_000_906, 0),
  bls12381EncodeFp: cost(661, 0),
  bls12381DecodeFp: cost(985, 0),
  bls12381G1CheckPointOnCurve: cost(1_934, 0),
  bls12381G1CheckPointInSubgroup: cost(730_510, 0),
  bls12381G2CheckPointOnCurve: cost(5_921, 0),
  bls12381G2CheckPointInSubgroup: cost(1_057_822, 0),
  bls12381G1ProjectiveToAffine: cost(92_642, 0),
  bls12381G2ProjectiveToAffine: cost(100_742, 0),
  bls12381G1Add: cost(7_689, 0),
  bls12381G1Mul: cost(2_458_985, 0),
  bls12381G1Msm: cost(2_347_584, 94_135_478),
  bls12381MapFpToG1: cost(1_020_885, 0),
  bls12381HashToG1: cost(2_638_451, 6_803),
  bls12381G2Add: cost(25_207, 0),
  bls12381G2Mul: cost(7_873_219, 0),
  bls12381G2Msm: cost(7_663_880, 298_580_871),
  bls12381MapFp2ToG2: cost(1_856_539, 0),
  bls12381HashToG2: cost(6_315_452, 7_232),
  bls12381Pairing: cost(10_558_948, 632_860_943),
  bls12381FrFromU256: cost(1_994, 0),
  bls12381FrToU256: cost(1_155, 0),
  bls12381FrAddSub: cost(74, 0),
  bls12381FrMul: cost(332, 0),
  bls12381FrPow: cost(691, 74_558),
  bls12381FrInv: cost(35_421, 0),
  bn254EncodeFp: cost(344, 0),
  bn254DecodeFp: cost(476, 0),
  bn254G1CheckPointOnCurve: cost(904, 0),
  bn254G2CheckPointOnCurve: cost(2_811, 0),
  bn254G2CheckPointInSubgroup: cost(1_706_052, 0),
  bn254G1ProjectiveToAffine: cost(61, 0),
  bn254G1Add: cost(3_623, 0),
  bn254G1Mul: cost(1_150_435, 0),
  bn254Pairing: cost(5_263_916, 392_472_814),
  bn254FrFromU256: cost(2_052, 0),
  bn254FrToU256: cost(1_133, 0),
  bn254FrAddSub: cost(74, 0),
  bn254FrMul: cost(332, 0),
  bn254FrPow: cost(755, 68_930),
  bn254FrInv: cost(33_151, 0),
  bn254G1Msm: cost(1_185_193, 41_568_084)
} as const

export type CpuCostName = keyof typeof cpuCosts
export type CpuCosts = Readonly<Record<CpuCostName, CpuCost>>

/** The parameters from a configuration entry; a shorter list leaves the rest unchanged. */
export const withCpuCosts = (
  costs: CpuCosts,
  entries: ReadonlyArray<{ readonly constTerm: bigint; readonly linearTerm: bigint }>
): CpuCosts => {
  const result: Record<CpuCostName, CpuCost> = { ...costs }
  for (const [index, name] of (Object.keys(cpuCosts) as Array<CpuCostName>).entries()) {
    const entry = entries[index]
    if (entry !== undefined) result[name] = cost(Number(entry.constTerm), Number(entry.linearTerm))
  }
  return result
}
