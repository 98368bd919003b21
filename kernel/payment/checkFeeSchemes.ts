// Fee ceilings in the settings name their scheme. A misspelled name would apply to no payment, and the scheme's own
// ceilings, which may be higher, would apply instead. So a name that no enabled plugin offers is refused, once all
// plugins have started and before a port opens.
import { Effect } from "effect"
import { suggestionSuffix } from "../config/didYouMean.ts"
import { Network } from "../config/Network.ts"
import { SettingsRefused } from "../config/Settings.ts"
import { Schemes } from "./Scheme.ts"

export const checkFeeSchemes = Effect.gen(function* () {
  const { feeSchemes = [], id } = yield* Network
  const offered = (yield* Schemes).all().map(({ scheme }) => scheme)
  const unknown = feeSchemes.find((name) => !offered.includes(name))
  if (unknown === undefined) return
  return yield* new SettingsRefused({
    path: `networks.${id}.fees.${unknown}`,
    message: `no enabled plugin offers this scheme (${offered.join(", ")})${suggestionSuffix(unknown, offered)}`
  })
})
