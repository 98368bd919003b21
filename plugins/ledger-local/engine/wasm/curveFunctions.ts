// Host functions on the pairing curves BLS12-381 (`c.4` to `c.l`, `c.x`, `c.y`) and BN254 (`c.m` to `c.w`, `c.z`):
// points in and out as bytes, scalars as 256-bit integers modulo the order of the group. Each function follows the
// network's host step by step in its work, checks and charges, so that refused input gives the same error, and every
// step is charged before it runs. `curvePoints.ts` reads and writes points.
import type { WeierstrassPoint } from "@noble/curves/abstract/weierstrass.js"
import { pippenger } from "@noble/curves/abstract/curve.js"
import { bls12_381 } from "@noble/curves/bls12-381.js"
import { bn254 } from "@noble/curves/bn254.js"
import type { Pair } from "../curves/PointGroup.ts"
import { mapToG1, mapToG2 } from "../curves/mapToCurve.ts"
import { blsScalars, bnScalars, type Scalars } from "../curves/Scalars.ts"
import { HostError } from "../host/HostError.ts"
import type { CpuCostName } from "../state/cpuCosts.ts"
import { ScType } from "../xdr/types.ts"
import { bool, readBytes } from "../xdr/ScVal.ts"
import type { ScVal } from "../xdr/Xdr.ts"
import {
  blsG1Charged,
  blsG2Charged,
  bnG1Charged,
  bnG2Charged,
  type ChargedGroup,
  invalid,
  isInSubgroup,
  isOnCurve,
  readCoordinates,
  readMember,
  readMembers,
  type Readable,
  readPoint,
  writeAffine,
  writePoint
} from "./curvePoints.ts"
import { readScalar, resultScalar } from "./scalarValues.ts"
import type { HostFunctions, Vm } from "./Vm.ts"

const SCALAR_BYTES = 32

const readScalars = (vm: Vm, scalars: Scalars, word: bigint): Array<bigint> => {
  const items = vm.vec(word)
  vm.charge("visitObject")
  vm.charge("memAlloc", items.length * SCALAR_BYTES)
  vm.charge("visitObject")
  return items.map((item) => readScalar(vm, scalars, item))
}

const add =
  <F>(curve: ChargedGroup<F>) =>
  (vm: Vm, p: bigint, q: bigint): ScVal => {
    const [a, b] = [vm.checked(p), vm.checked(q)]
    const [first, second] = [readPoint(vm, curve, a), readPoint(vm, curve, b)]
    vm.charge(curve.add)
    return writePoint(vm, curve, first.add(second))
  }

const multiply =
  <F>(curve: ChargedGroup<F>) =>
  (vm: Vm, p: bigint, s: bigint): ScVal => {
    const [at, by] = [vm.checked(p), vm.checked(s)]
    const [point, scalar] = [readMember(vm, curve, at), readScalar(vm, curve.scalars, by)]
    vm.charge(curve.multiply)
    return writePoint(vm, curve, point.multiplyUnsafe(scalar))
  }

const multiplyMany =
  <F>(curve: ChargedGroup<F>) =>
  (vm: Vm, ps: bigint, ss: bigint): ScVal => {
    vm.checked(ps)
    vm.checked(ss)
    const [points, scalars] = [readMembers(vm, curve, ps), readScalars(vm, curve.scalars, ss)]
    vm.charge(curve.multiplyMany, points.length)
    if (points.length !== scalars.length || points.length === 0)
      throw invalid(`${curve.group.name} msm: invalid input vector lengths (${points.length}, ${scalars.length})`)
    return writePoint(vm, curve, pippenger(curve.group.Point, points, scalars))
  }

const onCurve =
  <F>(curve: Readable<F>) =>
  (vm: Vm, p: bigint): ScVal =>
    bool(isOnCurve(vm, curve, readCoordinates(vm, curve, vm.checked(p))))

const inSubgroup =
  <F>(curve: Readable<F>) =>
  (vm: Vm, p: bigint): ScVal =>
    bool(isInSubgroup(vm, curve, readPoint(vm, curve, vm.checked(p))))

const mapped =
  <F>(curve: ChargedGroup<F>, name: CpuCostName, map: (element: F) => { readonly x: F; readonly y: F }) =>
  (vm: Vm, word: bigint): ScVal => {
    const { group, decode } = curve
    const content = readBytes(vm.checked(word))
    vm.charge("visitObject")
    if (content.length !== group.elements.bytes) throw invalid(`${group.name} field element: invalid input length`)
    vm.charge("memCpy", content.length)
    vm.chargeEach(decode, group.elements.units)
    let element: F
    try {
      element = group.elements.read(content)
    } catch {
      throw invalid(`${group.name} field element: unable to deserialize`)
    }
    vm.charge(name)
    return writeAffine(vm, curve, group.Point.fromAffine(map(element)))
  }

/** Longest domain name that hashing uses unchanged. */
const DOMAIN_BYTES_MAX = 255

const hashed =
  <F>(
    curve: ChargedGroup<F>,
    name: CpuCostName,
    hash: (message: Uint8Array, options: { readonly DST: Uint8Array }) => WeierstrassPoint<F>
  ) =>
  (vm: Vm, message: bigint, domain: bigint): ScVal => {
    const [content, DST] = [readBytes(vm.checked(message)), readBytes(vm.checked(domain))]
    vm.charge("visitObject")
    vm.charge("visitObject")
    vm.charge(name, content.length)
    if (DST.length === 0 || DST.length > DOMAIN_BYTES_MAX)
      throw invalid(`hash_to_curve: invalid input dst length ${DST.length}, must be > 0 and < 256`)
    return writeAffine(vm, curve, hash(content, { DST }))
  }

interface Pairing {
  readonly g1: Readable<bigint>
  readonly g2: Readable<Pair>
  readonly cost: CpuCostName
  /** Bytes of an element of the target group, which is compared with one. */
  readonly targetBytes: number
  readonly isOne: (pairs: Array<{ g1: WeierstrassPoint<bigint>; g2: WeierstrassPoint<Pair> }>) => boolean
}

const multiPairing =
  ({ g1, g2, cost, targetBytes, isOne }: Pairing) =>
  (vm: Vm, ps: bigint, qs: bigint): ScVal => {
    vm.checked(ps)
    vm.checked(qs)
    vm.charge("visitObject")
    vm.charge("visitObject")
    const [count, other] = [vm.vec(ps).length, vm.vec(qs).length]
    if (count !== other || count === 0)
      throw invalid(`multi-pairing-check: invalid input vector lengths ${count} and ${other}`)
    const [points, twisted] = [readMembers(vm, g1, ps), readMembers(vm, g2, qs)]
    vm.charge(cost, count)
    vm.charge("memCmp", targetBytes)
    // A pair with infinity contributes one; the library takes no such pairs.
    const pairs = points.flatMap((p, i) => (p.is0() || twisted[i]!.is0() ? [] : [{ g1: p, g2: twisted[i]! }]))
    return bool(pairs.length === 0 || isOne(pairs))
  }

const blsPairing = multiPairing({
  g1: blsG1Charged,
  g2: blsG2Charged,
  cost: "bls12381Pairing",
  targetBytes: 12 * 48,
  isOne: (pairs) => bls12_381.fields.Fp12.eql(bls12_381.pairingBatch(pairs), bls12_381.fields.Fp12.ONE)
})

const bnPairing = multiPairing({
  g1: bnG1Charged,
  g2: bnG2Charged,
  cost: "bn254Pairing",
  targetBytes: 12 * 32,
  isOne: (pairs) => bn254.fields.Fp12.eql(bn254.pairingBatch(pairs), bn254.fields.Fp12.ONE)
})

type Binary = (a: bigint, b: bigint) => bigint

const withScalars =
  (scalars: Scalars, name: CpuCostName, operation: Binary) =>
  (vm: Vm, a: bigint, b: bigint): ScVal => {
    const [left, right] = [vm.checked(a), vm.checked(b)]
    const [x, y] = [readScalar(vm, scalars, left), readScalar(vm, scalars, right)]
    vm.charge(name)
    return resultScalar(vm, scalars, operation(x, y))
  }

const power =
  (scalars: Scalars) =>
  (vm: Vm, base: bigint, exponent: bigint): ScVal => {
    const [of, value] = [vm.checked(base), vm.checked(exponent)]
    const x = readScalar(vm, scalars, of)
    if (value.type !== ScType.u64) throw HostError.of("Value", "UnexpectedType", "the exponent is not a u64")
    if (vm.isObject(exponent)) vm.charge("visitObject")
    vm.charge(scalars.power, value.u64 === 0n ? 0 : value.u64.toString(2).length)
    return resultScalar(vm, scalars, scalars.field.pow(x, value.u64))
  }

const inverse =
  (scalars: Scalars) =>
  (vm: Vm, word: bigint): ScVal => {
    const x = readScalar(vm, scalars, vm.checked(word))
    if (x === 0n) throw invalid("scalar inversion input is zero")
    vm.charge(scalars.invert)
    return resultScalar(vm, scalars, scalars.field.inv(x))
  }

const { field: blsField } = blsScalars
const { field: bnField } = bnScalars

export const curveFunctions: HostFunctions = {
  "c.4": inSubgroup(blsG1Charged), // bls12_381_check_g1_is_in_subgroup
  "c.5": add(blsG1Charged), // bls12_381_g1_add
  "c.6": multiply(blsG1Charged), // bls12_381_g1_mul
  "c.7": multiplyMany(blsG1Charged), // bls12_381_g1_msm
  "c.8": mapped(blsG1Charged, "bls12381MapFpToG1", mapToG1), // bls12_381_map_fp_to_g1
  // bls12_381_hash_to_g1
  "c.9": hashed(blsG1Charged, "bls12381HashToG1", (message, options) => bls12_381.G1.hashToCurve(message, options)),
  "c.a": inSubgroup(blsG2Charged), // bls12_381_check_g2_is_in_subgroup
  "c.b": add(blsG2Charged), // bls12_381_g2_add
  "c.c": multiply(blsG2Charged), // bls12_381_g2_mul
  "c.d": multiplyMany(blsG2Charged), // bls12_381_g2_msm
  "c.e": mapped(blsG2Charged, "bls12381MapFp2ToG2", mapToG2), // bls12_381_map_fp2_to_g2
  // bls12_381_hash_to_g2
  "c.f": hashed(blsG2Charged, "bls12381HashToG2", (message, options) => bls12_381.G2.hashToCurve(message, options)),
  "c.g": blsPairing, // bls12_381_multi_pairing_check
  "c.h": withScalars(blsScalars, "bls12381FrAddSub", (a, b) => blsField.add(a, b)), // bls12_381_fr_add
  "c.i": withScalars(blsScalars, "bls12381FrAddSub", (a, b) => blsField.sub(a, b)), // bls12_381_fr_sub
  "c.j": withScalars(blsScalars, "bls12381FrMul", (a, b) => blsField.mul(a, b)), // bls12_381_fr_mul
  "c.k": power(blsScalars), // bls12_381_fr_pow
  "c.l": inverse(blsScalars), // bls12_381_fr_inv
  "c.m": add(bnG1Charged), // bn254_g1_add
  "c.n": multiply(bnG1Charged), // bn254_g1_mul
  "c.o": bnPairing, // bn254_multi_pairing_check
  "c.r": multiplyMany(bnG1Charged), // bn254_g1_msm
  "c.s": withScalars(bnScalars, "bn254FrAddSub", (a, b) => bnField.add(a, b)), // bn254_fr_add
  "c.t": withScalars(bnScalars, "bn254FrAddSub", (a, b) => bnField.sub(a, b)), // bn254_fr_sub
  "c.u": withScalars(bnScalars, "bn254FrMul", (a, b) => bnField.mul(a, b)), // bn254_fr_mul
  "c.v": power(bnScalars), // bn254_fr_pow
  "c.w": inverse(bnScalars), // bn254_fr_inv
  "c.x": onCurve(blsG1Charged), // bls12_381_g1_is_on_curve
  "c.y": onCurve(blsG2Charged), // bls12_381_g2_is_on_curve
  "c.z": onCurve(bnG1Charged) // bn254_g1_is_on_curve
}
