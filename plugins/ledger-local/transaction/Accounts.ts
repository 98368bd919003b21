// The arithmetic of accounts and trustlines: reserves, liabilities, available balances, and the chain of extensions
// that an entry grows when it is first touched by sequence ages or sponsorship. Pure functions over immutable entries;
// amounts are `bigint` stroops or atomic units, bounded to the ledger's signed 64 bits.
import { AssetType } from "../engine/xdr/types.ts"
import type { AccountEntry, PublicKey, TrustLineEntry } from "../engine/xdr/Xdr.ts"
import type { AccountExtV2 } from "./Wire.ts"

export const INT64_MAX = (1n << 63n) - 1n
const SUBENTRIES_MAX = 1_000
const UINT32_MAX = 0xffff_ffff

export const AccountFlag = { authRequired: 1, authRevocable: 2, authImmutable: 4, clawbackEnabled: 8 } as const
export const TrustFlag = { authorized: 1, maintainLiabilities: 2, clawbackEnabled: 4 } as const

interface Liabilities {
  readonly buying: bigint
  readonly selling: bigint
}

const NONE: Liabilities = { buying: 0n, selling: 0n }

export const accountLiabilities = (account: AccountEntry): Liabilities =>
  account.ext.v === 1 ? account.ext.v1.liabilities : NONE

const extV2 = (account: AccountEntry): AccountExtV2 | undefined =>
  account.ext.v === 1 && account.ext.v1.ext.v === 2 ? account.ext.v1.ext.v2 : undefined

export const numSponsored = (account: AccountEntry): number => extV2(account)?.numSponsored ?? 0
export const numSponsoring = (account: AccountEntry): number => extV2(account)?.numSponsoring ?? 0
export const signerSponsors = (account: AccountEntry): ReadonlyArray<PublicKey | null> =>
  extV2(account)?.signerSponsoringIDs ?? account.signers.map(() => null)

/** Ledger and close time of the sequence number's last change; 0 when it has not changed since protocol 19. */
export const sequenceAge = (account: AccountEntry): { readonly ledger: number; readonly time: bigint } => {
  const v2 = extV2(account)
  return v2 !== undefined && v2.ext.v === 3
    ? { ledger: v2.ext.v3.seqLedger, time: v2.ext.v3.seqTime }
    : { ledger: 0, time: 0n }
}

/** The balance an account must keep: (2 + subentries + sponsoring − sponsored) reserves, without liabilities. */
export const minimumBalance = (account: AccountEntry, baseReserveStroops: bigint): bigint =>
  BigInt(2 + account.numSubEntries + numSponsoring(account) - numSponsored(account)) * baseReserveStroops

/** The spendable balance of an account; negative when it is below its reserve. */
export const availableBalance = (account: AccountEntry, baseReserveStroops: bigint): bigint =>
  account.balance - minimumBalance(account, baseReserveStroops) - accountLiabilities(account).selling

/** The account with a changed balance, or nothing when reserve, liabilities or 64 bits forbid it. */
export const withAddedBalance = (
  account: AccountEntry,
  delta: bigint,
  baseReserveStroops: bigint
): AccountEntry | undefined => {
  const balance = account.balance + delta
  if (balance < 0n || balance > INT64_MAX) return undefined
  const { buying, selling } = accountLiabilities(account)
  if (delta < 0n && balance - minimumBalance(account, baseReserveStroops) < selling) return undefined
  if (balance > INT64_MAX - buying) return undefined
  return { ...account, balance }
}

/** The account with extension v2 present, changed by `change`. */
export const withExtV2 = (account: AccountEntry, change: (v2: AccountExtV2) => AccountExtV2): AccountEntry => {
  const v2 = extV2(account) ?? {
    numSponsored: 0,
    numSponsoring: 0,
    signerSponsoringIDs: account.signers.map(() => null),
    ext: { v: 0 as const }
  }
  return { ...account, ext: { v: 1, v1: { liabilities: accountLiabilities(account), ext: { v: 2, v2: change(v2) } } } }
}

/** The account with other liabilities, its other extensions kept. */
export const withAccountLiabilities = (account: AccountEntry, liabilities: Liabilities): AccountEntry => ({
  ...account,
  ext: { v: 1, v1: { liabilities, ext: account.ext.v === 1 ? account.ext.v1.ext : { v: 0 } } }
})

/** The account with room for its sequence number's ages, as any has that was once a transaction's source. */
export const withSequenceAges = (account: AccountEntry): AccountEntry =>
  extV2(account)?.ext.v === 3
    ? account
    : withExtV2(account, (v2) => ({ ...v2, ext: { v: 3, v3: { ext: { v: 0 }, seqLedger: 0, seqTime: 0n } } }))

/** The account with its sequence number moved, and when, which is how extensions v1 to v3 come to be. */
export const withSequence = (
  account: AccountEntry,
  seqNum: bigint,
  ledgerSeq: number,
  closeTime: bigint
): AccountEntry =>
  withExtV2({ ...account, seqNum }, (v2) => ({
    ...v2,
    ext: { v: 3, v3: { ext: { v: 0 }, seqLedger: ledgerSeq, seqTime: closeTime } }
  }))

/** True when `more` subentries or sponsorships fit within the account's maximum count. */
export const subentriesFit = (account: AccountEntry, more: number): boolean =>
  account.numSubEntries + more <= SUBENTRIES_MAX && numSponsoring(account) + account.numSubEntries + more <= UINT32_MAX

export const sponsoringFits = (account: AccountEntry, more: number): boolean =>
  numSponsoring(account) + account.numSubEntries + more <= UINT32_MAX

export const trustLiabilities = (line: TrustLineEntry): Liabilities =>
  line.ext.v === 1 ? line.ext.v1.liabilities : NONE

export const withTrustLiabilities = (line: TrustLineEntry, liabilities: Liabilities): TrustLineEntry => ({
  ...line,
  ext: { v: 1, v1: { liabilities, ext: line.ext.v === 1 ? line.ext.v1.ext : { v: 0 } } }
})

export const isAuthorized = (line: TrustLineEntry): boolean => (line.flags & TrustFlag.authorized) !== 0
export const maintainsLiabilities = (flags: number): boolean =>
  (flags & (TrustFlag.authorized | TrustFlag.maintainLiabilities)) !== 0

/**
 * The trustline with a changed balance, or nothing when it is overdrawn or over its limit, or when its balance must not
 * move. Earlier promises may still be kept with the lesser authorization, and pool shares need none.
 */
export const withAddedTrustBalance = (line: TrustLineEntry, delta: bigint): TrustLineEntry | undefined => {
  if (delta === 0n) return line
  if (line.asset.type !== AssetType.poolShare && !maintainsLiabilities(line.flags)) return undefined
  const balance = line.balance + delta
  const { buying, selling } = trustLiabilities(line)
  if (balance < 0n || balance < selling || balance > line.limit - buying) return undefined
  return { ...line, balance }
}

/** Pools that use the line, which forbids deleting it. */
export const poolUses = (line: TrustLineEntry): number =>
  line.ext.v === 1 && line.ext.v1.ext.v === 2 ? line.ext.v1.ext.v2.liquidityPoolUseCount : 0

/** The trustline with its count of pools changed. */
export const withPoolUses = (line: TrustLineEntry, more: number): TrustLineEntry => {
  const v2 = { liquidityPoolUseCount: poolUses(line) + more, ext: { v: 0 as const } }
  return { ...line, ext: { v: 1, v1: { liabilities: trustLiabilities(line), ext: { v: 2, v2 } } } }
}
