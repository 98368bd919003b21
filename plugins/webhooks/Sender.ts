// Sends due deliveries, with one actor per receiver: a slow or failing receiver delays no other receiver, and no
// payment. A failed attempt is retried with exponential backoff, also after a restart, until the receiver accepts the
// event or its time is up; then it is given up, with a line in the log. If a `Retry-After` is longer than the backoff,
// all events of the receiver wait for it, for a day at most, until an operator replays some. A failing receiver gets
// one message per second at most, and once it accepts one after ten seconds, the rest is due immediately. First
// attempts precede retries, so events that a receiver never accepts delay no other event. A receiver that answers 410
// Gone is disabled on every replica until an operator enables it. Redirects are failures, and the destination is
// checked again for each attempt (`kernel/http/safeFetch.ts`).
import { Clock, Context, Duration, Effect, Layer, Random, Result } from "effect"
import { Headers } from "effect/http"
import { WireVocabulary } from "../../kernel/config/WireVocabulary.ts"
import { reconciler } from "../../kernel/actor/Actor.ts"
import { LedgerClock } from "../../kernel/ledger/LedgerClock.ts"
import { safeFetch } from "../../kernel/http/safeFetch.ts"
import { Crypto } from "../../kernel/platform/Crypto.ts"
import { Outbound } from "../../kernel/platform/Outbound.ts"
import { Extensions } from "../../kernel/payment/Extension.ts"
import { eventExtensions } from "../../kernel/payment/settledExtensions.ts"
import { Settlements } from "../../kernel/settlement/store/Settlements.ts"
import { Supervisor } from "../../kernel/actor/Supervisor.ts"
import { measure } from "../../kernel/telemetry/Measure.ts"
import { monotonicMillis } from "../../kernel/time/monotonicMillis.ts"
import { Config, type Receiver } from "./Config.ts"
import { type AttemptResult, Deliveries, type Delivery } from "./Deliveries.ts"
import { encodeBody, encodeMessage } from "./MessageWire.ts"
import { metrics } from "./metrics.ts"
import { SigningSecrets } from "./SigningSecrets.ts"

/** A receiver with this answer will never accept a message again. */
const goneStatus = 410
const concurrencyMax = 4
/** After an outage of this length the events that wait for their backoff are due immediately; before, it is shorter. */
const outageMillisMin = 10_000
const readEvery = "1 second"
/** Lease time in addition to the attempt's timeout. */
const leaseSlackMillis = 10_000
/** Maximum bytes read of a response. */
const answerBytesMax = 65_536
const doublingsMax = 30
/** The longest pause that a receiver may ask for. */
const askedMillisMax = 24 * 3_600_000
/** Maximum jitter as a share of a pause, so that retries spread. */
const jitter = 0.2

export class Sender extends Context.Service<
  Sender,
  {
    /** Wakes the senders when something may have become due. */
    readonly wake: Effect.Effect<void>
    /** Receivers that accepted none of their last messages. */
    readonly failing: () => ReadonlyArray<string>
  }
>()("tollkeeper/webhooks/Sender") {
  static readonly layer = Layer.effect(
    Sender,
    Effect.gen(function* () {
      const config = yield* Config
      const store = yield* Deliveries
      const attempt = yield* makeAttempt
      /** Since when each receiver accepted nothing, a reading of `monotonicMillis`. */
      const failing = new Map<string, number>()
      // Creates the series, so that an alert detects the first event.
      for (const outcome of ["Delivered", "Failed", "GivenUp"] satisfies ReadonlyArray<AttemptResult["_tag"]>)
        yield* measure(metrics.deliveries, 0, { outcome })

      const send = Effect.fn("Webhooks.send")(function* (receiver: Receiver, delivery: Delivery) {
        const attempted = yield* attempt(receiver, delivery)
        yield* measure(metrics.deliveries, 1, { outcome: attempted._tag })
        yield* reportEnd(receiver, delivery, attempted)
        yield* store.note(delivery, attempted)
        return attempted._tag === "Delivered"
      })

      /**
       * Notes whether the receiver accepted any of a turn's messages. A single event that it never accepts is no
       * outage, and keeps its backoff.
       */
      const noteReached = Effect.fnUntraced(function* ({ name }: Receiver, isReached: boolean) {
        const now = yield* monotonicMillis
        const since = failing.get(name)
        if (!isReached) return void failing.set(name, since ?? now)
        failing.delete(name)
        if (since !== undefined && now - since >= outageMillisMin) yield* store.hurry(name)
      })

      const leaseMillis = config.timeoutMillis + leaseSlackMillis
      const turn = (receiver: Receiver) =>
        Effect.gen(function* () {
          while (true) {
            const limit = failing.has(receiver.name) ? 1 : concurrencyMax
            const due = yield* store.lease(receiver.name, limit, leaseMillis, receiver.principal)
            if (due.length === 0) return
            const accepted = yield* Effect.forEach(due, (delivery) => send(receiver, delivery), {
              concurrency: concurrencyMax
            })
            yield* noteReached(receiver, accepted.includes(true))
            if (failing.has(receiver.name)) return
          }
        })
      const supervisor = yield* Supervisor
      const actors = yield* Effect.forEach(config.receivers, (receiver, index) =>
        reconciler({ id: `webhooks-${index}`, every: readEvery, turn: turn(receiver) }).pipe(
          Effect.provideService(Supervisor, supervisor)
        )
      )
      return Sender.of({
        wake: Effect.forEach(actors, ({ wake }) => wake, { discard: true }),
        failing: () => [...failing.keys()]
      })
    })
  )
}

/** Logs an attempt after which nothing of the event, or of its receiver, is sent. */
const reportEnd = Effect.fnUntraced(function* (receiver: Receiver, delivery: Delivery, attempted: AttemptResult) {
  if (attempted._tag === "GivenUp") {
    yield* Effect.logWarning("gave up a webhook: its receiver did not accept it in time").pipe(
      Effect.annotateLogs({
        receiver: receiver.name,
        event: delivery.type,
        settlement: delivery.settlement,
        attempts: delivery.attempts,
        lastAnswer: attempted.answer
      })
    )
  }
  if (attempted._tag === "Disabled") {
    yield* Effect.logError(
      "a webhook receiver answered 410 and is disabled: nothing is sent to it until " +
        `\`tollkeeper webhooks enable ${receiver.name}\``
    ).pipe(Effect.annotateLogs({ receiver: receiver.name, event: delivery.type }))
  }
})

/** The pause that an answer's `Retry-After` asks for, in milliseconds: seconds, or a date of HTTP; 0 for any other. */
export const readRetryAfter = (header: string | undefined, nowMillis: number): number =>
  Result.match(Headers.parseRetryAfter(header ?? ""), {
    onFailure: () => 0,
    onSuccess: (asked) => Math.min(Duration.toMillis(Headers.retryAfterDelay(asked, nowMillis)), askedMillisMax)
  })

/** One attempt, which never fails: its result is the value. */
const makeAttempt = Effect.gen(function* () {
  const config = yield* Config
  const store = yield* Deliveries
  const settlements = yield* Settlements
  const signing = yield* SigningSecrets
  const extensions = yield* Extensions
  const crypto = yield* Crypto
  const outbound = yield* Outbound
  const ledger = yield* LedgerClock
  const [dialect] = (yield* WireVocabulary).dialects
  const policy = {
    allowLocal: config.allowLocal,
    allowPlain: config.allowLocal,
    timeoutMillis: config.timeoutMillis,
    bytesMax: answerBytesMax,
    redirectsMax: 0
  }

  /** Corrected time: receivers refuse a message that is minutes off, and this machine's clock may be. */
  const rightTime = (nowMillis: number) =>
    Effect.map(ledger.status, ({ isSkewed, skewSeconds = 0 }) => nowMillis - (isSkewed ? skewSeconds * 1_000 : 0))

  /** The body that was fixed when the delivery was queued; otherwise its first attempt fixes it. */
  const bodyOf = Effect.fnUntraced(function* (delivery: Delivery) {
    if (delivery.body !== null) return delivery.body
    const [record] = yield* settlements.byIds([delivery.settlement])
    if (record === undefined) return undefined
    const added = yield* eventExtensions(extensions, delivery.type, record)
    const body = encodeBody({ type: delivery.type, at: delivery.toldAt }, record, dialect, added)
    yield* store.fix(delivery, body)
    return body
  })

  const post = (receiver: Receiver, delivery: Delivery) =>
    Effect.gen(function* () {
      const body = yield* bodyOf(delivery)
      if (body === undefined) return { said: "no such settlement" }
      const signedAtMillis = yield* rightTime(yield* Clock.currentTimeMillis)
      const message = encodeMessage({ ...delivery, body }, signing.of(receiver), { crypto, signedAtMillis })
      const { headers, status } = yield* safeFetch(receiver.url, { method: "POST", ...message }, policy)
      return { said: status, askedMillis: readRetryAfter(headers["retry-after"], signedAtMillis) }
    }).pipe(
      Effect.provideService(Outbound, outbound),
      Effect.catchTag("FetchRefused", ({ reason }) =>
        Effect.succeed<{ readonly said: string; readonly askedMillis?: undefined }>({ said: reason })
      )
    )

  return Effect.fnUntraced(function* (receiver: Receiver, delivery: Delivery) {
    const { askedMillis = 0, said } = yield* post(receiver, delivery)
    const answer = String(said)
    if (typeof said === "number" && said >= 200 && said <= 299) return { _tag: "Delivered", answer } as AttemptResult
    if (said === goneStatus) return { _tag: "Disabled", answer } as AttemptResult
    if (delivery.ageMillis >= config.giveUpAfterMillis) return { _tag: "GivenUp", answer } as AttemptResult
    const pause = config.retryFirstMillis * 2 ** Math.min(delivery.attempts - 1, doublingsMax)
    const ownMillis = Math.round(Math.min(pause, config.retryMaxMillis) * (1 + jitter * (yield* Random.next)))
    const isAsked = askedMillis > ownMillis
    return { _tag: "Failed", answer, pauseMillis: isAsked ? askedMillis : ownMillis, isAsked } as AttemptResult
  })
})
