// Host functions on the ledger (`l.*`): a contract's own data with its three kinds of storage, times to live, and
// making or replacing contracts. Instance storage is part of the instance entry and is written when the frame ends
// well.
import { EntryType, ExecutableType, ScType } from "../xdr/types.ts"
import type { ContractHost } from "../host/HostTypes.ts"
import { contractIdOf, createContract, uploadWasm } from "../host/createContract.ts"
import {
  checkReferenceEntry,
  checkReferenceStays,
  executableKeys,
  executableVal,
  requireExternalRef
} from "../host/executables.ts"
import { HostError } from "../host/HostError.ts"
import { missing } from "../host/Storage.ts"
import { contractCodeKey, contractDataKey, contractInstanceKey, type Durability } from "../state/LedgerKeys.ts"
import { address as addressVal, sym, vec } from "../xdr/ScVal.ts"
import { codecAsset, contractAddress, type ContractExecutable, type LedgerKey, type ScVal } from "../xdr/Xdr.ts"
import { COMPILE_WORK } from "./hostCallWork.ts"
import { boolWord } from "./Values.ts"
import type { HostFunctions, Vm } from "./Vm.ts"

const PERSISTENT = 1n
const INSTANCE = 2n

const keyOf = (vm: Vm, key: ScVal, storage: bigint): LedgerKey => {
  if (storage !== 0n && storage !== 1n) throw HostError.of("Value", "InvalidInput", "unknown storage type")
  return contractDataKey(contractAddress(vm.host.frame.contractId), key, Number(storage) as Durability)
}

const put = (vm: Vm, key: ScVal, val: ScVal, storage: bigint): void => {
  checkReferenceEntry(vm.host, key, val, storage === PERSISTENT)
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

/** Removes an entry; the network logs an entry outside the footprint twice. */
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
  for (const key of executableKeys(host, executableOf(host, contractId))) host.storage.extend(key, threshold, extendTo)
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
  for (const key of executableKeys(vm.host, executableOf(vm.host, contractId)))
    vm.host.storage.extendWithin(key, ...bounds)
}

const wasm = (vm: Vm, hash: bigint): Extract<ContractExecutable, { type: 0 }> => ({
  type: ExecutableType.wasm,
  wasmHash: vm.sized(hash, 32)
})

/** A contract's reference to an executable, by the address of an owner and a tag. */
const reference = (vm: Vm, owner: bigint, word: bigint): Extract<ContractExecutable, { type: 2 }> => {
  const [executableOwner, tag] = [vm.address(owner), vm.value(word)]
  if (tag.type !== ScType.executableTag)
    throw HostError.of("Value", "UnexpectedType", "value is not the tag of an executable")
  return { type: ExecutableType.externalRef, externalRef: { executableOwner, tag: tag.executableTag } }
}

/** From its next call on, the current contract runs something else. */
const replaceExecutable = (host: ContractHost, executable: ContractExecutable): void => {
  const { contractId, instanceKey } = host.frame
  const before = executableOf(host, contractId)
  host.log.system(contractId, [sym("executable_update"), executableVal(before), executableVal(executable)], vec([]))
  const entry = host.storage.require(instanceKey)
  if (entry.data.type !== EntryType.contractData) return
  const { contractData } = entry.data
  const { val } = contractData
  if (val.type !== ScType.contractInstance) return
  host.storage.put(instanceKey, {
    type: 6,
    contractData: { ...contractData, val: { type: 19, instance: { ...val.instance, executable } } }
  })
}

const create = (
  vm: Vm,
  deployer: bigint,
  executable: ContractExecutable,
  salt: bigint,
  constructorArgs: ReadonlyArray<ScVal>
): ScVal => {
  const contractIdPreimage = {
    type: 0 as const,
    fromAddress: { address: vm.address(deployer), salt: vm.sized(salt, 32) }
  }
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
    checkReferenceStays(key)
    if (t === INSTANCE) vm.host.instancePut(key, undefined)
    else remove(vm, keyOf(vm, key, t))
  },
  "l.3": (vm, deployer, hash, salt) => create(vm, deployer, wasm(vm, hash), salt, []), // create_contract
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
    const executable = wasm(vm, hash)
    vm.host.storage.require(contractCodeKey(executable.wasmHash), "Wasm does not exist")
    replaceExecutable(vm.host, executable)
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
  "l.e": (vm, deployer, hash, salt, args) => create(vm, deployer, wasm(vm, hash), salt, vm.wholes(args)),
  "l.f": (vm, k, t, extendTo, least, most) => {
    // extend_contract_data_ttl_v2
    vm.host.storage.extendWithin(keyOf(vm, vm.whole(k), t), vm.u32(extendTo), vm.u32(least), vm.u32(most))
  },
  "l.g": (vm, c, scope, extendTo, least, most) =>
    // extend_contract_instance_and_code_ttl_v2
    extendScope(vm, vm.contract(c), scope, [vm.u32(extendTo), vm.u32(least), vm.u32(most)]),
  "l.h": (vm, text) => {
    // create_executable_tag
    const value = vm.value(text)
    if (value.type !== ScType.string) throw HostError.of("Value", "UnexpectedType", "value is not a string")
    return { type: 22, executableTag: value.str }
  },
  // create_external_ref_contract
  "l.i": (vm, deployer, owner, tag, salt, args) =>
    create(vm, deployer, reference(vm, owner, tag), salt, vm.wholes(args)),
  "l.j": (vm, owner, tag) => {
    // update_current_contract_executable_ref
    const executable = reference(vm, owner, tag)
    requireExternalRef(vm.host, executable.externalRef)
    replaceExecutable(vm.host, executable)
  }
}
