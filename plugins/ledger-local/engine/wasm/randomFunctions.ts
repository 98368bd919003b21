// Host functions on random numbers (`p.*`). Each frame has its own generator, made from the transaction's when it first
// asks.
import { HostError } from "../host/HostError.ts"
import type { ContractHost } from "../host/HostTypes.ts"
import { Random, SEED_BYTES } from "../host/Random.ts"
import { bytes, vec } from "../xdr/ScVal.ts"
import type { HostFunctions } from "./Vm.ts"

/** A contract's bytes object of this length is as large as one may be. */
const BYTES_MAX = 1_048_576

const randomOf = (host: ContractHost): Random => {
  host.random ??= Random.ofTransaction(host.input.crypto, host.input.randomSeed ?? new Uint8Array(SEED_BYTES))
  return (host.frame.random ??= host.random.child())
}

export const randomFunctions: HostFunctions = {
  "p._": (vm, seed) => {
    // prng_reseed
    vm.host.frame.random = Random.ofSeed(vm.host.input.crypto, vm.sized(seed, SEED_BYTES))
  },
  "p.0": (vm, length) => {
    // prng_bytes_new
    const count = vm.u32(length)
    if (count > BYTES_MAX) throw HostError.of("Budget", "ExceededLimit", "too many random bytes")
    vm.payWork(count)
    return bytes(randomOf(vm.host).bytes(count))
  },
  "p.1": (vm, low, high) => {
    // prng_u64_in_inclusive_range
    const [from, to] = [BigInt.asUintN(64, low), BigInt.asUintN(64, high)]
    if (from > to) throw HostError.of("Value", "InvalidInput", "the range is empty")
    return randomOf(vm.host).u64(from, to)
  },
  "p.2": (vm, items) => {
    // prng_vec_shuffle
    const values = vm.vec(items)
    vm.payWork(8 * values.length)
    return vec(randomOf(vm.host).shuffled(values))
  }
}
