// Client of the RPC of the network from which a fork begins: bounded in time and size. A request is retried only while
// the upstream reports that it is busy, by status or in the body: public nodes limit requests per second, and a fork
// sends many when it begins. A request without a response, or with an unreadable one, is `UpstreamFailed` and proves
// nothing about any entry. Its message contains neither the address, which may contain a key, nor the request.
import { Context, Data, Effect, Layer, Option, Schema } from "effect"
import { monotonicMillis } from "../../../../kernel/time/monotonicMillis.ts"
import { type HttpAnswered, type HttpCall, HttpCalls } from "../../../../kernel/platform/HttpCalls.ts"

/** The forked network could not be asked. */
export class UpstreamFailed extends Data.TaggedError("UpstreamFailed")<{ readonly message: string }> {}

/** A question that takes longer is not waited for, all times that it is asked together. */
const TIMEOUT_MILLIS = 10_000
/** Pauses after a busy response, unless it sets a shorter or longer one. */
const PAUSES_MILLIS = [250, 500, 1_000]
/** A longer pause is not waited for. */
const PAUSE_MILLIS_MAX = 2_000
/** Rate limits, and a gateway whose node is temporarily unavailable. */
const busyStatuses: ReadonlySet<number> = new Set([429, 502, 503, 504])
/** Rate-limit markers of gateways inside a response of HTTP 200: a code or a message. */
const busyCodes: ReadonlySet<number> = new Set([429, 503, -32_005, -32_029])
const busyWords = /rate.?limit|too many requests|limit (exceeded|reached)|queue limit|throttl|overloaded|try again/i
/** The latest ledger of a busy network comes with all of its transactions. */
const ANSWER_BYTES_MAX = 64 * 1024 * 1024
/** Maximum length in characters of a response that may only report a rate limit. */
const BUSY_CHARACTERS_MAX = 16_384
/** Maximum length of an upstream's own message in an error, in characters. */
const WORDS_MAX = 200

const Answer = Schema.Struct({
  result: Schema.optionalKey(Schema.Unknown),
  error: Schema.optionalKey(Schema.NullOr(Schema.Struct({ code: Schema.Number, message: Schema.String })))
})
const readAnswer = Schema.decodeUnknownOption(Schema.fromJsonString(Answer))

const failures = {
  timeout: "it did not answer in time",
  unreachable: "it was not reached",
  "too long": "its answer is too long"
}

export const upstreamFailed = (why: string): UpstreamFailed =>
  new UpstreamFailed({ message: `the forked network's RPC could not be asked: ${why}` })

/** True if the upstream reports that it is only busy. */
const isBusy = ({ body, status }: HttpAnswered): boolean => {
  if (busyStatuses.has(status)) return true
  if (body.length > BUSY_CHARACTERS_MAX) return false
  const error = Option.getOrUndefined(readAnswer(body))?.error ?? undefined
  return error !== undefined && (busyCodes.has(error.code) || busyWords.test(error.message))
}

/** How long to wait before asking again, in milliseconds; undefined to ask no more. */
const pauseOf = (said: HttpAnswered, round: number): number | undefined => {
  const pause = PAUSES_MILLIS[round]
  if (pause === undefined || !isBusy(said)) return undefined
  const { retryAfter } = said
  const asked = retryAfter !== undefined && /^[0-9]{1,6}$/.test(retryAfter) ? Number(retryAfter) * 1_000 : pause
  return asked <= PAUSE_MILLIS_MAX ? asked : undefined
}

/** One question, put again while the other side is busy, as often and as long as allowed. */
const post = Effect.fnUntraced(function* (call: Omit<HttpCall, "timeoutMillis">) {
  const http = yield* HttpCalls
  const end = (yield* monotonicMillis) + TIMEOUT_MILLIS
  for (let round = 0, left = TIMEOUT_MILLIS; ; round++) {
    const said = yield* http.post({ ...call, timeoutMillis: left })
    const pause = pauseOf(said, round)
    left = end - (yield* monotonicMillis) - (pause ?? 0)
    if (pause === undefined || left <= 0) return { ...said, asked: round === 0 ? "" : `, asked ${round + 1} times` }
    yield* Effect.sleep(pause)
  }
})

export class Upstream extends Context.Service<
  Upstream,
  {
    readonly ask: <A>(method: string, params: object, answer: Schema.Codec<A, any>) => Effect.Effect<A, UpstreamFailed>
  }
>()("tollkeeper/ledger-local/Upstream") {
  /** Asks at `url`. */
  static readonly layer = (url: string): Layer.Layer<Upstream, never, HttpCalls> =>
    Layer.effect(
      Upstream,
      Effect.gen(function* () {
        const http = yield* HttpCalls
        const ask = Effect.fnUntraced(function* <A>(method: string, params: object, answer: Schema.Codec<A, any>) {
          const call = {
            url,
            headers: { "content-type": "application/json" },
            body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
            bytesMax: ANSWER_BYTES_MAX
          }
          const said = yield* Effect.provideService(post(call), HttpCalls, http)
          if (said.status !== 200)
            return yield* upstreamFailed(`it answered ${method} with HTTP ${said.status}${said.asked}`)
          const parsed = yield* Effect.try({
            try: () => JSON.parse(said.body) as unknown,
            catch: () => "not JSON" as const
          })
          const { error, result } = yield* Schema.decodeUnknownEffect(Answer)(parsed)
          if (error !== undefined && error !== null)
            return yield* upstreamFailed(
              `it answered ${method} with error ${error.code}: ${error.message.slice(0, WORDS_MAX)}${said.asked}`
            )
          return yield* Schema.decodeUnknownEffect(answer)(result)
        })
        return Upstream.of({
          ask: (method, params, answer) =>
            Effect.mapError(ask(method, params, answer), (error) => {
              if (error === "not JSON") return upstreamFailed(`it answered ${method} with what is not JSON`)
              if (error._tag === "UpstreamFailed") return error
              if (error._tag === "CallFailed") return upstreamFailed(failures[error.reason])
              return upstreamFailed(`its answer to ${method} is not of the form that Stellar RPC gives`)
            })
        })
      })
    )
}
