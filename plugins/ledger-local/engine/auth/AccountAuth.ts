// Authentication of a classic account: the built-in counterpart of a contract account's `__check_auth`. Its signature
// is a vector of one to twenty maps {public_key, signature}, keys strictly ascending, each a signer with weight,
// together at least the medium threshold. Signatures are checked strictly (small-order points and large scalars are
// refused).
import { EntryType, SignerKeyType } from "../xdr/types.ts"
import { HostError } from "../host/HostError.ts"
import type { AccountAuthHost } from "../host/HostTypes.ts"
import { accountKey } from "../state/LedgerKeys.ts"
import { bytes as bytesVal, readBytes, readMap, readVec, symbolText, u32 } from "../xdr/ScVal.ts"
import { compareBytes, equalBytes, type AccountEntry, type PublicKey, type ScVal } from "../xdr/Xdr.ts"

const SIGNATURES_MAX = 20
const MEDIUM = 2
const AUTHENTICATION = 5
const FIELDS = ["public_key", "signature"]

const sized = (value: ScVal, length: number): Uint8Array => {
  const content = readBytes(value)
  if (content.length !== length)
    throw HostError.of("Value", "UnexpectedSize", "Bytes had unexpected size", [u32(content.length)])
  return content
}

const readSignature = (value: ScVal): readonly [publicKey: Uint8Array, signature: Uint8Array] => {
  const map = readMap(value)
  if (map.length !== FIELDS.length) {
    const message = "differing host map and output slice lengths when unpacking map to slice"
    throw HostError.of("Object", "UnexpectedSize", message)
  }
  for (const [i, { key }] of map.entries()) {
    const name = symbolText(key)
    if (name === undefined) throw HostError.silent("Value", "UnexpectedType", "a field's name is not a symbol")
    if (name !== FIELDS[i]) throw HostError.of("Value", "InvalidInput", "symbol mismatch", [key])
  }
  return [sized(map[0]!.val, 32), sized(map[1]!.val, 64)]
}

const weightOf = (account: AccountEntry, publicKey: Uint8Array): number => {
  if (equalBytes(publicKey, account.accountId.ed25519)) return account.thresholds[0] ?? 0
  const signer = account.signers.find(
    ({ key }) => key.type === SignerKeyType.ed25519 && equalBytes(key.ed25519, publicKey)
  )
  return signer === undefined ? 0 : Math.min(255, signer.weight)
}

/** Throws unless `signature` authenticates the account for the 32-byte `payload`. */
export const checkAccountAuth = (
  host: AccountAuthHost,
  accountId: PublicKey,
  payload: Uint8Array,
  signature: ScVal
): void => {
  const signatures = readVec(signature)
  if (signatures.length > SIGNATURES_MAX) {
    throw HostError.contract(AUTHENTICATION, "too many account signers", [u32(signatures.length)])
  }
  if (signatures.length === 0) throw HostError.contract(AUTHENTICATION, "no account signatures found")
  const entry = host.require(accountKey(accountId))
  if (entry.data.type !== EntryType.account) throw HostError.of("Storage", "InternalError", "unexpected entry found")
  const account = entry.data.account
  let previous: Uint8Array | undefined
  let weight = 0
  for (const item of signatures) {
    const [publicKey, signatureBytes] = readSignature(item)
    if (previous !== undefined && compareBytes(previous, publicKey) >= 0) {
      throw HostError.contract(AUTHENTICATION, "public keys are not ordered", [bytesVal(previous), bytesVal(publicKey)])
    }
    host.countSignature()
    if (!host.verify(publicKey, payload, signatureBytes)) {
      throw HostError.of("Crypto", "InvalidInput", "failed ED25519 verification")
    }
    const signerWeight = weightOf(account, publicKey)
    if (signerWeight === 0) {
      throw HostError.contract(AUTHENTICATION, "signer does not belong to account", [bytesVal(publicKey)])
    }
    weight += signerWeight
    previous = publicKey
  }
  const threshold = account.thresholds[MEDIUM] ?? 0
  if (weight < threshold) {
    throw HostError.contract(AUTHENTICATION, "signature weight is lower than threshold", [u32(weight), u32(threshold)])
  }
}
