// The catalog's observer of payments. A declaration seen a moment ago is found in the outcome cache and answered
// without a database statement; a new one is read, validated and recorded once, however many payments carry it
// concurrently. It never fails: an error is `catalog_unavailable` to the seller, a line in the log and an observation
// for the operator (S17–S23, S78, S260).
import { Clock, Context, Deferred, Effect, Layer, Option } from "effect"
import { Hex } from "effect/encoding"
import type { Extension, PaymentObservation } from "../../kernel/payment/Extension.ts"
import { Crypto } from "../../kernel/platform/Crypto.ts"
import { measure } from "../../kernel/telemetry/Measure.ts"
import { trustedClock } from "../../kernel/time/trustedTime.ts"
import { declaredUrl, offered } from "./declaration/DeclarationWire.ts"
import { cleanString } from "./declaration/cleanText.ts"
import { spellResourceUrl } from "./declaration/resourceUrl.ts"
import { DeclarationValidator, type ValidatedDeclaration } from "./DeclarationValidator.ts"
import { metrics } from "./metrics.ts"
import { PricedAssets } from "./ownership/PricedAssets.ts"
import { Recipients } from "./ownership/Recipients.ts"
import type { PricedAsset } from "./pricing.ts"
import { outcomeOf, OutcomeCache } from "./OutcomeCache.ts"
import { Changes } from "./store/Changes.ts"
import type { ObservedDeclaration, Sale } from "./store/SightingsBatch.ts"
import { type Carrier, type Recorded, unavailable } from "./store/Recorded.ts"
import { resourceKey } from "./store/ResourceWire.ts"
import { Sightings } from "./store/Sightings.ts"
import { riskOf } from "./store/weighEvidence.ts"

/** A claim with a price charged by usage counts as paid if at least this part (1/n) of the price is. */
const usagePart = 100
/** Maximum characters of a text that is its own key. */
const textMax = 4_096

interface Sent {
  readonly sentKey: string
  readonly value: unknown
  readonly grade: Carrier["grade"]
}

/**
 * The key of everything that decides about a declaration: equal keys have equal outcomes. The principal decides too,
 * because a listed recipient's key may name the next recipient. Callers without a key decide nothing.
 */
const digestOf = (
  crypto: Crypto["Service"],
  { payment }: PaymentObservation,
  { grade, sentKey, value }: Sent
): string => {
  const { amountText, asset, extra, maxTimeoutSeconds, network, payTo, scheme } = offered(payment)
  const terms = [amountText, asset, extra, maxTimeoutSeconds, network, payTo, scheme]
  const owner = payment.principal.keyed ? payment.principal.owner : null
  const reported = [grade, owner, sentKey, payment.dialect, value, payment.resource, ...terms]
  const text = JSON.stringify(reported)
  // Hashing costs more than comparing; a long text is hashed to bound memory.
  return text.length <= textMax ? text : Hex.encode(crypto.sha256(new TextEncoder().encode(text)))
}

const saleOf = (
  { payer, payment, stage, transaction }: PaymentObservation,
  { claim }: Pick<Recorded, "claim">,
  assets: ReadonlyArray<PricedAsset>
): Sale | undefined => {
  if (stage !== "settled" || Option.isNone(transaction)) return undefined
  const { amount, asset, payTo, scheme } = payment.requirements
  const units = Option.getOrElse(amount, () => 0n)
  const settled = units.toString()
  const price = offered(payment).amountText
  // Schemes that charge for usage settle less than the price, and anyone can declare a price without ever paying it.
  const isAtPrice = scheme === "exact" ? settled === price : usagePart * Number(settled) >= Number(price)
  const evidence = claim === undefined || !isAtPrice ? {} : { claim }
  const risked = riskOf(assets, asset, units).toString()
  return { transaction: transaction.value, payer, payTo, amount: settled, risked, ...evidence }
}

/** An observation is stored under the spelling the URL would be listed as, even when it cannot be listed. */
const observedOf = (
  crypto: Crypto["Service"],
  { payer, payment, stage }: PaymentObservation,
  { identity, recorded: { decision, detail, reason, resourceId } }: ValidatedDeclaration
): Omit<ObservedDeclaration, "at" | "lagMillis"> => {
  const url = declaredUrl(payment)
  const spelled = identity?.resource ?? spellResourceUrl(/^mcp:/i.test(url) ? "mcp" : "http", url)?.resource
  return {
    resourceKey: spelled === undefined ? undefined : resourceKey(crypto, spelled),
    resourceId,
    url: spelled ?? cleanString(url),
    type: identity?.type,
    toolName: identity?.toolName,
    payTo: payment.requirements.payTo,
    payer,
    stage,
    decision,
    reason,
    detail
  }
}

const touching =
  (sightings: Sightings["Service"], { assets }: PricedAssets["Service"]) =>
  (observation: PaymentObservation, recorded: Recorded, now: Date): Effect.Effect<void> => {
    const { decision, isContender, resourceId } = recorded
    if (resourceId === undefined) return Effect.void
    const sale = saleOf(observation, recorded, assets)
    if (decision !== "rejected") return sightings.touch(resourceId, now, sale)
    return isContender !== true || sale === undefined ? Effect.void : sightings.contend(resourceId, now, sale)
  }

/** Single flight: validates a declaration once and shares the result with every waiter. */
const makeFirst = Effect.fnUntraced(function* (cached: OutcomeCache) {
  const crypto = yield* Crypto
  const { validate: check } = yield* DeclarationValidator
  const sightings = yield* Sightings
  const changes = yield* Changes
  const touch = touching(sightings, yield* PricedAssets)
  const trusted = yield* trustedClock
  return Effect.fnUntraced(function* (
    observation: PaymentObservation,
    sent: Sent,
    digest: string,
    answer: Deferred.Deferred<Recorded>
  ) {
    const startedAt = yield* Clock.currentTimeMillis
    const now = new Date(yield* trusted)
    const validated = yield* check(observation, sent.sentKey, sent.value, sent.grade, now)
    const { recorded } = validated
    const endedAt = yield* Clock.currentTimeMillis
    if (cached.keep(digest, recorded, endedAt)) yield* changes.listed
    yield* touch(observation, recorded, now)
    yield* Deferred.succeed(answer, recorded)
    const observed = observedOf(crypto, observation, validated)
    yield* sightings.observe({ ...observed, at: now, lagMillis: endedAt - startedAt })
    const { decision, reason } = recorded
    yield* measure(metrics.declarations, 1, { decision, reason: reason ?? "none" })
    return outcomeOf(recorded)
  })
})

export class Observer extends Context.Service<Observer, Required<Pick<Extension, "observe" | "recall">>>()(
  "tollkeeper/catalog/Observer"
) {
  static readonly layer = Layer.effect(
    Observer,
    Effect.gen(function* () {
      const crypto = yield* Crypto
      const sightings = yield* Sightings
      const changes = yield* Changes
      const recipients = yield* Recipients
      const cached = new OutcomeCache()
      const inFlight = new Map<string, Deferred.Deferred<Recorded>>()
      yield* changes.onChange((wasMoved) => {
        if (wasMoved) cached.forget()
      })
      yield* sightings.onStates((stateHashes, now) => cached.confirm(stateHashes, now))

      const touch = touching(sightings, yield* PricedAssets)
      const first = yield* makeFirst(cached)

      const observe: Extension["observe"] = Effect.fnUntraced(function* (observation) {
        const sent = observation.payment.extensions.get("catalog")
        if (sent === undefined) return { status: "processing" } as const
        const startedAt = yield* Clock.currentTimeMillis
        const { principal, requirements } = observation.payment
        const grade = yield* recipients.gradeOf(principal, requirements.payTo)
        const digest = digestOf(crypto, observation, { ...sent, grade })
        const known = cached.recall(digest, startedAt)
        // A settlement under a hidden declaration is recorded: it is evidence for the claim and must be kept.
        const isEvidence = observation.stage === "settled" && known?.recorded.isContender === true
        if (known !== undefined && !isEvidence) {
          yield* touch(observation, known.recorded, new Date(startedAt))
          return known.outcome
        }
        const flight = `${digest} ${observation.stage}`
        const running = inFlight.get(flight)
        if (running !== undefined) {
          const recorded = yield* Deferred.await(running)
          yield* touch(observation, recorded, new Date(startedAt))
          return outcomeOf(recorded)
        }
        const answer = Deferred.makeUnsafe<Recorded>()
        inFlight.set(flight, answer)
        const end = Effect.sync(() => inFlight.delete(flight))
        return yield* first(observation, { ...sent, grade }, digest, answer).pipe(
          Effect.ensuring(Effect.andThen(Deferred.succeed(answer, unavailable("a defect")), end))
        )
      })

      const recall: Required<Extension>["recall"] = (observation, now) => {
        const { extensions, principal, requirements } = observation.payment
        const sent = observation.stage === "verified" ? extensions.get("catalog") : undefined
        const grade = recipients.knownGradeOf(principal, requirements.payTo, now)
        if (sent === undefined || grade === undefined) return undefined
        const { sentKey, value } = sent
        const known = cached.recall(digestOf(crypto, observation, { sentKey, value, grade }), now)
        if (known === undefined) return undefined
        const { decision, resourceId } = known.recorded
        if (resourceId !== undefined && decision !== "rejected") sightings.seen(resourceId, new Date(now))
        return known.outcome
      }

      return Observer.of({ observe, recall })
    })
  )
}
