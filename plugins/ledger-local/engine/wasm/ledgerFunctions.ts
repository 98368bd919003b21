// Host functions on the ledger (`l.*`): a contract's own data with its three kinds of storage, times to live, and
// making or replacing contracts. Instance storage is part of the instance entry and is written when the frame ends
// well.
import { EntryType, ExecutableType, ScType } from "../xdr/types.ts"
import type { ContractHost } from "../host/HostTypes.ts"
import { contractIdOf, createContract, uploadWasm } from "../host/createContract.ts"
import { HostError } from "../host/HostError.ts"
import { missing } from "../host/Storage.ts"
import { contractCodeKey, contractDataKey, contractInstanceKey, type Durability } from "../state/LedgerKeys.ts"
import { address as addressVal, bytes, sym, vec } from "../xdr/ScVal.ts"
import { codecAsset, contractAddress, type ContractExecutable, type LedgerKey, type ScVal } from "../xdr/Xdr.ts"
import { COMPILE_WORK } from "./hostCallWork.ts"
import { boolWord } from "./Values.ts"
import type { HostFunctions, Vm } from "./Vm.ts"

const INSTANCE = 2n

const keyOf = (vm: Vm, key: ScVal, storage: bigint): LedgerKey => {
  if (storage !== 0n && storage !== 1n) throw HostError.of("Value", "InvalidInput", "unknown storage type")
  return contractDataKey(contractAddress(vm.host.frame.contractId), key, Number(storage) as Durability)
}

const put = (vm: Vm, key: ScVal, val: ScVal, storage: bigint): void => {
  if (storage === INSTANCE) return vm.host.instancePut(key, val)
  const ledgerKey = keyOf(vm, key, storage)
  const contract = contractAddress(vm.host.frame.contractId)
  vm.host.storage.put(ledgerKey, {
    type: 6,
    contractData: { ext: { v: 0 }, contract, key, durability: Number(storage) as Durability, val }
  })
}

const get = (vm: Vm, key: ScVal, storage: bigint): ScVal | undefined => {
  if (storage === INSTANCE) return vm.host.instanceGet(key)
  const entry = vm.host.storage.get(keyOf(vm, key, storage))
  return entry?.data.type === EntryType.contractData ? entry.data.contractData.val : undefined
}

/** Removes an entry; that it is outside of the footprint the network's log tells twice. */
const remove = (vm: Vm, key: LedgerKey): void => {
  try {
    vm.host.storage.delete(key)
  } catch (error) {
    if (!(error instanceof HostError)) throw error
    vm.host.logError(error.saying(error.message, error.args))
    throw error
  }
}

const executableOf = (host: ContractHost, contractId: Uint8Array): ContractExecutable => {
  const entry = host.storage.require(contractInstanceKey(contractAddress(contractId)))
  const value = entry.data.type === EntryType.contractData ? entry.data.contractData.val : undefined
  if (value?.type !== ScType.contractInstance)
    throw HostError.of("Storage", "InternalError", "contract instance is malformed")
  return value.instance.executable
}

const extendInstance = (host: ContractHost, contractId: Uint8Array, threshold: number, extendTo: number): void =>
  host.storage.extend(contractInstanceKey(contractAddress(contractId)), threshold, extendTo)

const extendCode = (host: ContractHost, contractId: Uint8Array, threshold: number, extendTo: number): void => {
  const executable = executableOf(host, contractId)
  if (executable.type === ExecutableType.wasm)
    host.storage.extend(contractCodeKey(executable.wasmHash), threshold, extendTo)
}

const extendBoth = (vm: Vm, contractId: Uint8Array, threshold: bigint, extendTo: bigint): void => {
  extendInstance(vm.host, contractId, vm.u32(threshold), vm.u32(extendTo))
  extendCode(vm.host, contractId, vm.u32(threshold), vm.u32(extendTo))
}

/** What `extend_contract_instance_and_code_ttl_v2` extends. */
const Scope = { both: 0n, instance: 1n, code: 2n } as const

const extendScope = (
  vm: Vm,
  contractId: Uint8Array,
  scope: bigint,
  bounds: readonly [extendTo: number, least: number, most: number]
): void => {
  if (scope !== Scope.both && scope !== Scope.instance && scope !== Scope.code) {
    throw HostError.of("Value", "InvalidInput", "unknown extension scope")
  }
  if (scope !== Scope.code) vm.host.storage.extendWithin(contractInstanceKey(contractAddress(contractId)), ...bounds)
  if (scope === Scope.instance) return
  const executable = executableOf(vm.host, contractId)
  if (executable.type === ExecutableType.wasm)
    vm.host.storage.extendWithin(contractCodeKey(executable.wasmHash), ...bounds)
}

/** The value by which events and contexts show an executable. */
export const executableVal = (executable: ContractExecutable): ScVal =>
  executable.type === ExecutableType.wasm ? vec([sym("Wasm"), bytes(executable.wasmHash)]) : vec([sym("StellarAsset")])

const create = (
  vm: Vm,
  deployer: bigint,
  wasmHash: bigint,
  salt: bigint,
  constructorArgs: ReadonlyArray<ScVal>
): ScVal => {
  const contractIdPreimage = {
    type: 0 as const,
    fromAddress: { address: vm.address(deployer), salt: vm.sized(salt, 32) }
  }
  const executable = { type: 0 as const, wasmHash: vm.sized(wasmHash, 32) }
  return vm.nested(() =>
    createContract(vm.host, { contractIdPreimage, executable, constructorArgs: [...constructorArgs] })
  )
}

const readAsset = (vm: Vm, word: bigint) => {
  try {
    return codecAsset.decode(vm.bytes(word))
  } catch (error) {
    if (error instanceof HostError) throw error
    throw HostError.of("Value", "InvalidInput", "bytes are not an asset")
  }
}

export const ledgerFunctions: HostFunctions = {
  "l._": (vm, k, v, t) => put(vm, vm.whole(k), vm.whole(v), t), // put_contract_data
  "l.0": (vm, k, t) => boolWord(get(vm, vm.whole(k), t) !== undefined), // has_contract_data
  "l.1": (vm, k, t) => {
    // get_contract_data
    const key = vm.whole(k)
    const value = get(vm, key, t)
    if (value === undefined) throw missing(contractDataKey(contractAddress(vm.host.frame.contractId), key, 0))
    return value
  },
  "l.2": (vm, k, t) => {
    // del_contract_data
    const key = vm.whole(k)
    if (t === INSTANCE) vm.host.instancePut(key, undefined)
    else remove(vm, keyOf(vm, key, t))
  },
  "l.3": (vm, deployer, hash, salt) => create(vm, deployer, hash, salt, []), // create_contract
  "l.4": (vm, asset) => {
    // create_asset_contract
    const fromAsset = readAsset(vm, asset)
    const contractIdPreimage = { type: 1 as const, fromAsset }
    return vm.nested(() =>
      createContract(vm.host, { contractIdPreimage, executable: { type: 1 }, constructorArgs: [] })
    )
  },
  "l.5": (vm, word) => {
    // upload_wasm
    const code = vm.bytes(word)
    vm.payWork(code.length * COMPILE_WORK)
    return uploadWasm(vm.host, code)
  },
  "l.6": (vm, hash) => {
    // update_current_contract_wasm
    const { host } = vm
    const executable: ContractExecutable = { type: 0, wasmHash: vm.sized(hash, 32) }
    host.storage.require(contractCodeKey(executable.wasmHash), "Wasm does not exist")
    const { contractId, instanceKey } = host.frame
    const before = executableOf(host, contractId)
    host.log.system(contractId, [sym("executable_update"), executableVal(before), executableVal(executable)], vec([]))
    const entry = host.storage.require(instanceKey)
    if (entry.data.type !== EntryType.contractData || entry.data.contractData.val.type !== ScType.contractInstance)
      return
    const { contractData } = entry.data
    const { val } = contractData
    if (val.type !== ScType.contractInstance) return
    host.storage.put(instanceKey, {
      type: 6,
      contractData: { ...contractData, val: { type: 19, instance: { ...val.instance, executable } } }
    })
  },
  "l.7": (vm, k, t, threshold, extendTo) => {
    // extend_contract_data_ttl
    if (t === INSTANCE) return extendBoth(vm, vm.host.frame.contractId, threshold, extendTo)
    vm.host.storage.extend(keyOf(vm, vm.whole(k), t), vm.u32(threshold), vm.u32(extendTo))
  },
  // extend_current_contract_instance_and_code_ttl
  "l.8": (vm, threshold, extendTo) => extendBoth(vm, vm.host.frame.contractId, threshold, extendTo),
  // extend_contract_instance_and_code_ttl
  "l.9": (vm, c, threshold, extendTo) => extendBoth(vm, vm.contract(c), threshold, extendTo),
  "l.a": (vm, deployer, salt) => {
    // get_contract_id
    const { crypto, networkId } = vm.host.input
    const fromAddress = { address: vm.address(deployer), salt: vm.sized(salt, 32) }
    return addressVal(contractAddress(contractIdOf(crypto, networkId, { type: 0, fromAddress })))
  },
  "l.b": (vm, asset) => {
    // get_asset_contract_id
    const { crypto, networkId } = vm.host.input
    return addressVal(contractAddress(contractIdOf(crypto, networkId, { type: 1, fromAsset: readAsset(vm, asset) })))
  },
  // extend_contract_instance_ttl
  "l.c": (vm, c, threshold, extendTo) => extendInstance(vm.host, vm.contract(c), vm.u32(threshold), vm.u32(extendTo)),
  // extend_contract_code_ttl
  "l.d": (vm, c, threshold, extendTo) => extendCode(vm.host, vm.contract(c), vm.u32(threshold), vm.u32(extendTo)),
  // create_contract_with_constructor
  "l.e": (vm, deployer, hash, salt, args) => create(vm, deployer, hash, salt, vm.wholes(args)),
  "l.f": (vm, k, t, extendTo, least, most) => {
    // extend_contract_data_ttl_v2
    vm.host.storage.extendWithin(keyOf(vm, vm.whole(k), t), vm.u32(extendTo), vm.u32(least), vm.u32(most))
  },
  "l.g": (vm, c, scope, extendTo, least, most) =>
    // extend_contract_instance_and_code_ttl_v2
    extendScope(vm, vm.contract(c), scope, [vm.u32(extendTo), vm.u32(least), vm.u32(most)])
}
