// The asset contract's `trust` (protocol 26): opens an unlimited trustline for an account under that account's own
// authorization. Nothing happens for a contract address or an account that already has the line.
import { AddressType, EntryType } from "../xdr/types.ts"
import { accountRange, INT64_MAX } from "../state/ClassicBalance.ts"
import type { ContractHost } from "../host/HostTypes.ts"
import { HostError } from "../host/HostError.ts"
import { accountKey, trustLineAsset, trustLineKey } from "../state/LedgerKeys.ts"
import { SacError } from "./SacBalances.ts"
import type { SacInstance } from "./SacInstance.ts"
import { address as addressVal } from "../xdr/ScVal.ts"
import { equalBytes, type ScAddress, type ScVal } from "../xdr/Xdr.ts"

const SUBENTRIES_MAX = 1_000
const AUTH_REQUIRED = 1
const AUTH_CLAWBACK = 8
const LINE_AUTHORIZED = 1
const LINE_CLAWBACK = 4

export const createTrustLine = (
  host: ContractHost,
  sac: SacInstance,
  owner: ScAddress,
  args: ReadonlyArray<ScVal>
): void => {
  if (owner.type !== AddressType.account) return
  const { issuer } = sac
  if (issuer === undefined) {
    throw HostError.contract(SacError.operationNotSupported, "trust operation is not supported for native asset")
  }
  if (equalBytes(owner.accountId.ed25519, issuer.ed25519)) {
    throw HostError.contract(SacError.operationNotSupported, "cannot create trustline for issuer")
  }
  const asset = trustLineAsset(sac.asset)
  const lineKey = trustLineKey(owner.accountId, asset)
  if (host.storage.get(lineKey) !== undefined) return
  host.auth.require(owner, args)
  const issuerEntry = host.storage.require(accountKey(issuer))
  const issuerFlags = issuerEntry.data.type === EntryType.account ? issuerEntry.data.account.flags : 0
  const key = accountKey(owner.accountId)
  const entry = host.storage.get(key)
  if (entry?.data.type !== EntryType.account)
    throw HostError.contract(SacError.accountMissing, "account entry is missing", [addressVal(owner)])
  const account = entry.data.account
  if (account.numSubEntries >= SUBENTRIES_MAX) {
    throw HostError.contract(SacError.tooManySubentries, "account has reached maximum number of sub-entries")
  }
  const { baseReserveStroops } = host.input.settings
  if (account.balance < accountRange(account, baseReserveStroops).min + baseReserveStroops) {
    throw HostError.contract(SacError.insufficientReserve, "account has insufficient reserve for new trustline")
  }
  const flags =
    ((issuerFlags & AUTH_REQUIRED) === 0 ? LINE_AUTHORIZED : 0) |
    ((issuerFlags & AUTH_CLAWBACK) === 0 ? 0 : LINE_CLAWBACK)
  host.storage.put(lineKey, {
    type: 1,
    trustLine: { accountId: owner.accountId, asset, balance: 0n, limit: INT64_MAX, flags, ext: { v: 0 } }
  })
  host.storage.put(key, { type: 0, account: { ...account, numSubEntries: account.numSubEntries + 1 } })
}
