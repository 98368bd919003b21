// Settle's answer after an error and at its deadline: busy, with the cause if nothing can be recorded.
import { expect, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer, Option } from "effect"
import { SqlError } from "effect/sql"
import { TestClock } from "effect/testing"
import { Budget } from "../../../../kernel/budget/Budget.ts"
import { Limits } from "../../../../kernel/config/Limits.ts"
import { Network } from "../../../../kernel/config/Network.ts"
import { Facilitator } from "../../../../kernel/payment/Facilitator.ts"
import { ListenAt } from "../../../../kernel/http/ListenAt.ts"
import { LedgerClock } from "../../../../kernel/ledger/LedgerClock.ts"
import { LedgerRpc } from "../../../../kernel/ledger/LedgerRpc.ts"
import type { Payment } from "../../../../kernel/payment/Payment.ts"
import { type Scheme, Schemes } from "../../../../kernel/payment/Scheme.ts"
import { Adoption } from "../../../../kernel/payment/settle/Adoption.ts"
import { makeJoinFlight } from "../../../../kernel/payment/settle/joinFlight.ts"
import type { SettlementContext } from "../../../../kernel/payment/settle/recordSettlement.ts"
import { SettlementFollower, SettlementWorker } from "../../../../kernel/payment/settle/SettlementWorker.ts"
import { Flight, SingleFlight } from "../../../../kernel/payment/settle/SingleFlight.ts"
import { Crypto } from "../../../../kernel/platform/Crypto.ts"
import { ChannelPool, type QueueTicket } from "../../../../kernel/settlement/channels/ChannelPool.ts"
import { ChannelStore } from "../../../../kernel/settlement/channels/ChannelStore.ts"
import { Deliveries } from "../../../../kernel/settlement/delivery/Deliveries.ts"
import { Outcomes } from "../../../../kernel/settlement/follower/Outcomes.ts"
import { OwnerTags } from "../../../../kernel/settlement/OwnerTags.ts"
import { Sponsor } from "../../../../kernel/settlement/sponsor/Sponsor.ts"
import { Settlements } from "../../../../kernel/settlement/store/Settlements.ts"
import { Signer } from "../../../../kernel/signer/Signer.ts"
import { limitValues } from "../../settlement/store.ts"
import { layerTest } from "../../../support/layerTest.ts"

const payment = {
  principal: { owner: "key:a" },
  fingerprint: "f",
  identifier: Option.none(),
  requirements: { network: "ledger:testnet", payTo: "seller" }
} as unknown as Payment
const scheme = { scheme: "exact", authorization: () => Option.some({ key: "k", payer: "payer" }) } as unknown as Scheme

/** Steps over a database with a failing or hanging read, and a given state of its writes. */
const stepsOver = (find: Settlements["Service"]["find"], unrecordable: Option.Option<string>) =>
  Layer.mergeAll(
    SingleFlight.layer,
    Layer.succeed(Limits, limitValues),
    layerTest(Sponsor, { knownUnrecordable: Effect.succeed(unrecordable) }),
    layerTest(Settlements, { find }),
    layerTest(Deliveries, { asOfNow: (record) => record }),
    layerTest(Outcomes, {}),
    layerTest(Adoption, {}),
    layerTest(Budget, {}),
    layerTest(ChannelPool, {}),
    layerTest(ListenAt, { closing: Effect.never }),
    layerTest(Network, {}),
    layerTest(SettlementWorker, {})
  )

const settleOver = (find: Settlements["Service"]["find"], unrecordable: Option.Option<string>) =>
  Effect.gen(function* () {
    const joinFlight = yield* makeJoinFlight({ scope: yield* Effect.scope })
    const fiber = yield* Effect.forkChild(joinFlight(payment, scheme))
    yield* TestClock.adjust(limitValues.settleTimeout)
    return yield* Fiber.join(fiber)
  }).pipe(Effect.scoped, Effect.provide(stepsOver(find, unrecordable)))

/** The answer to a payment that its scheme's own check settles, when that fails. */
const coverOver = (unrecordable: Option.Option<string>) => {
  const covering = { ...scheme, kind: "channel", cover: () => failure } as unknown as Scheme
  return Effect.flatMap(Facilitator, ({ settle }) => settle(payment)).pipe(
    Effect.provide(
      Facilitator.layerNoDeps.pipe(
        Layer.provide(layerTest(Schemes, { find: () => Option.some(covering) })),
        Layer.provide(stepsOver(hanging, unrecordable))
      )
    )
  )
}

const failure = Effect.fail(
  new SqlError.SqlError({ reason: new SqlError.ConnectionError({ cause: new Error("gone") }) })
)
const failing = () => failure
const hanging = () => Effect.never

/** The worker's report if it gets no channel. */
const reportOver = (lease: QueueTicket["lease"], unrecordable: Option.Option<string>) =>
  Effect.gen(function* () {
    const settling = { scheme, verified: { payer: "payer" }, ticket: { lease } } as unknown as SettlementContext
    const worker = yield* SettlementWorker
    return yield* Deferred.await(yield* worker.start(settling, new Flight(() => {})))
  }).pipe(
    Effect.provide(
      SettlementWorker.layer.pipe(
        Layer.provide(
          Layer.mergeAll(
            Layer.succeed(Limits, limitValues),
            layerTest(Sponsor, { knownUnrecordable: Effect.succeed(unrecordable) }),
            layerTest(Budget, {}),
            layerTest(Settlements, {}),
            layerTest(ChannelPool, {}),
            layerTest(ChannelStore, {}),
            layerTest(LedgerClock, {}),
            layerTest(LedgerRpc, {}),
            layerTest(Network, {}),
            layerTest(Signer, {}),
            layerTest(OwnerTags, {}),
            layerTest(Crypto, {}),
            layerTest(SettlementFollower, {})
          )
        )
      )
    )
  )

const busy = (message: string) => ({
  _tag: "Failed",
  refusal: { reason: "settle_ledger_temporarily_unavailable", message: `${message}; try the same payment again` }
})
const full = "the database's disk is full"

it.effect("names why nothing can be recorded after an error and at its deadline", () =>
  Effect.gen(function* () {
    for (const find of [failing, hanging]) {
      expect(yield* settleOver(find, Option.none())).toMatchObject(busy("no capacity at the moment"))
      expect(yield* settleOver(find, Option.some(full))).toMatchObject(busy(full))
    }
  })
)

it.effect("names why nothing can be recorded where the work has no channel or fails", () =>
  Effect.gen(function* () {
    for (const lease of [Effect.succeedNone, failure]) {
      const general = { answer: busy("no capacity at the moment") }
      expect(yield* reportOver(lease, Option.none())).toMatchObject(general)
      expect(yield* reportOver(lease, Option.some(full))).toMatchObject({ answer: busy(full) })
    }
  })
)

it.effect("names why nothing can be recorded where a scheme's own check fails", () =>
  Effect.gen(function* () {
    expect(yield* coverOver(Option.none())).toMatchObject(busy("no capacity at the moment"))
    expect(yield* coverOver(Option.some(full))).toMatchObject(busy(full))
  })
)
