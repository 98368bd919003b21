// Numbers modulo the orders of the two pairing curves' groups, as contracts pass them: 256-bit integers, larger ones
// reduced. Each group has the names of the network's costs for its arithmetic.
import { type IField } from "@noble/curves/abstract/modular.js"
import { bls12_381 } from "@noble/curves/bls12-381.js"
import { bn254 } from "@noble/curves/bn254.js"
import type { CpuCostName } from "../state/cpuCosts.ts"

export interface Scalars {
  readonly field: IField<bigint>
  readonly read: CpuCostName
  readonly write: CpuCostName
  readonly add: CpuCostName
  readonly multiply: CpuCostName
  readonly power: CpuCostName
  readonly invert: CpuCostName
}

export const blsScalars: Scalars = {
  field: bls12_381.fields.Fr,
  read: "bls12381FrFromU256",
  write: "bls12381FrToU256",
  add: "bls12381FrAddSub",
  multiply: "bls12381FrMul",
  power: "bls12381FrPow",
  invert: "bls12381FrInv"
}

export const bnScalars: Scalars = {
  field: bn254.fields.Fr,
  read: "bn254FrFromU256",
  write: "bn254FrToU256",
  add: "bn254FrAddSub",
  multiply: "bn254FrMul",
  power: "bn254FrPow",
  invert: "bn254FrInv"
}
