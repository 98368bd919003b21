// Converts scalars of the pairing curves from and to a contract's values, with the network's charges.
import type { Scalars } from "../curves/Scalars.ts"
import { HostError } from "../host/HostError.ts"
import { ScType } from "../xdr/types.ts"
import type { ScVal } from "../xdr/Xdr.ts"
import { bigOf, u256 } from "./Values.ts"
import type { Vm } from "./Vm.ts"

/** The largest value that a contract holds without an object of the host. */
const SMALL_BITS = 56n

const chargeIfLarge = (value: bigint, charge: () => void): void => {
  if (value >> SMALL_BITS > 0n) charge()
}

export const readScalar = (vm: Vm, { field, read }: Scalars, value: ScVal): bigint => {
  if (value.type !== ScType.u256) throw HostError.of("Value", "UnexpectedType", "value is not a u256")
  const number = bigOf(value)
  vm.charge(read)
  chargeIfLarge(number, () => vm.charge("visitObject"))
  return field.create(number)
}

/** A scalar that becomes an item of a list; a direct result is visited again. */
export const writeScalar = (vm: Vm, { write }: Scalars, scalar: bigint): ScVal => {
  vm.charge(write)
  chargeIfLarge(scalar, () => {
    vm.chargeObject()
    vm.charge("visitObject")
  })
  return u256(scalar)
}

export const resultScalar = (vm: Vm, scalars: Scalars, scalar: bigint): ScVal => {
  chargeIfLarge(scalar, () => vm.charge("visitObject"))
  return writeScalar(vm, scalars, scalar)
}
