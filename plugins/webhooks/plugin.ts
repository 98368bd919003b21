// Signed messages to sellers about their settlements, with a cursor over the journal of facts: a pending payment is
// reported until its end, even if the receiver was down, and after a restart. It is not on the path of any payment.
// Without a receiver in the settings it does nothing; an invalid one stops the startup.
import { Effect, Layer } from "effect"
import { accountsContract } from "../../kernel/accounts/AccountSessions.ts"
import { KeyRevisions } from "../../kernel/accounts/KeyRevisions.ts"
import { settingsContract } from "../../kernel/config/Settings.ts"
import { databaseContract } from "../../kernel/database/Database.ts"
import { reconciler } from "../../kernel/actor/Actor.ts"
import { configContract, httpContract, paymentContract, settlementContract } from "../../kernel/drivers.ts"
import { factsContract } from "../../kernel/facts/Facts.ts"
import { ledgerContract } from "../../kernel/ledger/LedgerClock.ts"
import { Health, healthContract } from "../../kernel/health/Health.ts"
import { define } from "../../kernel/plugin/Plugin.ts"
import { supervisorContract } from "../../kernel/actor/Supervisor.ts"
import { enable, replay, receiverStatuses } from "./administration.ts"
import { Config, declared } from "./Config.ts"
import { Deliveries } from "./Deliveries.ts"
import { addDeliveryRoutes } from "./DeliveryRoutes.ts"
import { queueEvents } from "./queueEvents.ts"
import { Sender } from "./Sender.ts"
import { SigningSecrets } from "./SigningSecrets.ts"

export { SigningSecrets }

const started = Layer.effectDiscard(
  Effect.gen(function* () {
    const config = yield* Config
    const deliveries = yield* Deliveries
    const sender = yield* Sender
    const health = yield* Health
    yield* (yield* KeyRevisions).register({ name: "webhooks", ...(yield* SigningSecrets) })
    yield* queueEvents
    yield* addDeliveryRoutes
    yield* reconciler({
      id: "webhooks-forget",
      every: "1 hour",
      turn: Effect.asVoid(deliveries.forget(config.keepMillis, config.giveUpAfterMillis))
    })
    let disabled: ReadonlyArray<string> = []
    if (config.receivers.length > 0)
      yield* reconciler({
        id: "webhooks-disabled",
        every: "5 seconds",
        turn: Effect.map(deliveries.disabled, (found) => void (disabled = found))
      })
    yield* health.register(
      "webhooks",
      Effect.sync(() => {
        if (config.receivers.length === 0) return { state: "disabled" as const }
        const failing = sender.failing().filter((name) => !disabled.includes(name))
        const problems = [
          { what: "disabled by their 410", names: disabled },
          { what: "not reached, being retried", names: failing }
        ].filter(({ names }) => names.length > 0)
        if (problems.length === 0) return { state: "ready" as const }
        const listed = (ofNames: (names: ReadonlyArray<string>) => string) =>
          problems.map(({ names, what }) => `${what}: ${ofNames(names)}`).join("; ")
        return {
          state: "degraded" as const,
          detail: listed((names) => `${names.length} ${names.length === 1 ? "receiver" : "receivers"}`),
          operatorDetail: listed((names) => names.join(", "))
        }
      })
    )
  })
)

export const plugin = define({
  id: "webhooks",
  summary: "Webhooks: signed messages to sellers about their settlements.",
  boot: "required",
  needs: [
    settingsContract,
    supervisorContract,
    healthContract,
    configContract,
    accountsContract,
    httpContract,
    databaseContract,
    factsContract,
    ledgerContract,
    settlementContract,
    paymentContract
  ],
  migrations: "folder",
  settings: declared,
  layer: started.pipe(
    Layer.provide(Sender.layer),
    Layer.provideMerge(SigningSecrets.layer),
    Layer.provide(Layer.merge(Config.layer, Deliveries.layer))
  )
})

/** Command-line access in addition to a facilitator; it only needs the database. */
export const administration = {
  enable,
  replay,
  receiverStatuses,
  layer: Layer.merge(Config.layer, Deliveries.layer)
}

export { metrics } from "./metrics.ts"
