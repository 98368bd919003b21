// The permutations of Poseidon and Poseidon2 (`c.p` and `c.q`, protocol 25): the contract passes the state, the rounds
// and the constants; the host checks that they fit together and does the arithmetic. Each round is charged before it
// runs. The S-box is the fifth power; the network takes no other.
import { type Permutation, poseidon, poseidon2 } from "../curves/poseidon.ts"
import { blsScalars, bnScalars, type Scalars } from "../curves/Scalars.ts"
import { HostError } from "../host/HostError.ts"
import { ScType } from "../xdr/types.ts"
import { vec } from "../xdr/ScVal.ts"
import { latin1, type ScVal } from "../xdr/Xdr.ts"
import { readScalar, writeScalar } from "./scalarValues.ts"
import type { HostFunctions, Vm } from "./Vm.ts"

const SBOX_DEGREE = 5
const U32_MAX = 0xffff_ffff
const SCALAR_BYTES = 32
const ROW_BYTES = 24
const VALUE_BYTES = 8
/** Additional bytes for a type that holds either a result or an error. */
const ERROR_BYTES = 16

const invalid = (message: string): HostError => HostError.of("Crypto", "InvalidInput", message)

const scalarsOf = (vm: Vm, field: bigint): Scalars => {
  const name = latin1(vm.text(field, ScType.symbol))
  vm.chargeCompared(name, "BLS12_381")
  if (name === "BLS12_381") return blsScalars
  vm.chargeCompared(name, "BN254")
  if (name === "BN254") return bnScalars
  throw invalid("poseidon: invalid field symbol, must be 'BLS12_381' or 'BN254'")
}

const readRow = (vm: Vm, scalars: Scalars, items: ReadonlyArray<ScVal>): Array<bigint> => {
  vm.charge("visitObject")
  vm.chargeCopied(items.length * SCALAR_BYTES)
  return items.map((item) => {
    if (item.type !== ScType.u256) throw invalid("element must be U256Val")
    return readScalar(vm, scalars, item)
  })
}

const readRows = (vm: Vm, scalars: Scalars, word: bigint): Array<Array<bigint>> => {
  const rows = vm.vec(word)
  vm.charge("visitObject")
  vm.chargeCopied(rows.length * ROW_BYTES)
  return rows.map((row) => {
    if (row.type !== ScType.vec) throw invalid("poseidon_permutation: row must be a vector")
    vm.payWork((row.vec ?? []).length)
    return readRow(vm, scalars, row.vec ?? [])
  })
}

interface Rounds {
  readonly size: number
  readonly full: number
  readonly partial: number
}

const readRounds = (
  vm: Vm,
  [t, d, full, partial]: ReadonlyArray<bigint>,
  layerLength: number,
  constants: number
): Rounds => {
  const rounds = { size: vm.u32(t!), full: vm.u32(full!), partial: vm.u32(partial!) }
  if (vm.u32(d!) !== SBOX_DEGREE) throw invalid("Poseidon: unsupported s-box degree")
  if (layerLength !== rounds.size) throw invalid("Poseidon: the matrix does not match `t`")
  if (rounds.full % 2 !== 0) throw invalid("Poseidon: `rounds_f` must be even")
  if (rounds.full + rounds.partial > U32_MAX) throw HostError.of("Value", "ArithDomain", "arithmetic overflow")
  if (constants !== rounds.full + rounds.partial)
    throw invalid("Poseidon: round constants length does not match No. of rounds (rounds_f + rounds_p)")
  return rounds
}

const writeState = (vm: Vm, scalars: Scalars, state: ReadonlyArray<bigint>): ScVal => {
  vm.chargeCopied(state.length * (VALUE_BYTES + ERROR_BYTES), ERROR_BYTES)
  const values = state.map((scalar) => writeScalar(vm, scalars, scalar))
  vm.chargeCopied(values.length * VALUE_BYTES)
  vm.chargeObject()
  vm.charge("visitObject")
  return vec(values)
}

/** A permutation over the numbers of `scalars` with charged steps. */
const permutationOf = (vm: Vm, scalars: Scalars, rounds: Rounds): Permutation => ({
  ...rounds,
  field: scalars.field,
  adds: (times) => vm.chargeEach(scalars.add, times),
  multiplies: (times) => vm.chargeEach(scalars.multiply, times),
  powers: (times) => vm.chargeEach(scalars.power, times, SBOX_DEGREE.toString(2).length),
  copies: (times) => vm.chargeEach("memCpy", times, SCALAR_BYTES),
  collects: (size) => vm.chargeCopied(size * SCALAR_BYTES),
  collectsResults: (size) => vm.chargeCopied(size * (SCALAR_BYTES + ERROR_BYTES), ERROR_BYTES),
  refuse: (message) => invalid(message),
  outOfBounds: (message) => HostError.of("Object", "IndexBounds", message)
})

export const poseidonFunctions: HostFunctions = {
  "c.p": (vm, input, name, t, d, full, partial, matrix, constants) => {
    // poseidon_permutation
    for (const each of [input!, matrix!, constants!]) vm.checked(each)
    const scalars = scalarsOf(vm, name!)
    const state = readRow(vm, scalars, vm.vec(input!))
    const [rows, rounds] = [readRows(vm, scalars, matrix!), readRows(vm, scalars, constants!)]
    const permutation = permutationOf(
      vm,
      scalars,
      readRounds(vm, [t!, d!, full!, partial!], rows.length, rounds.length)
    )
    return writeState(vm, scalars, poseidon(permutation, state, rows, rounds))
  },
  "c.q": (vm, input, name, t, d, full, partial, diagonal, constants) => {
    // poseidon2_permutation
    for (const each of [input!, diagonal!, constants!]) vm.checked(each)
    const scalars = scalarsOf(vm, name!)
    const state = readRow(vm, scalars, vm.vec(input!))
    const row = readRow(vm, scalars, vm.vec(diagonal!))
    const rounds = readRows(vm, scalars, constants!)
    const permutation = permutationOf(vm, scalars, readRounds(vm, [t!, d!, full!, partial!], row.length, rounds.length))
    return writeState(vm, scalars, poseidon2(permutation, state, row, rounds))
  }
}
