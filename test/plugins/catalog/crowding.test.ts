// Queueing of slow declarations: one of each payer before a second of any, and never a payment.
import { expect, it } from "@effect/vitest"
import { Clock, Deferred, Effect, Fiber, Layer, Option } from "effect"
import { FairScheduler } from "../../../kernel/effect/FairScheduler.ts"
import type { ExtensionOutcome, PaymentObservation } from "../../../kernel/payment/Extension.ts"
import { type CatalogValues, Config } from "../../../plugins/catalog/Config.ts"
import { DeclarationValidator } from "../../../plugins/catalog/DeclarationValidator.ts"
import { Observer } from "../../../plugins/catalog/Observer.ts"
import { Hints } from "../../../plugins/catalog/ownership/Hints.ts"
import { PricedAssets } from "../../../plugins/catalog/ownership/PricedAssets.ts"
import { Recipients } from "../../../plugins/catalog/ownership/Recipients.ts"
import { Changes } from "../../../plugins/catalog/store/Changes.ts"
import { Listings } from "../../../plugins/catalog/store/Listings.ts"
import type { Recorded } from "../../../plugins/catalog/store/Recorded.ts"
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

const observationOf = (payer: string, at: number, probed: () => void): PaymentObservation => {
  const terms = {
    scheme: "exact",
    network: "ledger:testnet",
    asset: "C",
    amount: Option.some(100n),
    amountText: "100",
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
    // Takes long to validate.
    resource: {
      get url() {
        probed()
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
    transaction: Option.none(),
    authorization: () => Option.none()
  }
}

/** The declarations that were recalled and counted as seen. */
const seen: Array<bigint> = []

/** The observer over a recorder that records every declaration as this; only the first one reaches it. */
const observing = (recorded: Recorded, sightings: Partial<Sightings["Service"]> = {}) =>
  Observer.layer.pipe(
    Layer.provide(DeclarationValidator.layer),
    Layer.provide([
      Layer.succeed(Config, config),
      Layer.mock(Listings)({ record: () => Effect.succeed(recorded) }),
      Layer.mock(Sightings)({
        touch: () => Effect.void,
        seen: (id) => void seen.push(id),
        observe: () => Effect.void,
        onStates: () => Effect.void,
        ...sightings
      }),
      Changes.layer,
      Hints.layer,
      Layer.succeed(Recipients, {
        gradeOf: () => Effect.succeed("claimed" as const),
        knownGradeOf: () => "claimed" as const,
        bind: () => Effect.succeed(true)
      }),
      Layer.succeed(PricedAssets, { assets: [] }),
      NodeCrypto.layer
    ])
  )

const parts = observing({ decision: "listed", resourceId: 1n, versionHash: "h" })

it.effect("slow declarations queue fairly by payer; settled ones displace verified ones [S256][S260]", () =>
  Effect.gen(function* () {
    const real = yield* Clock.Clock
    // Reading takes two seconds of this clock; a paused reader continues on the test's signal.
    let now = 0
    const read = new Set<string>()
    const pauses: Array<Deferred.Deferred<void>> = []
    const clock: Clock.Clock = {
      ...real,
      monotonicTimeNanosUnsafe: () => BigInt(now) * 1_000_000n,
      monotonicTimeNanos: Effect.sync(() => BigInt(now) * 1_000_000n),
      sleep: () => {
        const pause = Deferred.makeUnsafe<void>()
        pauses.push(pause)
        return Deferred.await(pause)
      }
    }
    const extension = yield* Observer
    yield* Effect.gen(function* () {
      const observe = (payer: string, at: number, stage: "verified" | "settled" = "verified") => {
        const probed = () => {
          now += 2_000
          read.add(`${payer} ${at}`)
        }
        const observed = { ...observationOf(payer, at, probed), stage }
        return Effect.forkChild(extension.observe(observed), { startImmediately: true })
      }
      const wordOf = (fiber: Fiber.Fiber<ExtensionOutcome>) => {
        const exit = fiber.pollUnsafe()
        return exit === undefined ? "waits" : exit._tag === "Success" ? exit.value.rejectedReason : "died"
      }
      yield* Effect.flatMap(observe("GFLOOD", 0), Fiber.join)
      // The first waits for CPU time, and sixty-four for their turn; a single payer may hold all of them.
      const flood = yield* Effect.forEach(
        Array.from({ length: 70 }, (_, at) => at + 1),
        (at) => observe("GFLOOD", at)
      )
      expect(flood.filter((fiber) => wordOf(fiber) === "waits")).toHaveLength(65)
      const other = yield* observe("GOTHER", 1)
      const another = yield* observe("GOTHER", 2)
      expect([other, another].map(wordOf)).toEqual(["waits", "waits"])
      expect(flood.filter((fiber) => wordOf(fiber) === "waits")).toHaveLength(63)
      // Each of many payers has one place: one more free declaration finds none, and a settled one does.
      const many = yield* Effect.forEach(
        Array.from({ length: 62 }, (_, at) => at),
        (at) => observe(`GFREE${at}`, 1)
      )
      expect(many.every((fiber) => wordOf(fiber) === "waits")).toBe(true)
      expect(wordOf(yield* observe("GLATE", 1))).toBe("catalog_unavailable")
      const paid = yield* observe("GBUYER", 1, "settled")
      expect(wordOf(paid)).toBe("waits")
      expect([flood, [other, another], many].map((all) => all.filter((one) => wordOf(one) === "waits").length)).toEqual(
        [2, 1, 61]
      )
      read.clear()
      for (let turn = 0; turn < 66; turn++) {
        for (let tries = 0; pauses.length === 0 && tries < 100; tries++) yield* Effect.yieldNow
        const pause = pauses.shift()
        if (pause !== undefined) yield* Deferred.succeed(pause, undefined)
      }
      yield* Fiber.join(paid)
      const firsts = [...read].filter((one) => one.endsWith(" 1")).map((one) => one.split(" ")[0])
      expect(firsts).toEqual(["GFLOOD", "GOTHER", ...many.slice(1).map((_, at) => `GFREE${at}`), "GBUYER"])
    }).pipe(Effect.provideService(Clock.Clock, clock))
  }).pipe(Effect.provide(parts))
)

it.effect("the fair scheduler alternates owners, and a departing waiter delays no other", () =>
  Effect.gen(function* () {
    const turns = new FairScheduler({ concurrentMax: 1, waitingMax: 8 })
    const order: Array<string> = []
    const end = yield* Deferred.make<void>()
    const run = (name: string, work: Effect.Effect<void> = Effect.void) =>
      Effect.forkChild(
        turns.run(
          { name, isFree: true },
          Effect.andThen(
            Effect.sync(() => order.push(name)),
            work
          )
        ),
        { startImmediately: true }
      )
    const first = yield* run("a", Deferred.await(end))
    const waiting = yield* Effect.forEach(["a", "a", "a", "b", "b", "c"], (name) => run(name))
    yield* Fiber.interrupt(waiting[4]!)
    yield* Deferred.succeed(end, undefined)
    for (const one of [first, ...waiting.filter((_, at) => at !== 4)])
      expect(Option.isSome(yield* Fiber.join(one))).toBe(true)
    expect(order).toEqual(["a", "a", "b", "c", "a", "a"])
    // All turns were released.
    expect(Option.isSome(yield* turns.run({ name: "d", isFree: true }, Effect.void))).toBe(true)
  })
)

it.effect("a declaration verified before counts as seen unless changed or settled [S256]", () =>
  Effect.gen(function* () {
    const { observe, recall } = yield* Observer
    const now = yield* Clock.currentTimeMillis
    const one = observationOf("GONE", 1, () => {})
    expect(recall(one, now)).toBeUndefined()
    expect(yield* observe(one)).toEqual({ status: "success" })
    seen.length = 0
    // The same declaration by another payer.
    expect(recall({ ...one, payer: "GOTHER" }, now)).toEqual({ status: "success" })
    expect(seen).toEqual([1n])
    expect(recall({ ...one, stage: "settled", transaction: Option.some("t") }, now)).toBeUndefined()
    const saying = (changed: Readonly<Record<string, unknown>>): PaymentObservation => ({
      ...one,
      payment: { ...one.payment, ...changed }
    })
    const terms = one.payment.requirements
    const differing: ReadonlyArray<Readonly<Record<string, unknown>>> = [
      { requirements: { ...terms, payTo: "GELSE" }, accepted: { ...terms, payTo: "GELSE" } },
      { accepted: { ...terms, amountText: "2" } },
      { requirements: { ...terms, extra: { more: true } } },
      { resource: { url: "https://shop.example.com/else" } },
      { dialect: "stellar" },
      { extensions: new Map([["catalog", { sentKey: "bazaar", value: queryDeclaration() }]]) },
      { extensions: new Map([["catalog", { sentKey: "catalog", value: queryDeclaration({ method: "HEAD" }) }]]) },
      { extensions: new Map() }
    ]
    for (const changed of differing) expect(recall(saying(changed), now), Object.keys(changed).join()).toBeUndefined()
    expect(recall(saying({}), now + 31_000)).toBeUndefined()
    expect(seen).toEqual([1n])
  }).pipe(Effect.provide(parts))
)

it.effect.each([
  ["touches a listing", { decision: "listed", resourceId: 1n }, ["touch 1", "touch 1 sale"]],
  [
    "counts a payment of a hidden claim as evidence",
    { decision: "rejected", resourceId: 1n, isContender: true },
    ["contend 1 sale"]
  ],
  ["counts nothing of a rejected declaration", { decision: "rejected", resourceId: 1n }, []],
  ["counts nothing without a listing", { decision: "rejected", resourceId: undefined, isContender: true }, []]
] as const)("an observed declaration %s", ([, recorded, expected]) => {
  const counted: Array<string> = []
  const note = (what: string) => (id: bigint, _: Date, sale: unknown) =>
    Effect.sync(() => void counted.push(`${what} ${id}${sale === undefined ? "" : " sale"}`))
  return Effect.gen(function* () {
    const { observe } = yield* Observer
    const verified = observationOf("GONE", 1, () => {})
    yield* observe(verified)
    yield* observe({ ...verified, stage: "settled", transaction: Option.some("t") })
    expect(counted).toEqual(expected)
  }).pipe(Effect.provide(observing(recorded, { touch: note("touch"), contend: note("contend") })))
})

const rotating = Observer.layer.pipe(
  Layer.provide(DeclarationValidator.layer),
  Layer.provide([
    Layer.succeed(Config, config),
    // The listed recipient GLISTED names its successor, if the payment's key is its own.
    Layer.mock(Listings)({
      record: (_, { authorizedBy }) =>
        Effect.map(authorizedBy!("GLISTED"), (found): Recorded =>
          Option.isSome(found)
            ? { decision: "updated", resourceId: 1n, versionHash: "h" }
            : { decision: "rejected", reason: "payto_conflict", resourceId: 1n }
        )
    }),
    Layer.mock(Sightings)({
      touch: () => Effect.void,
      seen: () => {},
      observe: () => Effect.void,
      onStates: () => Effect.void
    }),
    Changes.layer,
    Hints.layer,
    Layer.succeed(Recipients, {
      gradeOf: ({ owner }, payTo) =>
        Effect.succeed(owner === "key:seller" && payTo === "GLISTED" ? "declared" : "claimed"),
      knownGradeOf: () => "claimed" as const,
      bind: () => Effect.succeed(true)
    }),
    Layer.succeed(PricedAssets, { assets: [] }),
    NodeCrypto.layer
  ])
)

it.effect("a stranger's equal declaration does not answer for the seller's key", () =>
  Effect.gen(function* () {
    const { observe, recall } = yield* Observer
    const one = observationOf("GONE", 1, () => {})
    const by = (owner: string, keyed = true): PaymentObservation => ({
      ...one,
      payment: { ...one.payment, principal: { owner, source: owner, keyed } } as PaymentObservation["payment"]
    })
    const refused = { status: "rejected", rejectedReason: "payto_conflict" }
    expect(yield* observe(by("anonymous", false))).toEqual(refused)
    expect(yield* observe(by("key:stranger"))).toEqual(refused)
    const now = yield* Clock.currentTimeMillis
    expect(recall(by("key:stranger"), now)).toEqual(refused)
    expect(recall(by("key:seller"), now)).toBeUndefined()
    expect(yield* observe(by("key:seller"))).toEqual({ status: "success" })
    // Callers without a key are one principal.
    expect(recall({ ...by("anonymous", false), payer: "GOTHER" }, now)).toEqual(refused)
  }).pipe(Effect.provide(rotating))
)
