// Creating contracts: the contract of an asset, a contract from uploaded wasm, and the upload itself. A contract's id
// is the hash of the network and of the contract's preimage, so the same asset has one contract per network. A
// deployer's address must authorize the creation; an asset's contract needs no authorization.
import { EntryType, ExecutableType, PreimageType } from "../xdr/types.ts"
import type { ContractHost } from "./HostTypes.ts"
import { Price } from "./instructionPrices.ts"
import { EXTERNAL_REFS_SINCE, requireExternalRef, wasmHashOf } from "./executables.ts"
import { HostError, Unsupported } from "./HostError.ts"
import { contractCodeKey, contractInstanceKey } from "../state/LedgerKeys.ts"
import { address as addressVal, bytes, checkScVal, INSTANCE_KEY } from "../xdr/ScVal.ts"
import { codec, codecAsset, contractAddress, type ContractIdPreimage, type ScVal } from "../xdr/Xdr.ts"
import type * as xdr from "@stellar/stellar-sdk/xdr"
import type { EngineCrypto } from "./Random.ts"

type CreateContractArgs = xdr.CreateContractArgsV2Wire

/** The contract id that a preimage leads to on a network. */
export const contractIdOf = (
  crypto: Pick<EngineCrypto, "sha256">,
  networkId: Uint8Array,
  contractIdPreimage: ContractIdPreimage
): Uint8Array => crypto.sha256(codec.HashIdPreimage.encode({ type: 8, contractId: { networkId, contractIdPreimage } }))

const checkPair = ({ contractIdPreimage, executable }: CreateContractArgs): void => {
  if ((contractIdPreimage.type === PreimageType.asset) !== (executable.type === ExecutableType.stellarAsset)) {
    throw HostError.of("Value", "InvalidInput", "the contract's preimage and executable do not match")
  }
}

const store = (host: ContractHost, args: CreateContractArgs): Uint8Array => {
  const { crypto, networkId } = host.input
  const contractId = contractIdOf(crypto, networkId, args.contractIdPreimage)
  const contract = contractAddress(contractId)
  const key = contractInstanceKey(contract)
  if (host.storage.get(key) !== undefined) {
    throw HostError.of("Storage", "ExistingValue", "contract already exists", [bytes(contractId)])
  }
  if (args.executable.type === ExecutableType.externalRef) requireExternalRef(host, args.executable.externalRef)
  if (args.executable.type === ExecutableType.wasm)
    host.storage.require(contractCodeKey(args.executable.wasmHash), "Wasm does not exist")
  host.storage.put(key, {
    type: 6,
    contractData: {
      ext: { v: 0 },
      contract,
      key: INSTANCE_KEY,
      durability: 1,
      val: { type: 19, instance: { executable: args.executable, storage: null } }
    }
  })
  return contractId
}

/** Contracts built for an earlier protocol have no constructor, regardless of their exports. */
const CONSTRUCTORS_SINCE = 22

/** The network instantiates a new contract's module to see which protocol it was built for. */
const mayHaveConstructor = (host: ContractHost, { executable, constructorArgs }: CreateContractArgs): boolean => {
  const { contracts } = host.input
  const wasmHash = wasmHashOf(host, executable)
  if (wasmHash === undefined) throw HostError.of("Context", "InternalError", "the contract of an asset has no code")
  if (contracts === undefined) throw new Unsupported("contract wasm")
  const entry = host.storage.require(contractCodeKey(wasmHash), "Wasm does not exist")
  if (entry.data.type !== EntryType.contractCode)
    throw HostError.of("Storage", "InternalError", "contract code is malformed")
  host.meter.spend(Price.contractCreated)
  const { code } = entry.data.contractCode
  const protocol = contracts.protocolOf(host, { wasmHash, code, isNew: host.isNewCode(entry) })
  if (protocol >= CONSTRUCTORS_SINCE) return true
  if (constructorArgs.length === 0) return false
  throw HostError.of(
    "Context",
    "InvalidAction",
    "trying to call non-default constructor on a contract that doesn't support constructors"
  )
}

/** Creates a contract and runs its initialization; the value is its address. */
export const createContract = (host: ContractHost, args: CreateContractArgs): ScVal => {
  checkPair(args)
  const { protocolVersion } = host.input.settings
  if (args.executable.type === ExecutableType.externalRef && protocolVersion < EXTERNAL_REFS_SINCE)
    throw HostError.of("Value", "InvalidInput", "executable references are of a later protocol")
  for (const arg of args.constructorArgs) checkScVal(arg, protocolVersion)
  const { contractIdPreimage } = args
  let contractId: Uint8Array
  if (contractIdPreimage.type === PreimageType.address) {
    host.auth.pushCreate({ type: 2, createContractV2HostFn: args })
    try {
      host.auth.require(contractIdPreimage.fromAddress.address, [])
      contractId = store(host, args)
      // The constructor's requirements are authorized below the creation, so the creation's frame is still open.
      if (mayHaveConstructor(host, args)) {
        host.meter.spend(Price.constructorCall)
        host.call(contractId, "__constructor", args.constructorArgs, {
          reserved: true,
          missingIsNoop: args.constructorArgs.length === 0
        })
      }
    } finally {
      host.auth.pop()
    }
  } else {
    contractId = store(host, args)
    host.meter.spend(Price.assetCreated)
    if (contractIdPreimage.fromAsset.type !== 0) host.meter.spend(Price.issuedAssetCreated)
    host.call(contractId, "init_asset", [bytes(codecAsset.encode(contractIdPreimage.fromAsset))], { reserved: true })
  }
  return addressVal(contractAddress(contractId))
}

/** Uploads wasm; the value is its hash. Uploading existing code changes nothing. */
export const uploadWasm = (host: ContractHost, code: Uint8Array): ScVal => {
  const { meter } = host
  meter.spend(Price.upload)
  meter.charge(meter.costs.computeSha256Hash, code.length)
  // The network reads new code twice, and instantiates it once.
  meter.charge(meter.costs.vmInstantiation, code.length)
  meter.charge(meter.costs.vmCachedInstantiation, code.length)
  meter.charge(meter.costs.vmInstantiation, code.length)
  const { contracts, crypto } = host.input
  if (contracts === undefined) throw new Unsupported("contract wasm")
  const hash = crypto.sha256(code)
  const key = contractCodeKey(hash)
  const ext = contracts.validate(host, code)
  const entry = host.storage.get(key)
  if (entry === undefined) host.storage.put(key, { type: 7, contractCode: { ext, hash, code } })
  return bytes(hash)
}
