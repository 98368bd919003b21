// A contract's executable: wasm by its hash, the built-in contract of an asset, or, since protocol 28 (CAP-85), wasm
// whose hash is in a tagged entry of another contract, its owner. Upgrading that entry upgrades every contract that
// refers to it. Such entries are persistent, hold the hash of existing wasm, and are never removed.
import { EntryType, ExecutableType, ScType } from "../xdr/types.ts"
import { contractCodeKey, contractDataKey, Durability } from "../state/LedgerKeys.ts"
import { address as addressVal, bytes, structMap, sym, vec } from "../xdr/ScVal.ts"
import type { ContractExecutable, LedgerKey, ScVal } from "../xdr/Xdr.ts"
import { HostError } from "./HostError.ts"
import type { ContractHost } from "./HostTypes.ts"

type ExternalRef = Extract<ContractExecutable, { type: 2 }>["externalRef"]

/** The first protocol that has references to executables, and values for their tags. */
export const EXTERNAL_REFS_SINCE = 28

const HASH_BYTES = 32

/** Key of the entry that holds the hash of the wasm. */
const externalRefKey = ({ executableOwner, tag }: ExternalRef): LedgerKey =>
  contractDataKey(executableOwner, { type: 22, executableTag: tag }, Durability.persistent)

/** Refuses a reference to an entry that does not exist. */
export const requireExternalRef = (host: ContractHost, reference: ExternalRef): void => {
  if (host.storage.get(externalRefKey(reference)) !== undefined) return
  const reported: ReadonlyArray<ScVal> = [addressVal(reference.executableOwner), { type: 14, str: reference.tag }]
  throw HostError.of("Storage", "MissingValue", "executable reference entry does not exist", reported)
}

const hashIn = (host: ContractHost, reference: ExternalRef): Uint8Array => {
  const { data } = host.storage.require(externalRefKey(reference))
  const value = data.type === EntryType.contractData ? data.contractData.val : undefined
  if (value?.type !== ScType.bytes || value.bytes.length !== HASH_BYTES)
    throw HostError.of("Storage", "InternalError", "executable reference entry does not contain a Wasm hash")
  return value.bytes
}

/** The hash of the wasm that is run; undefined for the built-in contract of an asset. */
export const wasmHashOf = (host: ContractHost, executable: ContractExecutable): Uint8Array | undefined => {
  switch (executable.type) {
    case ExecutableType.wasm:
      return executable.wasmHash
    case ExecutableType.externalRef:
      return hashIn(host, executable.externalRef)
    case ExecutableType.stellarAsset:
      return undefined
  }
}

/** The entries that must be live to run a contract, in addition to its instance. */
export const executableKeys = (host: ContractHost, executable: ContractExecutable): ReadonlyArray<LedgerKey> => {
  const hash = wasmHashOf(host, executable)
  if (hash === undefined) return []
  const code = contractCodeKey(hash)
  return executable.type === ExecutableType.externalRef ? [externalRefKey(executable.externalRef), code] : [code]
}

/** An executable as a value for events and contexts. */
export const executableVal = (executable: ContractExecutable): ScVal => {
  switch (executable.type) {
    case ExecutableType.wasm:
      return vec([sym("Wasm"), bytes(executable.wasmHash)])
    case ExecutableType.stellarAsset:
      return vec([sym("StellarAsset")])
    case ExecutableType.externalRef: {
      const { executableOwner, tag } = executable.externalRef
      const reference = structMap({ owner: addressVal(executableOwner), tag: { type: 14, str: tag } })
      return vec([sym("ExternalRef"), reference])
    }
  }
}

/** Refuses a value under a tag that would leave the contracts that refer to it without code. */
export const checkReferenceEntry = (host: ContractHost, key: ScVal, value: ScVal, isPersistent: boolean): void => {
  if (key.type !== ScType.executableTag) return
  if (!isPersistent)
    throw HostError.of("Storage", "InvalidInput", "executable reference entries may only use persistent storage")
  if (value.type !== ScType.bytes || value.bytes.length !== HASH_BYTES)
    throw HostError.of("Storage", "InvalidInput", "executable reference value must be a 32-byte Wasm hash", [value])
  host.storage.require(contractCodeKey(value.bytes), "Wasm does not exist")
}

/** Refuses to remove an entry that other contracts may use as their executable. */
export const checkReferenceStays = (key: ScVal): void => {
  if (key.type === ScType.executableTag)
    throw HostError.of("Storage", "InvalidAction", "executable reference entries cannot be deleted")
}
