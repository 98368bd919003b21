// Points of the pairing curves in the contracts' form: reads them from bytes, with every check of the network's host,
// and writes them as bytes again. Each step has the host's charge, taken before the step runs, so that refused input
// gives the same error after the same charges.
import type { WeierstrassPoint } from "@noble/curves/abstract/weierstrass.js"
import {
  BadPoint,
  blsG1,
  blsG2,
  bnG1,
  bnG2,
  type Coordinates,
  type Pair,
  type PointGroup
} from "../curves/PointGroup.ts"
import { blsScalars, bnScalars, type Scalars } from "../curves/Scalars.ts"
import { HostError } from "../host/HostError.ts"
import type { CpuCostName } from "../state/cpuCosts.ts"
import { bytes, readBytes } from "../xdr/ScVal.ts"
import type { ScVal } from "../xdr/Xdr.ts"
import type { Vm } from "./Vm.ts"

export const invalid = (message: string): HostError => HostError.of("Crypto", "InvalidInput", message)

/** A group with the names of its operations' costs. */
export interface ChargedGroup<F> {
  readonly group: PointGroup<F>
  readonly decode: CpuCostName
  readonly encode: CpuCostName
  readonly onCurve: CpuCostName
  /** Absent where every point of the curve is in the group. */
  readonly inSubgroup: CpuCostName | undefined
  readonly toAffine: CpuCostName
  readonly add: CpuCostName
  readonly multiply: CpuCostName
  readonly multiplyMany: CpuCostName
  readonly scalars: Scalars
  /** Copies that the host makes of a point's bytes while it reads them, in the order it makes them. */
  readonly copies: ReadonlyArray<number>
}

export const blsG1Charged: ChargedGroup<bigint> = {
  group: blsG1,
  decode: "bls12381DecodeFp",
  encode: "bls12381EncodeFp",
  onCurve: "bls12381G1CheckPointOnCurve",
  inSubgroup: "bls12381G1CheckPointInSubgroup",
  toAffine: "bls12381G1ProjectiveToAffine",
  add: "bls12381G1Add",
  multiply: "bls12381G1Mul",
  multiplyMany: "bls12381G1Msm",
  scalars: blsScalars,
  copies: []
}

export const blsG2Charged: ChargedGroup<Pair> = {
  group: blsG2,
  decode: "bls12381DecodeFp",
  encode: "bls12381EncodeFp",
  onCurve: "bls12381G2CheckPointOnCurve",
  inSubgroup: "bls12381G2CheckPointInSubgroup",
  toAffine: "bls12381G2ProjectiveToAffine",
  add: "bls12381G2Add",
  multiply: "bls12381G2Mul",
  multiplyMany: "bls12381G2Msm",
  scalars: blsScalars,
  copies: []
}

export const bnG1Charged: ChargedGroup<bigint> = {
  group: bnG1,
  decode: "bn254DecodeFp",
  encode: "bn254EncodeFp",
  onCurve: "bn254G1CheckPointOnCurve",
  inSubgroup: undefined,
  toAffine: "bn254G1ProjectiveToAffine",
  add: "bn254G1Add",
  multiply: "bn254G1Mul",
  multiplyMany: "bn254G1Msm",
  scalars: bnScalars,
  copies: [32, 32, 32, 32]
}

/** Points of this group only come in. */
export const bnG2Charged: Pick<ChargedGroup<Pair>, "group" | "decode" | "onCurve" | "inSubgroup" | "copies"> = {
  group: bnG2,
  decode: "bn254DecodeFp",
  onCurve: "bn254G2CheckPointOnCurve",
  inSubgroup: "bn254G2CheckPointInSubgroup",
  copies: [64, 64, 64, 64]
}

/** What reading a point takes. */
export type Readable<F> = Pick<ChargedGroup<F>, "group" | "decode" | "onCurve" | "inSubgroup" | "copies">

export const readCoordinates = <F>(vm: Vm, { group, decode, copies }: Readable<F>, value: ScVal): Coordinates<F> => {
  const content = readBytes(value)
  vm.charge("visitObject")
  try {
    const at = group.read(content)
    // Infinity on BN254 is recognized before anything is decoded.
    if (at === undefined && copies.length > 0) return at
    for (const length of copies) vm.charge("memCpy", length)
    vm.chargeEach(decode, 2 * group.elements.units)
    return at
  } catch (error) {
    if (!(error instanceof BadPoint)) throw error
    throw invalid(`${group.name}: ${error.message}`)
  }
}

export const isOnCurve = <F>(vm: Vm, { group, onCurve, copies }: Readable<F>, at: Coordinates<F>): boolean => {
  if (at !== undefined || copies.length === 0) vm.charge(onCurve)
  return group.isOnCurve(at)
}

export const isInSubgroup = <F>(vm: Vm, curve: Readable<F>, point: WeierstrassPoint<F>): boolean => {
  if (curve.inSubgroup === undefined || (point.is0() && curve.copies.length > 0)) return true
  vm.charge(curve.inSubgroup)
  return curve.group.isInSubgroup(point)
}

/** A point on the curve, that need not be in the subgroup. */
export const readPoint = <F>(vm: Vm, curve: Readable<F>, value: ScVal): WeierstrassPoint<F> => {
  const at = readCoordinates(vm, curve, value)
  if (!isOnCurve(vm, curve, at)) throw invalid(`${curve.group.name}: point not on curve`)
  return curve.group.pointAt(at)
}

export const readMember = <F>(vm: Vm, curve: Readable<F>, value: ScVal): WeierstrassPoint<F> => {
  const point = readPoint(vm, curve, value)
  if (!isInSubgroup(vm, curve, point)) throw invalid(`${curve.group.name}: point not in the correct subgroup`)
  return point
}

export const readMembers = <F>(vm: Vm, curve: Readable<F>, word: bigint): Array<WeierstrassPoint<F>> => {
  const items = vm.vec(word)
  vm.charge("visitObject")
  vm.charge("memAlloc", items.length * 2 * curve.group.elements.bytes)
  vm.charge("visitObject")
  return items.map((item) => readMember(vm, curve, item))
}

export const writeAffine = <F>(vm: Vm, { group, encode }: ChargedGroup<F>, point: WeierstrassPoint<F>): ScVal => {
  vm.chargeEach(encode, 2 * group.elements.units)
  vm.chargeCopied(2 * group.elements.bytes)
  vm.chargeObject()
  vm.charge("visitObject")
  return bytes(group.write(point))
}

export const writePoint = <F>(vm: Vm, curve: ChargedGroup<F>, point: WeierstrassPoint<F>): ScVal => {
  vm.charge(curve.toAffine)
  return writeAffine(vm, curve, point)
}
