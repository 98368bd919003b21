// JSON-RPC over HTTP, bounded: one deadline a call, one limit for the answer's bytes, ids checked, errors typed. Reads
// move on to the next configured endpoint when one fails; an endpoint that failed is asked last for a while. A
// submission is sent to one endpoint once. An endpoint is asked nothing before it has said that it serves the right
// network: another network's word would be a verdict about nothing. Nothing of a request or an answer is logged or put
// into an error: both may hold signed envelopes.
import { Clock, Data, Duration, Effect, Metric, Ref, Schema, Stream } from "effect"
import { HttpClient, HttpClientRequest, HttpClientResponse } from "effect/http"
import { currentTraceParent } from "../TraceParent.ts"
import { LedgerUnavailable } from "./LedgerUnavailable.ts"
import { GetNetwork, JsonRpcAnswer } from "./LedgerWire.ts"

/** How long a failed endpoint stands behind the others. */
const penalty = Duration.seconds(10)
/** An answer longer than this is not read. */
const answerBytesMax = 8 * 1_048_576

export const callsTotal = Metric.counter("tollkeeper_ledger_rpc_calls_total", {
  description: "Calls to the ledger's RPC by method, counted when they are sent.",
  incremental: true
})

/** The endpoint answered, and its answer is an error of the protocol. Asking elsewhere might differ. */
class RpcError extends Data.TaggedError("RpcError")<{ readonly code: number; readonly message: string }> {}

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
    : typeof error === "object" && error !== null && "_tag" in error
      ? String(error._tag)
      : "failed"

/** One question to one endpoint, and its answer as far as it is one to this question. */
const makeExchange = Effect.gen(function* () {
  const client = yield* HttpClient.HttpClient
  const nextId = yield* Ref.make(0)
  const decodeEnvelope = Schema.decodeUnknownEffect(JsonRpcAnswer)
  return Effect.fnUntraced(function* <A>(url: string, method: string, params: unknown, answer: Schema.Codec<A, any>) {
    const id = yield* Ref.updateAndGet(nextId, (n) => n + 1)
    yield* Metric.update(Metric.withAttributes(callsTotal, { method }), 1)
    const traceparent = yield* currentTraceParent
    const request = HttpClientRequest.post(url).pipe(
      HttpClientRequest.bodyJsonUnsafe({ jsonrpc: "2.0", id, method, params }),
      HttpClientRequest.setHeaders(traceparent === undefined ? {} : { traceparent })
    )
    // The client's own span would name the endpoint's address, which may hold an operator's key.
    const response = yield* client
      .execute(request)
      .pipe(Effect.provideService(HttpClient.TracerDisabledWhen, () => true))
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
  const exchange = yield* makeExchange

  const admit = Effect.fnUntraced(function* (url: string) {
    if (options.passphrase === undefined || admitted.has(url)) return
    const { passphrase } = yield* exchange(url, "getNetwork", undefined, GetNetwork)
    if (passphrase !== options.passphrase)
      return yield* new RpcError({ code: 0, message: "the endpoint serves another network" })
    admitted.add(url)
  })

  const call = <A>(url: string, method: string, params: unknown, answer: Schema.Codec<A, any>) =>
    Effect.andThen(admit(url), exchange(url, method, params, answer)).pipe(
      Effect.timeout(options.timeout),
      Effect.withSpan(`ledger.${method}`, { kind: "client", attributes: { "rpc.method": method } }),
      Effect.tapError(() =>
        Effect.flatMap(Clock.monotonicTimeNanos, (now) =>
          Effect.sync(() => badUntil.set(url, now + BigInt(Duration.toMillis(penalty)) * 1_000_000n))
        )
      ),
      Effect.tap(() => Effect.sync(() => badUntil.delete(url))),
      Effect.mapError((error) => new LedgerUnavailable({ operation: method, message: reasonOf(error) }))
    )

  /** Configured order; those whose word is not the ledger's after the others, those that failed lately last. */
  const ordered = Effect.map(Clock.monotonicTimeNanos, (now) => {
    const rank = (url: string, place: number) => ((badUntil.get(url) ?? 0n) > now ? 2 : unfit.has(place) ? 1 : 0)
    return options.urls
      .map((url, place) => ({ url, place, rank: rank(url, place) }))
      .sort((a, b) => a.rank - b.rank || a.place - b.place)
  })

  const askWhich: Endpoints["askWhich"] = (method, params, answer) => {
    const at = ({ place, url }: { readonly url: string; readonly place: number }) =>
      Effect.map(call(url, method, params, answer), (said) => ({ answer: said, endpoint: place }))
    return Effect.flatMap(ordered, ([first, ...others]) =>
      others.reduce((asked, other) => Effect.catch(asked, () => at(other)), at(first!))
    )
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
