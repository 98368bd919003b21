// Host functions on the context (`x.*`), calls (`d.*`), addresses and authorization (`a.*`) and cryptography (`c.*`). A
// caught error keeps a contract's own number and becomes `Error(Context, InvalidAction)` otherwise; internal errors and
// exceeded limits cannot be caught.
import { AddressType, EntryType, ScErrorType, ScType } from "../xdr/types.ts"
import { isTooDeep } from "../xdr/deepSize.ts"
import { chargeSignature } from "../host/instructionPrices.ts"
import { executableVal } from "../host/executables.ts"
import type { ContractHost } from "../host/HostTypes.ts"
import { HostError } from "../host/HostError.ts"
import { contractInstanceKey } from "../state/LedgerKeys.ts"
import {
  address as addressVal,
  bytes,
  compareScVal,
  field,
  readMap,
  readVec,
  str,
  sym,
  symbolText,
  u32,
  u64,
  vec,
  VOID
} from "../xdr/ScVal.ts"
import {
  addressOfStrKey,
  addressStrKey,
  accountAddress,
  contractAddress,
  latin1,
  muxedAddressOfStrKey,
  publicKey,
  type ContractExecutable,
  type ScAddress,
  type ScVal,
  type SorobanAuthorizedInvocation
} from "../xdr/Xdr.ts"
import type { HostFunctions, Vm } from "./Vm.ts"

const K256_HALF_ORDER = 0x7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0n
const P256_HALF_ORDER = 0x7fffffff800000007fffffffffffffffde737d56d38bcf4279dce5617e3192a8n

/** Calls another contract; a failure is logged with `words`. */
const call = (vm: Vm, contract: bigint, fn: bigint, args: bigint, words: string): ScVal => {
  const contractId = vm.contract(contract)
  const name = latin1(vm.text(fn, 15))
  const values = vm.wholes(args)
  try {
    return vm.nested(() => vm.host.call(contractId, name, values))
  } catch (error) {
    if (!(error instanceof HostError)) throw error
    vm.host.logError(error.saying(words, [sym(name), vec(values)]))
    throw error
  }
}

const requireAuth = (vm: Vm, address: bigint, args: ReadonlyArray<ScVal>): void => {
  const caller = vm.address(address)
  vm.nested(() => vm.host.auth.require(caller, args))
}

const malformedAuth = (): HostError => HostError.of("Auth", "InvalidInput", "invoker authorization is malformed")

const part = (value: ScVal | undefined, name: string): ScVal => {
  const found = value === undefined ? undefined : field(readMap(value), name)
  if (found === undefined) throw malformedAuth()
  return found
}

/** The executable to create, in the form of `executableVal`. */
const readExecutable = ([kind, content]: ReadonlyArray<ScVal>): ContractExecutable => {
  if (symbolText(kind) === "Wasm" && content?.type === ScType.bytes) return { type: 0, wasmHash: content.bytes }
  if (symbolText(kind) !== "ExternalRef") throw malformedAuth()
  const [owner, tag] = [part(content, "owner"), part(content, "tag")]
  if (owner.type !== ScType.address || tag.type !== ScType.string) throw malformedAuth()
  return { type: 2, externalRef: { executableOwner: owner.address, tag: tag.str } }
}

/** The argument of `authorize_as_curr_contract`: the same tree as in an authorization entry, as values. */
const invokerInvocation = (host: ContractHost, value: ScVal): SorobanAuthorizedInvocation => {
  const [kind, content] = readVec(value)
  const name = symbolText(kind)
  if (name === "Contract") {
    const context = part(content, "context")
    const [contract, fn] = [part(context, "contract"), part(context, "fn_name")]
    if (contract.type !== ScType.address || fn.type !== ScType.symbol) throw malformedAuth()
    const contractFn = {
      contractAddress: contract.address,
      functionName: fn.sym,
      args: [...readVec(part(context, "args"))]
    }
    const subs = readVec(part(content, "sub_invocations"))
    return { function: { type: 0, contractFn }, subInvocations: subs.map((sub) => invokerInvocation(host, sub)) }
  }
  const [executable, salt] = [readVec(part(content, "executable")), part(content, "salt")]
  if (salt.type !== ScType.bytes) throw malformedAuth()
  const constructorArgs = name === "CreateContractWithCtorHostFn" ? [...readVec(part(content, "constructor_args"))] : []
  if (name !== "CreateContractHostFn" && name !== "CreateContractWithCtorHostFn") throw malformedAuth()
  const fromAddress = { address: contractAddress(host.frame.contractId), salt: salt.bytes }
  const createContractV2HostFn = {
    contractIdPreimage: { type: 0 as const, fromAddress },
    executable: readExecutable(executable),
    constructorArgs
  }
  return { function: { type: 2, createContractV2HostFn }, subInvocations: [] }
}

/** The second half of a signature as a number. */
const sOf = (signature: Uint8Array): bigint =>
  signature.subarray(32).reduce((sum, byte) => (sum << 8n) | BigInt(byte), 0n)

const recoverSecp256k1 = (vm: Vm, digest: bigint, signature: bigint, recoveryId: bigint): ScVal => {
  const [hash, rs, id] = [vm.sized(digest, 32), vm.sized(signature, 64), vm.u32(recoveryId)]
  const key = sOf(rs) > K256_HALF_ORDER ? undefined : vm.host.input.crypto.secp256k1Recover(hash, rs, id)
  if (key === undefined) throw HostError.of("Crypto", "InvalidInput", "failed secp256k1 key recovery")
  return bytes(key)
}

/** Work for an address read from its text or written as one, which takes microseconds. */
const ADDRESS_TEXT_WORK = 1_000

/** The text of an address given as bytes or as a string. */
const strKeyOf = (vm: Vm, word: bigint): string => {
  vm.payWork(ADDRESS_TEXT_WORK)
  const value = vm.value(word)
  return value.type === ScType.bytes ? latin1(value.bytes) : latin1(vm.text(word, 14))
}

const addressText = (vm: Vm, address: ScAddress): ScVal => {
  vm.payWork(ADDRESS_TEXT_WORK)
  return str(addressStrKey(address))
}

const readAddressText = (text: string, read: (text: string) => ScAddress): ScVal => {
  try {
    return addressVal(read(text))
  } catch {
    throw HostError.of("Value", "InvalidInput", "not an address")
  }
}

const verifySecp256r1 = (vm: Vm, key: bigint, digest: bigint, signature: bigint): void => {
  const [publicPoint, hash, rs] = [vm.sized(key, 65), vm.sized(digest, 32), vm.sized(signature, 64)]
  if (sOf(rs) > P256_HALF_ORDER || !vm.host.input.crypto.secp256r1Verify(publicPoint, hash, rs)) {
    throw HostError.of("Crypto", "InvalidInput", "failed secp256r1 verification")
  }
}

export const callFunctions: HostFunctions = {
  "x._": (vm, text, length, values, count) => {
    // log_from_linear_memory
    const message = str(vm.readText(vm.u32(text), vm.u32(length)))
    vm.host.log.message(
      vm.host.currentContract,
      message,
      vm.readValues(vm.u32(values), vm.u32(count)).map((value) => vm.measured(value))
    )
  },
  "x.0": (vm, a, b) => BigInt(Math.sign(compareScVal(vm.whole(a), vm.whole(b)))), // obj_cmp
  "x.1": (vm, topics, data) => {
    // contract_event
    const [words, content] = [vm.value(topics), vm.value(data)]
    // The network finds out when it writes its log out, which it then cannot.
    if (isTooDeep(words) || isTooDeep(content)) vm.host.log.withhold()
    vm.host.emit(vm.wholes(topics), vm.whole(data))
  },
  "x.2": (vm) => u32(vm.host.input.settings.protocolVersion), // get_ledger_version
  "x.3": (vm) => u32(vm.host.input.ledgerSeq), // get_ledger_sequence
  "x.4": (vm) => u64(vm.host.input.closeTime), // get_ledger_timestamp
  "x.5": (vm, error) => {
    // fail_with_error
    const value = vm.value(error)
    if (value.type !== ScType.error || value.error.type !== ScErrorType.contract)
      throw HostError.of("Context", "UnexpectedType", "contract attempted to fail with other than a contract error")
    throw HostError.contract(value.error.contractCode, "failing with contract error", [u32(value.error.contractCode)])
  },
  "x.6": (vm) => bytes(vm.host.input.networkId), // get_ledger_network_id
  "x.7": (vm) => addressVal(contractAddress(vm.host.frame.contractId)), // get_current_contract_address
  "x.8": (vm) => u32(vm.host.storage.maxLiveUntil), // get_max_live_until_ledger

  "d._": (vm, contract, fn, args) => call(vm, contract, fn, args, "contract call failed"), // call
  "d.0": (vm, contract, fn, args) => {
    // try_call
    try {
      return call(vm, contract, fn, args, "contract try_call failed")
    } catch (error) {
      if (!(error instanceof HostError) || !vm.host.isRecoverable(error)) throw error
      return {
        type: 2,
        error: error.errorType === "Contract" ? error.scError : HostError.of("Context", "InvalidAction", "").scError
      }
    }
  },

  "a._": (vm, address, args) => requireAuth(vm, address, vm.wholes(args)), // require_auth_for_args
  "a.0": (vm, address) => requireAuth(vm, address, vm.host.frame.args), // require_auth
  "a.1": (vm, text) => readAddressText(strKeyOf(vm, text), addressOfStrKey), // strkey_to_address
  "a.2": (vm, address) => addressText(vm, vm.address(address)), // address_to_strkey
  "a.3": (vm, entries) => {
    // authorize_as_curr_contract
    const { host } = vm
    const invocations = vm.wholes(entries).map((entry) => invokerInvocation(host, entry))
    host.auth.addInvokerAuth(contractAddress(host.frame.contractId), invocations)
  },
  "a.4": (vm, word) => {
    // get_address_from_muxed_address
    const value = vm.value(word)
    if (value.type !== ScType.address || value.address.type !== AddressType.muxedAccount)
      throw HostError.of("Value", "UnexpectedType", "not a muxed address")
    return addressVal(accountAddress(publicKey(value.address.muxedAccount.ed25519)))
  },
  "a.5": (vm, word) => {
    // get_id_from_muxed_address
    const value = vm.value(word)
    if (value.type !== ScType.address || value.address.type !== AddressType.muxedAccount)
      throw HostError.of("Value", "UnexpectedType", "not a muxed address")
    return u64(value.address.muxedAccount.id)
  },
  "a.6": (vm, word) => {
    // get_address_executable
    const address = vm.address(word)
    if (address.type === AddressType.account)
      return vm.host.storage.get({ type: 0, account: { accountId: address.accountId } }) === undefined
        ? VOID
        : vec([sym("Account")])
    const entry = vm.host.storage.get(contractInstanceKey(address))
    const value = entry?.data.type === EntryType.contractData ? entry.data.contractData.val : undefined
    return value?.type === ScType.contractInstance ? executableVal(value.instance.executable) : VOID
  },
  "a.7": (vm, text) => readAddressText(strKeyOf(vm, text), muxedAddressOfStrKey), // strkey_to_muxed_address
  "a.8": (vm, word) => {
    // muxed_address_to_strkey
    const value = vm.value(word)
    if (value.type !== ScType.address) throw HostError.of("Value", "UnexpectedType", "not an address")
    return addressText(vm, value.address)
  },
  "a.9": (vm) => {
    // get_delegated_signers_for_current_auth_check
    const check = vm.host.frame.authCheck
    if (check === undefined) throw HostError.of("Auth", "InvalidAction", "no authentication is running in this frame")
    return vec(check.delegates.map(({ signature }) => addressVal(signature.address)))
  },
  "a.a": (vm, address) => {
    // delegate_account_auth
    const caller = vm.address(address)
    vm.nested(() => vm.host.auth.delegate(vm.host.frame.authCheck, caller))
  },

  "c._": (vm, content) => {
    // compute_hash_sha256
    const message = vm.bytes(content)
    vm.host.meter.charge(vm.host.meter.costs.computeSha256Hash, message.length)
    return bytes(vm.host.input.crypto.sha256(message))
  },
  "c.0": (vm, key, message, signature) => {
    // verify_sig_ed25519
    const content = vm.bytes(message)
    chargeSignature(vm.host.meter, content.length)
    if (!vm.host.verifyEd25519(vm.sized(key, 32), content, vm.sized(signature, 64))) {
      throw HostError.of("Crypto", "InvalidInput", "failed ED25519 verification")
    }
  },
  "c.1": (vm, content) => {
    // compute_hash_keccak256
    const message = vm.bytes(content)
    vm.host.meter.charge(vm.host.meter.costs.computeKeccak256Hash, message.length)
    return bytes(vm.host.input.crypto.keccak256(message))
  },
  "c.2": (vm, digest, signature, recoveryId) => {
    // recover_key_ecdsa_secp256k1
    return recoverSecp256k1(vm, digest, signature, recoveryId)
  },
  "c.3": (vm, key, digest, signature) => {
    // verify_sig_ecdsa_secp256r1
    verifySecp256r1(vm, key, digest, signature)
  }
}
