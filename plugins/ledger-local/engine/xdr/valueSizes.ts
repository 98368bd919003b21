// Sizes of a contract value: the number of values in it, the number that the network's host keeps as objects, and the
// pieces of its XDR. The network's metering counts these.
import { AddressType, AssetType, EntryType, ExecutableType, ScType } from "./types.ts"
import type { ContractEvent, LedgerEntry, LedgerKey, ScAddress, ScVal } from "./Xdr.ts"

const sum = <A>(items: ReadonlyArray<A>, of: (item: A) => number): number =>
  items.reduce((total, item) => total + of(item), 0)

/** The value and all values in it. */
export const valuesIn = (value: ScVal): number => {
  if (value.type === ScType.vec) return 1 + sum(value.vec ?? [], valuesIn)
  if (value.type === ScType.map) return 1 + sum(value.map ?? [], ({ key, val }) => valuesIn(key) + valuesIn(val))
  return 1
}

/** Characters of a symbol that fits into a word. */
export const SMALL_SYMBOL_MAX = 9

/** The values in it that do not fit into a word. */
export const objectsIn = (value: ScVal): number => {
  switch (value.type) {
    case ScType.u128:
    case ScType.i128:
    case ScType.bytes:
    case ScType.string:
    case ScType.address:
      return 1
    case ScType.symbol:
      return value.sym.bytes.length > SMALL_SYMBOL_MAX ? 1 : 0
    case ScType.vec:
      return 1 + sum(value.vec ?? [], objectsIn)
    case ScType.map:
      return 1 + sum(value.map ?? [], ({ key, val }) => objectsIn(key) + objectsIn(val))
    default:
      return 0
  }
}

/** Bytes of any length are written unchanged, and padded to whole words. */
const opaque = (length: number): number => (length === 0 ? 0 : length % 4 === 0 ? 1 : 2)

const piecesOfAddress = (address: ScAddress): number =>
  address.type === AddressType.account || address.type === AddressType.muxedAccount ? 3 : 2

export const piecesOfValue = (value: ScVal): number => {
  switch (value.type) {
    case ScType.void:
    case ScType.ledgerKeyContractInstance:
      return 1
    case ScType.error:
    case ScType.u128:
    case ScType.i128:
      return 3
    case ScType.u256:
    case ScType.i256:
      return 5
    case ScType.bytes:
      return 2 + opaque(value.bytes.length)
    case ScType.string:
      return 2 + opaque(value.str.bytes.length)
    case ScType.symbol:
      return 2 + opaque(value.sym.bytes.length)
    case ScType.vec:
      return 3 + sum(value.vec ?? [], piecesOfValue)
    case ScType.map:
      return 3 + sum(value.map ?? [], ({ key, val }) => piecesOfValue(key) + piecesOfValue(val))
    case ScType.address:
      return 1 + piecesOfAddress(value.address)
    case ScType.contractInstance: {
      const { executable, storage } = value.instance
      const entries = sum(storage ?? [], ({ key, val }) => piecesOfValue(key) + piecesOfValue(val))
      return (executable.type === ExecutableType.wasm ? 4 : 3) + (storage === null ? 0 : 1) + entries
    }
    default:
      return 2
  }
}

export const piecesOfKey = (key: LedgerKey): number => {
  switch (key.type) {
    case EntryType.account:
      return 3
    case EntryType.trustLine:
      return key.trustLine.asset.type === AssetType.native ? 4 : 7
    case EntryType.contractData:
      return 2 + piecesOfAddress(key.contractData.contract) + piecesOfValue(key.contractData.key)
    case EntryType.contractCode:
      return 2
    default:
      return 4
  }
}

type Account = Extract<LedgerEntry["data"], { type: 0 }>["account"]

const piecesOfAccount = (account: Account): number => {
  const { inflationDest, homeDomain, signers, ext } = account
  const fixed = 10 + (inflationDest === null ? 0 : 2) + opaque(homeDomain.bytes.length) + 3 * signers.length
  if (ext.v === 0) return fixed
  const v2 = ext.v1.ext.v === 2 ? ext.v1.ext.v2 : undefined
  if (v2 === undefined) return fixed + 3
  const sponsors = sum(v2.signerSponsoringIDs, (id) => (id === null ? 1 : 3))
  return fixed + 7 + sponsors + (v2.ext.v === 3 ? 3 : 0)
}

export const piecesOfEntry = ({ data, ext }: LedgerEntry): number => {
  const around = 3 + (ext.v === 1 ? (ext.v1.sponsoringId === null ? 2 : 4) : 0)
  switch (data.type) {
    case EntryType.account:
      return around + piecesOfAccount(data.account)
    case EntryType.trustLine:
      return around + (data.trustLine.asset.type === AssetType.native ? 7 : 10) + (data.trustLine.ext.v === 1 ? 3 : 0)
    case EntryType.contractData: {
      const { contract, key, val } = data.contractData
      return around + 2 + piecesOfAddress(contract) + piecesOfValue(key) + piecesOfValue(val)
    }
    case EntryType.contractCode:
      return around + 3 + (data.contractCode.ext.v === 1 ? 12 : 0) + opaque(data.contractCode.code.length)
    default:
      return around
  }
}

export const piecesOfEvent = ({ contractId, body }: ContractEvent): number =>
  5 + (contractId === null ? 0 : 1) + sum(body.v0.topics, piecesOfValue) + piecesOfValue(body.v0.data)
