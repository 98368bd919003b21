// JSON-RPC over HTTP, bounded: one deadline a call, one limit for the answer's bytes, ids checked, errors typed. Reads
// are repeated and move on to the next configured endpoint (`askEndpoints.ts`); an endpoint that failed or was slow is
// asked last for a while. A submission is sent to one endpoint once. An endpoint is asked nothing before it has said
// that it serves the right network: another network's word would be a verdict about nothing. Nothing of a request or an
// answer, of an address or a header is logged or put into an error: they may hold signed envelopes and an operator's
// keys.
import { Clock, Data, Duration, Effect, Ref, Result, Schema, Stream } from "effect"
import { FetchHttpClient, Headers, HttpClient, HttpClientRequest, HttpClientResponse } from "effect/http"
import { headersFor, type RpcHeader } from "../config/rpcHeaders.ts"
import { measure } from "../telemetry/Measure.ts"
import { ledger } from "../telemetry/metrics.ts"
import { currentTraceParent } from "../TraceParent.ts"
import { askEndpoints, CallFault } from "./askEndpoints.ts"
import { LedgerUnavailable } from "./LedgerUnavailable.ts"
import { GetNetwork, JsonRpcAnswer } from "./LedgerWire.ts"
import { spanned } from "../spanned.ts"

/** How long a failed endpoint stands behind the others. */
const penalty = Duration.seconds(10)
/** An answer longer than this is not read. */
const answerBytesMax = 8 * 1_048_576

/** The endpoint answered, and its answer is an error of the protocol. Asking elsewhere might differ. */
class RpcError extends Data.TaggedError("RpcError")<{ readonly code: number; readonly message: string }> {}

/** The endpoint, or whoever stands before it, refused to work just now. */
class HttpRefused extends Data.TaggedError("HttpRefused")<{
  readonly status: number
  readonly retryAfterMillis: number
}> {}

export interface Endpoints {
  /** Asks one endpoint after another until one gives a well-formed answer. */
  readonly ask: <A>(
    method: string,
    params: unknown,
    answer: Schema.Codec<A, any>
  ) => Effect.Effect<A, LedgerUnavailable>
  /** The same, with the place of the endpoint that answered. */
  readonly askWhich: <A>(
    method: string,
    params: unknown,
    answer: Schema.Codec<A, any>
  ) => Effect.Effect<{ readonly answer: A; readonly endpoint: number }, LedgerUnavailable>
  /** Asks the preferred endpoint once. */
  readonly once: <A>(
    method: string,
    params: unknown,
    answer: Schema.Codec<A, any>
  ) => Effect.Effect<A, LedgerUnavailable>
  /** Asks one given endpoint once. */
  readonly at: <A>(
    url: string,
    method: string,
    params: unknown,
    answer: Schema.Codec<A, any>
  ) => Effect.Effect<A, LedgerUnavailable>
  /** Has these, by their places, asked after the others until it is said anew. */
  readonly setUnfit: (endpoints: ReadonlySet<number>) => void
}

export interface EndpointOptions {
  /** At least one; the first is preferred. */
  readonly urls: ReadonlyArray<string>
  /** Deadline of one call. */
  readonly timeout: Duration.Duration
  /** Of the network that an endpoint must serve to be asked anything; absent asks whoever answers. */
  readonly passphrase?: string
  readonly headers?: ReadonlyArray<RpcHeader> | undefined
}

/** Reads a body up to a limit. */
const readBounded = (response: HttpClientResponse.HttpClientResponse) =>
  Stream.runFoldEffect(
    response.stream,
    () => ({ chunks: [] as Array<Uint8Array>, bytes: 0 }),
    (read, chunk) => {
      const bytes = read.bytes + chunk.length
      read.chunks.push(chunk)
      return bytes > answerBytesMax
        ? Effect.fail(new RpcError({ code: 0, message: "the answer is too long" }))
        : Effect.succeed({ chunks: read.chunks, bytes })
    }
  ).pipe(
    Effect.map(({ bytes, chunks }) => {
      const whole = new Uint8Array(bytes)
      let at = 0
      for (const chunk of chunks) {
        whole.set(chunk, at)
        at += chunk.length
      }
      return new TextDecoder().decode(whole)
    })
  )

const reasonOf = (error: unknown): string =>
  error instanceof RpcError
    ? `error ${error.code}: ${error.message.slice(0, 200)}`
    : error instanceof HttpRefused
      ? `HTTP ${error.status}`
      : typeof error === "object" && error !== null && "_tag" in error
        ? String(error._tag)
        : "failed"

/** The pause that a refusal asks for, milliseconds; none when it names none that can be read. */
const retryAfterOf = ({ headers }: HttpClientResponse.HttpClientResponse) =>
  Effect.map(Clock.currentTimeMillis, (now) => {
    const named = headers["retry-after"]
    const read = named === undefined ? undefined : Headers.parseRetryAfter(named)
    return read === undefined || Result.isFailure(read)
      ? 0
      : Math.max(0, Duration.toMillis(Headers.retryAfterDelay(read.success, now)))
  })

/** One question to one endpoint, and its answer as far as it is one to this question. */
const makeExchange = Effect.fnUntraced(function* (headers: ReadonlyArray<RpcHeader>) {
  const client = yield* HttpClient.HttpClient
  const nextId = yield* Ref.make(0)
  const decodeEnvelope = Schema.decodeUnknownEffect(JsonRpcAnswer)
  return Effect.fnUntraced(function* <A>(url: string, method: string, params: unknown, answer: Schema.Codec<A, any>) {
    const id = yield* Ref.updateAndGet(nextId, (n) => n + 1)
    yield* measure(ledger.rpcCalls, 1, { method })
    const traceparent = yield* currentTraceParent
    const request = HttpClientRequest.post(url).pipe(
      HttpClientRequest.bodyJsonUnsafe({ jsonrpc: "2.0", id, method, params }),
      HttpClientRequest.setHeaders({
        ...headersFor(headers, url),
        ...(traceparent === undefined ? {} : { traceparent })
      })
    )
    // The client's own span would name the endpoint's address, which may hold an operator's key.
    const response = yield* client.execute(request).pipe(
      Effect.provideService(HttpClient.TracerDisabledWhen, () => true),
      // Another address than the operator's would hear the operator's keys.
      Effect.provideService(FetchHttpClient.RequestInit, { redirect: "manual" })
    )
    if (response.status === 429 || response.status >= 500) {
      yield* Effect.ignore(readBounded(response))
      return yield* new HttpRefused({ status: response.status, retryAfterMillis: yield* retryAfterOf(response) })
    }
    const text = yield* readBounded(response)
    const parsed = yield* Effect.try({
      try: () => JSON.parse(text) as unknown,
      catch: () => new RpcError({ code: response.status, message: "the answer is not JSON" })
    })
    const envelope = yield* decodeEnvelope(parsed)
    if (envelope.error) return yield* new RpcError(envelope.error)
    if (envelope.id !== id) return yield* new RpcError({ code: 0, message: "the answer has another id" })
    return yield* Schema.decodeUnknownEffect(answer)(envelope.result)
  })
})

export const makeEndpoints = Effect.fnUntraced(function* (options: EndpointOptions) {
  const badUntil = new Map<string, bigint>()
  let unfit: ReadonlySet<number> = new Set()
  /** Endpoints that have named the right network. */
  const admitted = new Set<string>()
  const exchange = yield* makeExchange(options.headers ?? [])

  const admit = Effect.fnUntraced(function* (url: string) {
    if (options.passphrase === undefined || admitted.has(url)) return
    const { passphrase } = yield* exchange(url, "getNetwork", undefined, GetNetwork)
    if (passphrase !== options.passphrase)
      return yield* new RpcError({ code: 0, message: "the endpoint serves another network" })
    admitted.add(url)
  })

  const setBad = (url: string, millis: number) =>
    Effect.map(Clock.monotonicTimeNanos, (now) => void badUntil.set(url, now + BigInt(Math.ceil(millis)) * 1_000_000n))
  const penaltyMillis = Duration.toMillis(penalty)

  /** One endpoint, once. */
  const attempt = <A>(url: string, method: string, params: unknown, answer: Schema.Codec<A, any>) =>
    Effect.andThen(admit(url), exchange(url, method, params, answer)).pipe(
      Effect.timeout(options.timeout),
      spanned(`ledger.${method}`, { kind: "client", attributes: { "rpc.method": method } }),
      Effect.tapError(() => setBad(url, penaltyMillis)),
      Effect.tap(() => Effect.sync(() => badUntil.delete(url))),
      Effect.mapError(
        (error) =>
          new CallFault({
            unavailable: new LedgerUnavailable({ operation: method, message: reasonOf(error) }),
            isPassing: error instanceof HttpRefused,
            retryAfterMillis: error instanceof HttpRefused ? error.retryAfterMillis : 0
          })
      )
    )

  const call = <A>(url: string, method: string, params: unknown, answer: Schema.Codec<A, any>) =>
    Effect.mapError(attempt(url, method, params, answer), ({ unavailable }) => unavailable)

  /** Configured order; those whose word is not the ledger's after the others, those that failed lately last. */
  const ordered = Effect.map(Clock.monotonicTimeNanos, (now) => {
    const rank = (url: string, place: number) => ((badUntil.get(url) ?? 0n) > now ? 2 : unfit.has(place) ? 1 : 0)
    return options.urls
      .map((url, place) => ({ url, place, rank: rank(url, place) }))
      .sort((a, b) => a.rank - b.rank || a.place - b.place)
  })

  const askWhich: Endpoints["askWhich"] = (method, params, answer) => {
    const round = Effect.map(ordered, (endpoints) =>
      endpoints.map(({ place, url }) => ({
        ask: Effect.map(attempt(url, method, params, answer), (said) => ({ answer: said, endpoint: place })),
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
    }
  }
  return endpoints
})
