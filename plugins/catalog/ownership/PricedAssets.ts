// The assets of this ledger that represent a currency, by the settings: they convert a manifest's or a query's "0.05
// USD" to atomic units.
import { Context, Effect, Layer } from "effect"
import { Network } from "../../../kernel/config/Network.ts"
import type { PricedAsset } from "../pricing.ts"

export class PricedAssets extends Context.Service<PricedAssets, { readonly assets: ReadonlyArray<PricedAsset> }>()(
  "tollkeeper/catalog/PricedAssets"
) {
  static readonly layer = Layer.effect(
    PricedAssets,
    Effect.map(Network, ({ assets, id }) =>
      PricedAssets.of({
        assets: [...assets.values()].map(({ contract, decimals, symbol }) => ({
          network: id,
          contract,
          decimals,
          symbol
        }))
      })
    )
  )
}
