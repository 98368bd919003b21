// Who waits when declarations take long to read: a few of each payer, and never a payment.
import { expect, it } from "@effect/vitest"
import { Clock, Effect, Layer, Option } from "effect"
import type { PaymentObservation } from "../../../kernel/payment/Extension.ts"
import { type CatalogValues, Config } from "../../../plugins/catalog/Config.ts"
import { Judge } from "../../../plugins/catalog/Judge.ts"
import { Observer } from "../../../plugins/catalog/Observer.ts"
import { Hints } from "../../../plugins/catalog/ownership/Hints.ts"
import { Recipients } from "../../../plugins/catalog/ownership/Recipients.ts"
import { Changes } from "../../../plugins/catalog/store/Changes.ts"
import { Listings } from "../../../plugins/catalog/store/Listings.ts"
import { Sightings } from "../../../plugins/catalog/store/Sightings.ts"
import * as NodeCrypto from "../../../runtime/platform/nodeCrypto.ts"
import { queryDeclaration } from "./support.ts"

const config = {
  requireValidSchema: true,
  metadataBytesMax: 131_072,
  schemaBytesMax: 65_536,
  exampleBytesMax: 16_384,
  requireHttpsOrigins: true,
  allowLocalOrigins: false
} as CatalogValues

const observationOf = (payer: string, at: number, looked: () => void): PaymentObservation => {
  const terms = {
    scheme: "exact",
    network: "ledger:testnet",
    asset: "C",
    amount: Option.some(1n),
    amountText: "1",
    payTo: "GOWNER",
    maxTimeoutSeconds: 60,
    extra: {}
  }
  const url = `https://shop.example.com/${payer}/${at}`
  const payment = {
    principal: { owner: "anonymous", source: "test", keyed: false },
    dialect: "ledger",
    requirements: terms,
    accepted: terms,
    // Takes long to look through.
    resource: {
      get url() {
        looked()
        return url
      }
    },
    resourceUrl: Option.some(url),
    extensions: new Map([["catalog", { sentKey: "catalog", value: queryDeclaration() }]])
  }
  return {
    payment: payment as unknown as PaymentObservation["payment"],
    stage: "verified",
    payer,
    transaction: Option.none()
  }
}

/** Nothing gets as far as being recorded but the first. */
const parts = Observer.layer.pipe(
  Layer.provide(Judge.layer),
  Layer.provide([
    Layer.succeed(Config, config),
    Layer.mock(Listings)({
      record: () => Effect.succeed({ decision: "listed", resourceId: 1n, versionHash: "h" })
    }),
    Layer.succeed(Sightings, {
      touch: () => Effect.void,
      observe: () => Effect.void,
      flush: Effect.void
    }),
    Changes.layer,
    Hints.layer,
    Layer.succeed(Recipients, {
      gradeOf: () => Effect.succeed("claimed" as const),
      bind: () => Effect.succeed(true)
    }),
    NodeCrypto.layer
  ])
)

it.effect(
  "a payer whose declarations take long has eight that wait, and the next is told so at " +
    "once; others have their own [S256][S260]",
  () =>
    Effect.gen(function* () {
      const real = yield* Clock.Clock
      // Reading takes six seconds of this clock, and who has to pause never ends.
      let now = 0
      const looked = () => void (now += 2_000)
      const clock: Clock.Clock = {
        ...real,
        currentTimeMillisUnsafe: () => now,
        currentTimeMillis: Effect.sync(() => now),
        sleep: () => Effect.never
      }
      const extension = yield* Observer
      yield* Effect.gen(function* () {
        expect(yield* extension.observe(observationOf("GFLOOD", 0, looked))).toEqual({ status: "success" })
        const outcomes: Array<unknown> = []
        for (let at = 1; at <= 12; at++) {
          const waiting = yield* Effect.forkChild(extension.observe(observationOf("GFLOOD", at, looked)), {
            startImmediately: true
          })
          const exit = waiting.pollUnsafe()
          outcomes.push(exit === undefined ? "waits" : exit._tag === "Success" ? exit.value.rejectedReason : "died")
        }
        expect(outcomes).toEqual([
          ...Array.from({ length: 8 }, () => "waits"),
          ...Array.from({ length: 4 }, () => "catalog_unavailable")
        ])
        const other = yield* Effect.forkChild(extension.observe(observationOf("GOTHER", 1, looked)), {
          startImmediately: true
        })
        expect(other.pollUnsafe()).toBeUndefined()
      }).pipe(Effect.provideService(Clock.Clock, clock))
    }).pipe(Effect.provide(parts))
)
