// JSON-RPC over HTTP, bounded: one deadline a call, one limit for the answer's bytes, ids checked, errors typed. Reads
// are retried at the next configured endpoint (`askEndpoints.ts`); an endpoint that failed or was slow is ordered last
// for a while. A submission is sent to one endpoint once. An endpoint is not used before it has confirmed that it
// serves the right network: another network's answer must not decide anything. No content of a request or an answer, of
// an address or a header is logged or put into an error: they may hold signed envelopes and an operator's keys.
import { Cause, Clock, Data, Duration, Effect, Result, Schema } from "effect"
import { Headers } from "effect/http"
import { headersFor, type RpcHeader } from "../config/rpcHeaders.ts"
import { measure, measureUnsafe } from "../telemetry/Measure.ts"
import { ledger } from "../telemetry/metrics.ts"
import { CallFailed, HttpCalls, type HttpAnswered } from "../platform/HttpCalls.ts"
import { memoize } from "../cache/memoize.ts"
import { traceParentIn } from "../TraceParent.ts"
import { askEndpoints, CallError } from "./askEndpoints.ts"
import { LedgerUnavailable } from "./LedgerRpc.ts"
import { GetNetwork, JsonRpcAnswer } from "./LedgerWire.ts"
import { withSpanIfSampled } from "../effect/withSpanIfSampled.ts"

/** A failed endpoint is ordered behind the others for this long. */
const penalty = Duration.seconds(10)
/** An endpoint that contradicted the others is ordered behind them for this long. */
const distrustNanos = 3_600_000_000_000n
/** Maximum number of endpoints with cached headers. */
const urlsMax = 64
/** An answer longer than this is not read. */
const answerBytesMax = 8 * 1_048_576

/** The endpoint answered, and its answer is an error of the protocol. Another endpoint may answer differently. */
class RpcError extends Data.TaggedError("RpcError")<{ readonly code: number; readonly message: string }> {}

/** The endpoint, or a proxy in front of it, refused to work just now. */
class HttpRefused extends Data.TaggedError("HttpRefused")<{
  readonly status: number
  readonly retryAfterMillis: number
}> {}

export interface Endpoints {
  /** Calls one endpoint after another until one gives a well-formed answer. */
  readonly ask: <A>(
    method: string,
    params: unknown,
    answer: Schema.Codec<A, any>
  ) => Effect.Effect<A, LedgerUnavailable>
  /** The same, with the position of the endpoint that answered. */
  readonly askWhich: <A>(
    method: string,
    params: unknown,
    answer: Schema.Codec<A, any>
  ) => Effect.Effect<{ readonly answer: A; readonly endpoint: number }, LedgerUnavailable>
  /** Calls the preferred endpoint once. */
  readonly once: <A>(
    method: string,
    params: unknown,
    answer: Schema.Codec<A, any>
  ) => Effect.Effect<A, LedgerUnavailable>
  /** Calls one given endpoint once. */
  readonly at: <A>(
    url: string,
    method: string,
    params: unknown,
    answer: Schema.Codec<A, any>
  ) => Effect.Effect<A, LedgerUnavailable>
  /** Orders these endpoints, by position, after the others, until the next call of this function. */
  readonly setUnfit: (endpoints: ReadonlySet<number>) => void
  /** The positions of all endpoints, in call order. */
  readonly order: Effect.Effect<ReadonlyArray<number>>
  /** Orders an endpoint, by position, after all endpoints that are not distrusted, for an hour. */
  readonly distrust: (endpoint: number) => Effect.Effect<void>
  /** The endpoints that are distrusted now. */
  readonly distrusted: Effect.Effect<ReadonlyArray<number>>
}

export interface EndpointOptions {
  /** At least one; the first is preferred. */
  readonly urls: ReadonlyArray<string>
  readonly timeout: Duration.Duration
  /** The network that an endpoint must serve to be called; if absent, every endpoint is called. */
  readonly passphrase?: string
  readonly headers?: ReadonlyArray<RpcHeader> | undefined
}

const errorOf = { timeout: "TimeoutError", unreachable: "not reached", "too long": "the answer is too long" } as const

const reasonOf = (error: unknown): string =>
  error instanceof RpcError
    ? `error ${error.code}: ${error.message.slice(0, 200)}`
    : error instanceof HttpRefused
      ? `HTTP ${error.status}`
      : error instanceof CallFailed
        ? errorOf[error.reason]
        : typeof error === "object" && error !== null && "_tag" in error
          ? String(error._tag)
          : "failed"

/** The pause that a refusal requests, milliseconds; 0 without a readable one. */
const retryAfterOf = (named: string | undefined) =>
  Effect.map(Clock.currentTimeMillis, (now) => {
    const read = named === undefined ? undefined : Headers.parseRetryAfter(named)
    return read === undefined || Result.isFailure(read)
      ? 0
      : Math.max(0, Duration.toMillis(Headers.retryAfterDelay(read.success, now)))
  })

const decodeEnvelope = Schema.decodeUnknownEffect(JsonRpcAnswer)

/** Decoders of answers, each made once. */
const makeReaders = () => {
  const readers = new Map<unknown, (value: unknown) => Effect.Effect<unknown, Schema.SchemaError>>()
  return <A>(answer: Schema.Codec<A, any>): ((value: unknown) => Effect.Effect<A, Schema.SchemaError>) => {
    const cached = readers.get(answer)
    if (cached !== undefined) return cached as never
    const reader = Schema.decodeUnknownEffect(answer)
    readers.set(answer, reader)
    return reader
  }
}

const refused = ({ retryAfter, status }: HttpAnswered) =>
  Effect.flatMap(retryAfterOf(retryAfter), (retryAfterMillis) =>
    Effect.fail(new HttpRefused({ status, retryAfterMillis }))
  )

/** An endpoint's answer, if it belongs to this call. */
const readAnswer = <A>(
  said: HttpAnswered,
  id: number,
  read: (value: unknown) => Effect.Effect<A, Schema.SchemaError>
) =>
  Effect.suspend((): Effect.Effect<A, RpcError | HttpRefused | Schema.SchemaError> => {
    if (said.status === 429 || said.status >= 500) return refused(said)
    let parsed: unknown
    try {
      parsed = JSON.parse(said.body)
    } catch {
      return Effect.fail(new RpcError({ code: said.status, message: "the answer is not JSON" }))
    }
    return Effect.flatMap(decodeEnvelope(parsed), (envelope): Effect.Effect<A, RpcError | Schema.SchemaError> => {
      if (envelope.error) return Effect.fail(new RpcError(envelope.error))
      if (envelope.id !== id) return Effect.fail(new RpcError({ code: 0, message: "the answer has another id" }))
      return read(envelope.result)
    })
  })

/** One request to one endpoint, and its answer. */
const makeExchange = Effect.fnUntraced(function* (headers: ReadonlyArray<RpcHeader>, timeout: Duration.Duration) {
  const http = yield* HttpCalls
  const timeoutMillis = Duration.toMillis(timeout)
  const readerOf = makeReaders()
  const headersOf = memoize({ name: "rpc-headers", capacity: urlsMax }, (url) => headersFor(headers, url))
  let lastId = 0
  return <A>(url: string, method: string, params: unknown, answer: Schema.Codec<A, any>) =>
    Effect.withFiber((fiber) => {
      const id = ++lastId
      measureUnsafe(fiber, ledger.rpcCalls, 1, { method })
      const traceparent = traceParentIn(fiber)
      const said = http.post({
        url,
        headers: traceparent === undefined ? headersOf(url) : { ...headersOf(url), traceparent },
        body: JSON.stringify({ jsonrpc: "2.0", id, method, params }),
        timeoutMillis,
        bytesMax: answerBytesMax
      })
      return Effect.flatMap(said, (said) => readAnswer(said, id, readerOf(answer)))
    })
})

/** A request to an endpoint. Before the first one, the endpoint must report that it serves the right network. */
const makeAsking = Effect.fnUntraced(function* (options: EndpointOptions) {
  const exchange = yield* makeExchange(options.headers ?? [], options.timeout)
  /** Endpoints that have reported the right network. */
  const admitted = new Set<string>()
  const admit = Effect.fnUntraced(function* (url: string) {
    const { passphrase } = yield* exchange(url, "getNetwork", undefined, GetNetwork)
    if (passphrase !== options.passphrase)
      return yield* new RpcError({ code: 0, message: "the endpoint serves another network" })
    admitted.add(url)
  })

  /** Both requests end within the time of one. */
  return <A>(url: string, method: string, params: unknown, answer: Schema.Codec<A, any>) => {
    const question = exchange(url, method, params, answer)
    return options.passphrase === undefined || admitted.has(url)
      ? question
      : Effect.timeout(Effect.andThen(admit(url), question), options.timeout)
  }
})

/** Whether an endpoint did not answer, or refused by an HTTP status; with the error code. */
const silentBy = (error: unknown): { readonly isSilent?: true; readonly code?: string } => {
  if (error instanceof HttpRefused) return { isSilent: true, code: `HTTP ${error.status}` }
  if (error instanceof CallFailed)
    return error.reason === "too long"
      ? {}
      : { isSilent: true, ...(error.code === undefined ? {} : { code: error.code }) }
  return Cause.isTimeoutError(error) ? { isSilent: true } : {}
}

const errorIn = (method: string, error: unknown) =>
  new CallError({
    unavailable: new LedgerUnavailable({ operation: method, message: reasonOf(error), ...silentBy(error) }),
    isPassing: error instanceof HttpRefused,
    retryAfterMillis: error instanceof HttpRefused ? error.retryAfterMillis : 0
  })

/** Endpoints that contradicted others, with the end of their distrust by monotonic time. */
const makeDistrust = () => {
  const until = new Map<number, bigint>()
  return {
    isDistrusted: (endpoint: number, now: bigint) => (until.get(endpoint) ?? 0n) > now,
    distrust: (endpoint: number) =>
      Effect.map(Clock.monotonicTimeNanos, (now) => void until.set(endpoint, now + distrustNanos)),
    distrusted: Effect.map(Clock.monotonicTimeNanos, (now) =>
      [...until].flatMap(([endpoint, end]) => (end > now ? [endpoint] : [])).toSorted((a, b) => a - b)
    )
  }
}

/** Records in a metric whether an endpoint is available. */
const makeNote = (urls: ReadonlyArray<string>) => {
  const noted = new Map<string, 0 | 1>()
  /** Only on a change, because a payment makes several calls. */
  return (url: string, isAvailable: 0 | 1) => {
    if (noted.get(url) === isAvailable) return Effect.void
    noted.set(url, isAvailable)
    return measure(ledger.endpointAvailable, isAvailable, { endpoint: String(urls.indexOf(url) + 1) })
  }
}

export const makeEndpoints = Effect.fnUntraced(function* (options: EndpointOptions) {
  const badUntil = new Map<string, bigint>()
  const { distrust, distrusted, isDistrusted } = makeDistrust()
  let unfit: ReadonlySet<number> = new Set()
  const asking = yield* makeAsking(options)

  const setBad = (url: string, millis: number) =>
    Effect.map(Clock.monotonicTimeNanos, (now) => void badUntil.set(url, now + BigInt(Math.ceil(millis)) * 1_000_000n))
  const penaltyMillis = Duration.toMillis(penalty)

  const note = makeNote(options.urls)

  /** One endpoint, once. */
  const attempt = <A>(url: string, method: string, params: unknown, answer: Schema.Codec<A, any>) =>
    Effect.suspend(() => asking(url, method, params, answer)).pipe(
      withSpanIfSampled(`ledger.${method}`, { kind: "client", attributes: { "rpc.method": method } }),
      Effect.matchEffect({
        onFailure: (error) =>
          Effect.andThen(note(url, 0), Effect.andThen(setBad(url, penaltyMillis), Effect.fail(errorIn(method, error)))),
        onSuccess: (said) => {
          badUntil.delete(url)
          return Effect.as(note(url, 1), said)
        }
      }),
      // No longer needed: another endpoint was quicker, or this one is silent.
      Effect.onInterrupt(() => note(url, 0))
    )

  const call = <A>(url: string, method: string, params: unknown, answer: Schema.Codec<A, any>) =>
    Effect.mapError(attempt(url, method, params, answer), ({ unavailable }) => unavailable)

  /**
   * Configured order; endpoints off the selected head come after the others, then endpoints that contradicted others,
   * then recently failed ones.
   */
  const unranked = options.urls.map((url, position) => ({ url, position, rank: 0 }))
  const ordered = Effect.map(Clock.monotonicTimeNanos, (now) => {
    // A single endpoint needs no ordering.
    if (unranked.length === 1) return unranked
    const rank = (url: string, position: number) =>
      (badUntil.get(url) ?? 0n) > now ? 3 : isDistrusted(position, now) ? 2 : unfit.has(position) ? 1 : 0
    return options.urls
      .map((url, position) => ({ url, position, rank: rank(url, position) }))
      .sort((a, b) => a.rank - b.rank || a.position - b.position)
  })

  const askWhich: Endpoints["askWhich"] = (method, params, answer) => {
    const round = Effect.map(ordered, (endpoints) =>
      endpoints.map(({ position, url }) => ({
        ask: Effect.map(attempt(url, method, params, answer), (said) => ({ answer: said, endpoint: position })),
        slow: setBad(url, penaltyMillis)
      }))
    )
    return askEndpoints(round, options.timeout)
  }

  const endpoints: Endpoints = {
    at: call,
    once: (method, params, answer) => Effect.flatMap(ordered, ([first]) => call(first!.url, method, params, answer)),
    ask: (method, params, answer) => Effect.map(askWhich(method, params, answer), ({ answer }) => answer),
    askWhich,
    setUnfit: (endpoints) => {
      unfit = endpoints
    },
    order: Effect.map(ordered, (endpoints) => endpoints.map(({ position }) => position)),
    distrust,
    distrusted
  }
  return endpoints
})
