// The bounds of classic balances: reserve and liabilities of an account, limit and liabilities of a trustline. Shared
// by the asset contract and the classic operations. All amounts in stroops or atomic units, as `bigint`.
import type { AccountEntry, TrustLineEntry } from "../xdr/Xdr.ts"

export const INT64_MAX = 9_223_372_036_854_775_807n

/**
 * Number of base reserves of an account: two, plus one per subentry, plus its sponsorships of others, minus its
 * sponsored entries.
 */
const reserveCount = (account: AccountEntry): bigint => {
  const v1 = account.ext.v === 1 ? account.ext.v1 : undefined
  const v2 = v1?.ext.v === 2 ? v1.ext.v2 : undefined
  return 2n + BigInt(account.numSubEntries) + BigInt(v2?.numSponsoring ?? 0) - BigInt(v2?.numSponsored ?? 0)
}

export interface BalanceRange {
  readonly min: bigint
  readonly max: bigint
}

export const accountRange = (account: AccountEntry, baseReserveStroops: bigint): BalanceRange => {
  const liabilities = account.ext.v === 1 ? account.ext.v1.liabilities : { selling: 0n, buying: 0n }
  return { min: reserveCount(account) * baseReserveStroops + liabilities.selling, max: INT64_MAX - liabilities.buying }
}

export const trustLineRange = (line: TrustLineEntry): BalanceRange => {
  const liabilities = line.ext.v === 1 ? line.ext.v1.liabilities : { selling: 0n, buying: 0n }
  return { min: liabilities.selling, max: line.limit - liabilities.buying }
}
