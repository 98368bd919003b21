// Questions to the RPC of the network that a fork begins from: bounded in time and size, each asked once, but where too
// many were asked: public nodes allow so many a second, and a fork asks many when it begins. What is not answered, or
// answered with what cannot be read, is `UpstreamFailed`, and says nothing about any entry. Neither the address, which
// may hold a key, nor what was asked stands in it.
import { Context, Data, Effect, Layer, Schema } from "effect"
import { type HttpAnswered, HttpCalls } from "../../../../kernel/platform/HttpCalls.ts"

/** The forked network could not be asked. */
export class UpstreamFailed extends Data.TaggedError("UpstreamFailed")<{ readonly message: string }> {}

/** A question that takes longer is not waited for. */
const TIMEOUT_MILLIS = 10_000
/** Pauses after an answer that too many questions were asked, where it names no shorter or longer one. */
const PAUSES_MILLIS = [250, 500, 1_000]
/** A longer pause is not waited for. */
const PAUSE_MILLIS_MAX = 2_000
/** The latest ledger of a busy network comes with all of its transactions. */
const ANSWER_BYTES_MAX = 64 * 1024 * 1024
/** Characters of an upstream's own words that are told. */
const WORDS_MAX = 200

const Answer = Schema.Struct({
  result: Schema.optionalKey(Schema.Unknown),
  error: Schema.optionalKey(Schema.Struct({ code: Schema.Number, message: Schema.String }))
})

const faults = {
  timeout: "it did not answer in time",
  unreachable: "it was not reached",
  "too long": "its answer is too long"
}

export const upstreamFailed = (why: string): UpstreamFailed =>
  new UpstreamFailed({ message: `the forked network's RPC could not be asked: ${why}` })

/** How long to wait before asking again, in milliseconds; undefined to ask no more. */
const pauseOf = ({ retryAfter, status }: HttpAnswered, round: number): number | undefined => {
  const pause = PAUSES_MILLIS[round]
  if (status !== 429 || pause === undefined) return undefined
  const asked = retryAfter !== undefined && /^[0-9]{1,6}$/.test(retryAfter) ? Number(retryAfter) * 1_000 : pause
  return asked <= PAUSE_MILLIS_MAX ? asked : undefined
}

export class Upstream extends Context.Service<
  Upstream,
  {
    /** The answer to one question, as it is expected to be. */
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
            timeoutMillis: TIMEOUT_MILLIS,
            bytesMax: ANSWER_BYTES_MAX
          }
          let said = yield* http.post(call)
          for (let round = 0; ; round++) {
            const pause = pauseOf(said, round)
            if (pause === undefined) break
            yield* Effect.sleep(pause)
            said = yield* http.post(call)
          }
          if (said.status !== 200) return yield* upstreamFailed(`it answered ${method} with HTTP ${said.status}`)
          const parsed = yield* Effect.try({
            try: () => JSON.parse(said.body) as unknown,
            catch: () => "not JSON" as const
          })
          const { error, result } = yield* Schema.decodeUnknownEffect(Answer)(parsed)
          if (error !== undefined)
            return yield* upstreamFailed(
              `it answered ${method} with error ${error.code}: ${error.message.slice(0, WORDS_MAX)}`
            )
          return yield* Schema.decodeUnknownEffect(answer)(result)
        })
        return Upstream.of({
          ask: (method, params, answer) =>
            Effect.mapError(ask(method, params, answer), (error) => {
              if (error === "not JSON") return upstreamFailed(`it answered ${method} with what is not JSON`)
              if (error._tag === "UpstreamFailed") return error
              if (error._tag === "CallFailed") return upstreamFailed(faults[error.reason])
              return upstreamFailed(`its answer to ${method} is not of the form that Stellar RPC gives`)
            })
        })
      })
    )
}
