// A channel store for sellers of `batch-settlement` that keep no state, and a claimer that claims and settles for them.
// The store is optional: a seller may use its own store instead, and the scheme does not depend on this plugin.
import { Effect, Layer } from "effect"
import { reconciler } from "../../kernel/actor/Actor.ts"
import { supervisorContract } from "../../kernel/actor/Supervisor.ts"
import { settingsContract } from "../../kernel/config/Settings.ts"
import { databaseContract } from "../../kernel/database/Database.ts"
import { httpContract, networkContract, paymentContract, settlementContract } from "../../kernel/drivers.ts"
import { factsContract } from "../../kernel/facts/Facts.ts"
import { healthContract } from "../../kernel/health/Health.ts"
import { Network } from "../../kernel/config/Network.ts"
import { LedgerUnavailable } from "../../kernel/ledger/LedgerRpc.ts"
import { ledgerContract } from "../../kernel/ledger/LedgerClock.ts"
import { define } from "../../kernel/plugin/Plugin.ts"
import { batchChannelsContract, Delegates } from "../x402-batch/contract.ts"
import { Authorizer } from "./Authorizer.ts"
import { addChannelRoutes } from "./channelRoutes.ts"
import { startClaimer } from "./claimer.ts"
import { Claims } from "./Claims.ts"
import { Config, declared } from "./Config.ts"
import { addOperatorRoutes } from "./operatorRoutes.ts"
import { StoredChannels } from "./StoredChannels.ts"
import { type ReportedChannel, reportChannels } from "./channelReport.ts"

const started = Layer.effectDiscard(
  Effect.gen(function* () {
    const { chargesMax, keepMillis } = yield* Config
    const channels = yield* StoredChannels
    const network = yield* Network
    const delegates = yield* Delegates
    const { asDelegate, delegateOf } = yield* Authorizer
    delegates.signBy(delegateOf, asDelegate)
    delegates.keepBy((principal, { channelId, signature }) =>
      Effect.mapError(
        channels.hasCharged({ principal, network: network.id }, channelId, signature),
        () => new LedgerUnavailable({ operation: "channel store", message: "the channel's record cannot be read" })
      )
    )
    yield* addChannelRoutes
    yield* addOperatorRoutes
    yield* startClaimer
    yield* reconciler({
      id: "batch-store-forget-charges",
      every: "1 hour",
      turn: Effect.asVoid(channels.forget(keepMillis, chargesMax))
    })
  })
)

export const plugin = define({
  id: "batch-store",
  summary: "Payment channels for sellers of batch-settlement without a store, claimed by their policy.",
  boot: "required",
  needs: [
    settingsContract,
    supervisorContract,
    healthContract,
    networkContract,
    httpContract,
    ledgerContract,
    databaseContract,
    factsContract,
    settlementContract,
    paymentContract,
    batchChannelsContract
  ],
  migrations: "folder",
  settings: declared,
  layer: started.pipe(
    Layer.provide(
      Layer.mergeAll(Authorizer.layer, StoredChannels.layer, Claims.layer).pipe(Layer.provideMerge(Config.layer))
    )
  )
})

export { metrics } from "./metrics.ts"

/** Read by the command line, next to a running facilitator. */
export const administration = { reportChannels }
export type { ReportedChannel }
