// Formatted prices. Uses the asset's own units if the facilitator has the asset configured. Pure.
import { count, decimal, short } from "./format.ts"
import type { About, PaymentOption } from "./reports.ts"

export type AssetShown = Pick<About["assets"][number], "asset" | "decimals" | "symbol">

/** An amount in atomic units, formatted. */
const figureOf = (amount: string, asset: string, assets: ReadonlyArray<AssetShown>): string => {
  const known = assets.find((one) => one.asset === asset)
  return known === undefined
    ? `${count(amount)} units of ${short(asset)}`
    : `${decimal(amount, known.decimals)} ${known.symbol}`
}

export const priceOf = (
  { amount, asset, scheme }: Pick<PaymentOption, "amount" | "asset" | "scheme">,
  assets: ReadonlyArray<AssetShown>
): string => {
  const figure = figureOf(amount, asset, assets)
  return scheme === "upto" ? `up to ${figure}` : figure
}
