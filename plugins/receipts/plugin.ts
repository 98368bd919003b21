// Receipts: the facilitator signs one in the answer to each settled payment, and keeps an append-only log of every
// outcome. Receipts decide nothing about a payment: each is made from the recorded outcome within the bounds of the
// kernel's hook, and the log follows the journal of facts. Without a host and a secret nothing is signed.
import { Clock, Effect, Layer, Option } from "effect"
import { accountsContract } from "../../kernel/accounts/AccountSessions.ts"
import { supervisorContract } from "../../kernel/actor/Supervisor.ts"
import { settingsContract } from "../../kernel/config/Settings.ts"
import { databaseContract } from "../../kernel/database/Database.ts"
import {
  configContract,
  httpContract,
  networkContract,
  paymentContract,
  settlementContract
} from "../../kernel/drivers.ts"
import { factsContract } from "../../kernel/facts/Facts.ts"
import { Health, healthContract, type HealthReport } from "../../kernel/health/Health.ts"
import { Extensions } from "../../kernel/payment/Extension.ts"
import { signerContract } from "../../kernel/signer/Signer.ts"
import { define } from "../../kernel/plugin/Plugin.ts"
import type { SettlementRecord } from "../../kernel/settlement/store/Settlements.ts"
import { Config, declared } from "./Config.ts"
import { attestationKey, receiptKey } from "./contract.ts"
import { ReceiptKeys } from "./keys/ReceiptKeys.ts"
import { secretVariable } from "./keys/readSecrets.ts"
import { Anchors } from "./log/Anchors.ts"
import { Checkpoints } from "./log/Checkpoints.ts"
import { Epochs } from "./log/Epochs.ts"
import { sequenceOutcomes } from "./log/sequenceOutcomes.ts"
import { Tree } from "./log/Tree.ts"
import { addLogRoutes } from "./LogRoutes.ts"
import { addDidRoute, addReceiptRoutes } from "./ReceiptRoutes.ts"
import { attestationExtension, receiptExtension, Receipts } from "./Receipts.ts"

/** An answer omits the receipt if the remote signer is late; the log gets it anyway. */
const answerOf =
  ({ answer }: Receipts["Service"]) =>
  (record: SettlementRecord) =>
    answer(record).pipe(
      Effect.catchTag("KeyUnavailable", () => Effect.succeedNone),
      Effect.orDie
    )

/** Puts receipts into the answers of settled payments. If one fails, the kernel's hook omits it. */
const addToAnswers = Effect.gen(function* () {
  const extensions = yield* Extensions
  const answer = answerOf(yield* Receipts)
  const { isAttested } = yield* Config
  yield* extensions.onSettledAnswer({
    key: receiptKey,
    add: ({ record }) => Effect.map(answer(record), Option.map(receiptExtension))
  })
  if (!isAttested) return
  yield* extensions.onSettledAnswer({
    key: attestationKey,
    add: ({ record }) => Effect.map(answer(record), Option.flatMap(attestationExtension))
  })
})

const started = Layer.effectDiscard(
  Effect.gen(function* () {
    const { inForce, isEnabled } = yield* ReceiptKeys
    const { host } = yield* Config
    const health = yield* Health
    const { fork } = yield* Checkpoints
    const detail = host === undefined ? "receipts.host is not set" : `${secretVariable} is not set`
    const report = Effect.map(Clock.currentTimeMillis, (now): HealthReport => {
      if (!isEnabled) return { state: "disabled", detail }
      const shown = fork()
      if (shown !== null)
        return { state: "degraded", detail: `${shown}; the log is a fork and nothing of it is signed` }
      const [absent] = (["receipt", "log"] as const).filter((use) => inForce(use, now)?.sign === undefined)
      return absent === undefined
        ? { state: "ready" }
        : { state: "degraded", detail: `this replica does not hold ${inForce(absent, now)?.kid}, the key in force` }
    })
    yield* health.register("receipts", report)
    if (!isEnabled) return
    yield* sequenceOutcomes
    yield* addToAnswers
    yield* addLogRoutes
    yield* addReceiptRoutes
    yield* addDidRoute
  })
)

export const plugin = define({
  id: "receipts",
  summary: "Signed receipts of settled payments, and an append-only log of every outcome.",
  boot: "optional",
  needs: [
    settingsContract,
    supervisorContract,
    healthContract,
    configContract,
    networkContract,
    httpContract,
    databaseContract,
    factsContract,
    accountsContract,
    signerContract,
    settlementContract,
    paymentContract
  ],
  migrations: "folder",
  settings: declared,
  layer: started.pipe(
    Layer.provide(Anchors.layer),
    Layer.provide(Layer.mergeAll(Checkpoints.layer, Receipts.layer)),
    Layer.provide(ReceiptKeys.layer),
    Layer.provide(Epochs.layer),
    Layer.provide(Tree.layer),
    Layer.provide(Config.layer)
  )
})
