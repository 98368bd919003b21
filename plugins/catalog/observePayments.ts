// The catalog's observer of payments. What was seen a moment ago is known by a digest and costs no database statement;
// anything new is read, judged and recorded once, however many payments carry it at the same time. It never fails: what
// goes wrong is `catalog_unavailable` to the seller, a line in the log and an observation for the operator (S17–S23,
// S78, S260).
import { Clock, Deferred, Effect, Metric, Option, Semaphore } from "effect"
import { Hex } from "effect/encoding"
import type { Extension, ExtensionOutcome, Observation as PaymentObservation } from "../../kernel/payment/Extension.ts"
import type { Crypto } from "../../kernel/platform/Crypto.ts"
import type { CatalogValues } from "./Config.ts"
import { type Identity, isRejection } from "./declaration/Declaration.ts"
import { declaredUrl, offered, readDeclaration } from "./declaration/DeclarationWire.ts"
import { cleanString } from "./declaration/cleanText.ts"
import { spellResourceUrl } from "./declaration/resourceUrl.ts"
import { makePace } from "./declaration/paceWork.ts"
import { makeValidator } from "./declaration/validateInfo.ts"
import type { Journal, Sale } from "./store/Journal.ts"
import type { makeRecorder, Recorded } from "./store/recordDeclaration.ts"
import { resourceKey } from "./store/ResourceWire.ts"

/** How long a digest stands for its outcome: what another replica or an operator changes is noticed after this. */
const rememberMillis = 30_000
const rememberedMax = 20_000
/** Recordings at once, and how many may wait for their turn. */
const recordingsMax = 4
const waitingMax = 64

/**
 * Declarations are read in a share of the process's time, whoever sends how many of whatever kind; and so many of one
 * payer may wait.
 */
const readingPace = { share: 0.2, burstMillis: 1_000 }
const waitingPerPayerMax = 8

const outcomes = Metric.counter("tollkeeper_catalog_declarations_total", {
  description: "Declarations observed, by decision.",
  incremental: true
})

interface Remembered {
  readonly outcome: ExtensionOutcome
  readonly recorded: Recorded
  readonly until: number
}

export interface ObserverOptions {
  readonly config: CatalogValues
  readonly crypto: Crypto["Service"]
  readonly recorder: ReturnType<typeof makeRecorder>
  readonly journal: Journal
  /** Called after a change that discovery shows. */
  readonly changed: () => void
}

const outcomeOf = ({ decision, reason }: Recorded): ExtensionOutcome => {
  if (decision === "rejected") return { status: "rejected", rejectedReason: reason ?? "catalog_unavailable" }
  return { status: decision === "held" ? "processing" : "success" }
}

const limited = <V>(map: Map<string, V>, max: number, key: string, value: V): void => {
  map.delete(key)
  map.set(key, value)
  if (map.size > max) map.delete(map.keys().next().value!)
}

export const makeObserver = ({ changed, config, crypto, journal, recorder }: ObserverOptions) => {
  const validate = makeValidator()
  const pace = makePace(readingPace)
  const permits = Semaphore.makeUnsafe(recordingsMax)
  const remembered = new Map<string, Remembered>()
  const latest = new Map<string, string>()
  const inFlight = new Map<string, Deferred.Deferred<Recorded>>()
  let waiting = 0
  const reading = new Map<string, number>()
  let readingAll = 0

  const digestOf = ({ payment }: PaymentObservation, value: unknown, sentKey: string): string => {
    const { amountText, asset, extra, maxTimeoutSeconds, network, payTo, scheme } = offered(payment)
    const told = [
      sentKey,
      payment.dialect,
      value,
      payment.resource,
      [...payment.extensions.keys()],
      amountText,
      asset,
      extra,
      maxTimeoutSeconds,
      network,
      payTo,
      scheme
    ]
    return Hex.encode(crypto.sha256(new TextEncoder().encode(JSON.stringify(told))))
  }

  const judge = Effect.fnUntraced(function* (
    observation: PaymentObservation,
    sentKey: string,
    value: unknown,
    now: Date
  ) {
    const { payer } = observation
    const crowded = {
      identity: undefined,
      recorded: {
        decision: "rejected",
        reason: "catalog_unavailable",
        detail: "too many declarations at once",
        resourceId: undefined
      } as Recorded
    }
    const read = () => readDeclaration(observation.payment, sentKey, value, { config, validate })
    const mine = reading.get(payer) ?? 0
    if (readingAll >= waitingMax || mine >= waitingPerPayerMax) return crowded
    readingAll += 1
    reading.set(payer, mine + 1)
    const declaration = yield* pace(read).pipe(
      Effect.ensuring(
        Effect.sync(() => {
          readingAll -= 1
          const left = reading.get(payer)! - 1
          if (left === 0) reading.delete(payer)
          else reading.set(payer, left)
        })
      )
    )
    const { identity } = declaration
    if (isRejection(declaration)) {
      const { detail, reason } = declaration
      return { identity, recorded: { decision: "rejected", reason, detail, resourceId: undefined } as Recorded }
    }
    if (waiting >= waitingMax) return { ...crowded, identity }
    waiting += 1
    const recorded = yield* recorder
      .record(declaration, { stage: observation.stage, payer: observation.payer, now })
      .pipe(
        permits.withPermits(1),
        Effect.ensuring(Effect.sync(() => (waiting -= 1))),
        Effect.catch((error) =>
          Effect.as(Effect.logError("a declaration could not be recorded", error), {
            decision: "rejected",
            reason: "catalog_unavailable",
            detail: `database: ${error.reason._tag}`,
            resourceId: undefined
          } as Recorded)
        )
      )
    return { identity, recorded }
  })

  const remember = (digest: string, recorded: Recorded, now: number) => {
    const { decision, reason, resourceId, versionHash } = recorded
    if (resourceId !== undefined && versionHash !== undefined)
      limited(latest, rememberedMax, String(resourceId), versionHash)
    if (decision === "listed" || decision === "updated") changed()
    if (decision === "held" || reason === "catalog_unavailable") return
    limited(remembered, rememberedMax, digest, { outcome: outcomeOf(recorded), recorded, until: now + rememberMillis })
  }

  /** What is still true of a digest. */
  const recall = (digest: string, now: number): Remembered | undefined => {
    const known = remembered.get(digest)
    if (known === undefined || known.until < now) return undefined
    const { resourceId, versionHash } = known.recorded
    return versionHash === undefined || latest.get(String(resourceId)) === versionHash ? known : undefined
  }

  const saleOf = ({ payer, stage, transaction }: PaymentObservation): Sale | undefined =>
    stage === "settled" && Option.isSome(transaction) ? { transaction: transaction.value, payer } : undefined

  /** What was observed is found again under the spelling the URL would be listed as, even when it cannot be listed. */
  const tell = (
    observation: PaymentObservation,
    recorded: Recorded,
    identity: Identity | undefined,
    now: Date,
    lagMillis: number
  ) => {
    const url = declaredUrl(observation.payment)
    const spelled = identity?.resource ?? spellResourceUrl(/^mcp:/i.test(url) ? "mcp" : "http", url)?.resource
    return journal.observe({
      resourceKey: spelled === undefined ? undefined : resourceKey(crypto, spelled),
      resourceId: recorded.resourceId,
      url: spelled ?? cleanString(url),
      type: identity?.type,
      toolName: identity?.toolName,
      payTo: observation.payment.requirements.payTo,
      payer: observation.payer,
      stage: observation.stage,
      decision: recorded.decision,
      reason: recorded.reason,
      detail: recorded.detail,
      at: now,
      lagMillis
    })
  }

  const observe: Extension["observe"] = Effect.fnUntraced(function* (observation) {
    const sent = observation.payment.extensions.get("catalog")
    if (sent === undefined) return { status: "processing" } as const
    const startedAt = yield* Clock.currentTimeMillis
    const now = new Date(startedAt)
    const digest = digestOf(observation, sent.value, sent.sentKey)
    const known = recall(digest, startedAt)
    if (known !== undefined) {
      if (known.recorded.resourceId !== undefined && known.outcome.status === "success")
        yield* journal.touch(known.recorded.resourceId, now, saleOf(observation))
      return known.outcome
    }
    const flight = `${digest} ${observation.stage}`
    const running = inFlight.get(flight)
    if (running !== undefined) {
      const recorded = yield* Deferred.await(running)
      if (recorded.resourceId !== undefined && recorded.decision !== "rejected")
        yield* journal.touch(recorded.resourceId, now, saleOf(observation))
      return outcomeOf(recorded)
    }
    const answer = Deferred.makeUnsafe<Recorded>()
    inFlight.set(flight, answer)
    const failed: Recorded = {
      decision: "rejected",
      reason: "catalog_unavailable",
      detail: "a defect",
      resourceId: undefined
    }
    return yield* Effect.gen(function* () {
      const { identity, recorded } = yield* judge(observation, sent.sentKey, sent.value, now)
      const endedAt = yield* Clock.currentTimeMillis
      remember(digest, recorded, endedAt)
      if (recorded.resourceId !== undefined && recorded.decision !== "rejected")
        yield* journal.touch(recorded.resourceId, now, saleOf(observation))
      yield* Deferred.succeed(answer, recorded)
      yield* tell(observation, recorded, identity, now, endedAt - startedAt)
      yield* Metric.update(
        Metric.withAttributes(outcomes, { decision: recorded.decision, reason: recorded.reason ?? "none" }),
        1
      )
      return outcomeOf(recorded)
    }).pipe(
      Effect.ensuring(
        Effect.andThen(
          Deferred.succeed(answer, failed),
          Effect.sync(() => inFlight.delete(flight))
        )
      )
    )
  })

  return {
    extension: { key: "catalog", observe } satisfies Extension,
    /** After a move that this process made itself: nothing remembered is trusted. */
    forget: () => {
      remembered.clear()
    }
  }
}
