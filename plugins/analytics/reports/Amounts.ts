// Amounts are reported by asset and never added over assets. An answer with a single amount uses the requested asset,
// otherwise the asset with the most settlements, and names that asset (S141, S146).
import { Context, Effect, Layer } from "effect"
import { type Asset, Network } from "../../../kernel/config/Network.ts"

export interface AssetSum {
  readonly asset: string
  readonly transactions: bigint
  /** Atomic units that moved. */
  readonly amount: bigint
}

/** Adds up sums of the same asset; ordered by settlements, then by name. */
export const byAsset = (sums: ReadonlyArray<AssetSum>): ReadonlyArray<AssetSum> => {
  const merged = new Map<string, AssetSum>()
  for (const sum of sums) {
    const total = merged.get(sum.asset)
    merged.set(
      sum.asset,
      total === undefined
        ? sum
        : { asset: sum.asset, transactions: total.transactions + sum.transactions, amount: total.amount + sum.amount }
    )
  }
  return [...merged.values()]
    .filter(({ transactions }) => transactions > 0n)
    .sort((a, b) =>
      a.transactions === b.transactions ? (a.asset < b.asset ? -1 : 1) : a.transactions > b.transactions ? -1 : 1
    )
}

export const mainAsset = (sums: ReadonlyArray<AssetSum>, chosen: string | undefined): string | undefined =>
  chosen ?? byAsset(sums)[0]?.asset

interface AssetNames {
  readonly asset: string | null
  readonly asset_symbol: string | null
  readonly asset_decimals: number | null
}

interface AmountsReport extends AssetNames {
  readonly total_amount: string
  readonly amounts: ReadonlyArray<AssetNames & { readonly amount: string; readonly transactions: string }>
}

interface AmountsValues {
  readonly name: (asset: string | undefined) => AssetNames
  /** Configured assets with this symbol, in any case. */
  readonly all: () => ReadonlyArray<string>
  readonly called: (symbol: string) => ReadonlyArray<string>
  /** `total_amount` is the amount in the asset `main`; `amounts` has all of them. */
  readonly report: (sums: ReadonlyArray<AssetSum>, main: string | undefined) => AmountsReport
}

export const amountsOf = (assets: ReadonlyMap<string, Asset>): AmountsValues => {
  const name = (asset: string | undefined) => ({
    asset: asset ?? null,
    asset_symbol: assets.get(asset ?? "")?.symbol ?? null,
    asset_decimals: assets.get(asset ?? "")?.decimals ?? null
  })
  const notify = (sums: ReadonlyArray<AssetSum>, main: string | undefined) => {
    const all = byAsset(sums)
    return {
      total_amount: (all.find(({ asset }) => asset === main)?.amount ?? 0n).toString(),
      ...name(main),
      amounts: all.map(({ amount, asset, transactions }) => ({
        ...name(asset),
        amount: amount.toString(),
        transactions: transactions.toString()
      }))
    }
  }
  const called = (symbol: string) =>
    [...assets].flatMap(([asset, one]) => (one.symbol.toLowerCase() === symbol.toLowerCase() ? [asset] : []))
  return { name, all: () => [...assets.keys()], called, report: notify }
}

export class Amounts extends Context.Service<Amounts, AmountsValues>()("tollkeeper/analytics/Amounts") {
  static readonly layer = Layer.effect(
    Amounts,
    Effect.map(Network, ({ assets }) => Amounts.of(amountsOf(assets)))
  )
}
