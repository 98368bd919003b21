// GET /dashboard/v1/about: identity and accepted payments of this facilitator, for the public page. It contains only
// settings that are public on purpose, and no address, balance or caller.
import { Effect } from "effect"
import { Network } from "../../kernel/config/Network.ts"
import { WireVocabulary } from "../../kernel/config/WireVocabulary.ts"
import { encodeNetwork } from "../../kernel/Dialect.ts"
import { json } from "../../kernel/http/httpMiddleware.ts"
import { Keys } from "../../kernel/http/Keys.ts"
import { interfaceVersion } from "../../kernel/http/OpenApi.ts"
import { addRoutes, route } from "../../kernel/http/Route.ts"
import { Schemes } from "../../kernel/payment/Scheme.ts"
import { PluginStates } from "../../kernel/plugin/PluginStates.ts"
import type { About } from "./AboutWire.ts"
import * as routes from "./description.ts"

/** Explorers of the public networks. The embedded ledger does not have one. */
export const explorers = {
  "ledger:testnet": "https://stellar.expert/explorer/testnet",
  "ledger:pubnet": "https://stellar.expert/explorer/public"
} as const

export const addAboutRoute = Effect.gen(function* () {
  const network = yield* Network
  const { dialects } = yield* WireVocabulary
  const keys = yield* Keys
  const schemes = yield* Schemes
  const plugins = yield* PluginStates
  const isEmbedded = () => plugins.all().some(({ id }) => id === "ledger-local")
  const about = (): typeof About.Type => ({
    version: interfaceVersion,
    network: encodeNetwork(network.id, dialects[0]),
    networks: dialects.map((dialect) => encodeNetwork(network.id, dialect)),
    schemes: schemes.all().map(({ scheme }) => scheme),
    assets: [...network.assets.values()].map(({ contract, decimals, paymentMax, symbol }) => ({
      asset: contract,
      symbol,
      decimals,
      max_payment: paymentMax.toString()
    })),
    keys_required: keys.keyed(),
    local_ledger: plugins.all().some(({ id, state }) => id === "ledger-local" && state === "running"),
    explorer: isEmbedded() ? null : explorers[network.id],
    plugins: plugins.all().map(({ id }) => id)
  })
  const answer = Effect.sync(() => json(about()))
  yield* addRoutes(routes.group, [route(routes.about, answer)])
})
