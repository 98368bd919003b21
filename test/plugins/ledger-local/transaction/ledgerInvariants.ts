// Invariants of the ledger's entries: counts of subentries and of sponsored reserves, promises of offers, reserves,
// shares of pools, and that unified asset events suffice to explain every balance.
import { scValToNative, StrKey, type xdr } from "@stellar/stellar-sdk"
import type { NetworkSettings } from "../../../../plugins/ledger-local/engine/state/NetworkSettings.ts"
import type { Store } from "../../../../plugins/ledger-local/engine/state/Store.ts"
import {
  type AccountEntry,
  accountStrKey,
  type Asset,
  type LedgerEntry,
  type PublicKey,
  type TrustLineEntry
} from "../../../../plugins/ledger-local/engine/xdr/Xdr.ts"
import {
  accountLiabilities,
  availableBalance,
  numSponsored,
  numSponsoring,
  poolUses,
  signerSponsors,
  trustLiabilities
} from "../../../../plugins/ledger-local/transaction/Accounts.ts"
import { sep11 } from "../../../../plugins/ledger-local/transaction/ClassicEvents.ts"
import { liabilitiesOf } from "../../../../plugins/ledger-local/transaction/exchange/exchangeAmounts.ts"
import { reservesOf, sponsorOf } from "../../../../plugins/ledger-local/transaction/reserves.ts"

/** Sums by key. */
class Sums {
  readonly #sums = new Map<string, bigint>()

  add(key: string, amount: bigint): void {
    this.#sums.set(key, this.of(key) + amount)
  }

  of(key: string): bigint {
    return this.#sums.get(key) ?? 0n
  }

  /** The nonzero sums, in the order of their keys. */
  get list(): ReadonlyArray<readonly [string, bigint]> {
    return [...this.#sums].filter(([, sum]) => sum !== 0n).sort(([a], [b]) => (a < b ? -1 : 1))
  }
}

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex")

/** The owner of an entry's reserve; none for a claimable balance. */
const ownerOf = ({ data }: LedgerEntry): PublicKey | undefined => {
  switch (data.type) {
    case 0:
      return data.account.accountId
    case 1:
      return data.trustLine.accountId
    case 2:
      return data.offer.sellerId
    case 3:
      return data.data.accountId
    default:
      return undefined
  }
}

interface Counts {
  readonly subentries: Sums
  readonly sponsoring: Sums
  readonly sponsored: Sums
  /** By account, asset and side. */
  readonly promised: Sums
  /** Shares, and lines of shares, by pool. */
  readonly shares: Sums
  readonly shareLines: Sums
  /** Lines of shares by account and asset of the pool. */
  readonly uses: Sums
}

const count = (entries: ReadonlyArray<LedgerEntry>): Counts => {
  const counts: Counts = {
    subentries: new Sums(),
    sponsoring: new Sums(),
    sponsored: new Sums(),
    promised: new Sums(),
    shares: new Sums(),
    shareLines: new Sums(),
    uses: new Sums()
  }
  const pools = new Map(
    entries.flatMap(({ data }) =>
      data.type === 5
        ? [[hex(data.liquidityPool.liquidityPoolId), data.liquidityPool.body.constantProduct.params] as const]
        : []
    )
  )
  for (const entry of entries) {
    const { data } = entry
    if (data.type > 4) continue
    const reserves = BigInt(reservesOf(entry))
    const owner = ownerOf(entry)
    const sponsor = sponsorOf(entry)
    if (sponsor !== null) counts.sponsoring.add(accountStrKey(sponsor), reserves)
    if (sponsor !== null && owner !== undefined) counts.sponsored.add(accountStrKey(owner), reserves)
    if (data.type >= 1 && data.type <= 3) counts.subentries.add(accountStrKey(owner!), reserves)
    if (data.type === 0) {
      const { account } = data
      counts.subentries.add(accountStrKey(owner!), BigInt(account.signers.length))
      for (const by of signerSponsors(account)) {
        if (by === null) continue
        counts.sponsoring.add(accountStrKey(by), 1n)
        counts.sponsored.add(accountStrKey(owner!), 1n)
      }
    }
    if (data.type === 2) {
      const { selling, buying } = liabilitiesOf(data.offer.price, data.offer.amount)
      counts.promised.add(`${accountStrKey(owner!)} ${sep11(data.offer.selling)} selling`, selling)
      counts.promised.add(`${accountStrKey(owner!)} ${sep11(data.offer.buying)} buying`, buying)
    }
    if (data.type === 1 && data.trustLine.asset.type === 3) {
      const pool = hex(data.trustLine.asset.liquidityPoolId)
      counts.shares.add(pool, data.trustLine.balance)
      counts.shareLines.add(pool, 1n)
      for (const asset of [pools.get(pool)!.assetA, pools.get(pool)!.assetB])
        counts.uses.add(`${accountStrKey(owner!)} ${sep11(asset)}`, 1n)
    }
  }
  return counts
}

const accountErrors = (account: AccountEntry, counts: Counts, settings: NetworkSettings): Array<string> => {
  const id = accountStrKey(account.accountId)
  const { selling, buying } = accountLiabilities(account)
  const facts: ReadonlyArray<readonly [string, bigint, bigint]> = [
    ["subentries", BigInt(account.numSubEntries), counts.subentries.of(id)],
    ["sponsoring", BigInt(numSponsoring(account)), counts.sponsoring.of(id)],
    ["sponsored", BigInt(numSponsored(account)), counts.sponsored.of(id)],
    ["selling", selling, counts.promised.of(`${id} native selling`)],
    ["buying", buying, counts.promised.of(`${id} native buying`)]
  ]
  const errors = facts
    .filter(([, said, is]) => said !== is)
    .map(([what, said, is]) => `${id} ${what} ${said}, not ${is}`)
  return availableBalance(account, settings.baseReserveStroops) < 0n
    ? [...errors, `${id} is below its reserve`]
    : errors
}

const lineErrors = (line: TrustLineEntry, counts: Counts): Array<string> => {
  const { selling, buying } = trustLiabilities(line)
  const id = accountStrKey(line.accountId)
  if (line.balance < selling || line.balance < 0n || line.balance + buying > line.limit) return [`${id} overran a line`]
  if (line.asset.type === 3) return []
  const name = `${id} ${sep11(line.asset)}`
  const facts: ReadonlyArray<readonly [string, bigint, bigint]> = [
    ["selling", selling, counts.promised.of(`${name} selling`)],
    ["buying", buying, counts.promised.of(`${name} buying`)],
    ["uses by pools", BigInt(poolUses(line)), counts.uses.of(name)]
  ]
  return facts.filter(([, said, is]) => said !== is).map(([what, said, is]) => `${name} ${what} ${said}, not ${is}`)
}

/** The violated invariants; empty when all hold. */
export const errorsOf = (store: Store, settings: NetworkSettings): ReadonlyArray<string> => {
  const entries = [...store.entries()]
  const counts = count(entries)
  return entries.flatMap(({ data }) => {
    if (data.type === 0) return accountErrors(data.account, counts, settings)
    if (data.type === 1) return lineErrors(data.trustLine, counts)
    if (data.type !== 5) return []
    const id = hex(data.liquidityPool.liquidityPoolId)
    const { totalPoolShares, poolSharesTrustLineCount, reserveA, reserveB } = data.liquidityPool.body.constantProduct
    const errors = []
    if (totalPoolShares !== counts.shares.of(id)) errors.push(`pool ${id} has other shares`)
    if (poolSharesTrustLineCount !== counts.shareLines.of(id)) errors.push(`pool ${id} counts other lines`)
    if ((totalPoolShares === 0n) !== (reserveA === 0n) || (totalPoolShares === 0n) !== (reserveB === 0n))
      errors.push(`pool ${id} has reserves without shares, or shares of nothing`)
    return errors
  })
}

const keyOf = (holder: string, asset: string): string => `${holder} ${asset}`

/** Every balance of every holder, by address and asset; issuers hold none of their assets. */
export const balancesOf = (store: Store): Sums => {
  const sums = new Sums()
  const add = (holder: string, asset: Asset, amount: bigint): void => sums.add(keyOf(holder, sep11(asset)), amount)
  for (const { data } of store.entries()) {
    if (data.type === 0) add(accountStrKey(data.account.accountId), { type: 0 }, data.account.balance)
    else if (data.type === 1 && data.trustLine.asset.type !== 3)
      add(accountStrKey(data.trustLine.accountId), data.trustLine.asset, data.trustLine.balance)
    else if (data.type === 4) {
      const { balanceId, asset, amount } = data.claimableBalance
      add(StrKey.encodeClaimableBalance(Buffer.concat([Buffer.from([0]), balanceId.v0])), asset, amount)
    } else if (data.type === 5) {
      const pool = StrKey.encodeLiquidityPool(Buffer.from(data.liquidityPool.liquidityPoolId))
      const { params, reserveA, reserveB } = data.liquidityPool.body.constantProduct
      add(pool, params.assetA, reserveA)
      add(pool, params.assetB, reserveB)
    }
  }
  return sums
}

/** Applies a transaction's events to `balances`, its fee included. */
export const follow = (balances: Sums, meta: xdr.TransactionMeta): void => {
  const { operations, events: ofTransaction } = meta.value as any
  const reported = [...ofTransaction.map(({ event }: any) => event), ...operations.flatMap(({ events }: any) => events)]
  for (const { body } of reported) {
    const [name, ...topics] = body.v0.topics.map(scValToNative) as [string, ...Array<string>]
    const data = scValToNative(body.v0.data)
    if (name === "set_authorized") continue
    const amount: bigint = typeof data === "object" ? data.amount : data
    const move = (holder: string, asset: string, by: bigint): void => {
      if (!asset.endsWith(`:${holder}`)) balances.add(keyOf(holder, asset), by)
    }
    if (name === "fee") move(topics[0]!, "native", -amount)
    else if (name === "mint") move(topics[0]!, topics[1]!, amount)
    else if (name === "burn" || name === "clawback") move(topics[0]!, topics[1]!, -amount)
    else {
      move(topics[0]!, topics[2]!, -amount)
      move(topics[1]!, topics[2]!, amount)
    }
  }
}
