// The well-known documents of origins, asked for once for all resources of one and kept for a while. Every request goes
// through `safeFetch`, on a leash (attacks 49).
import { Clock, Context, Deferred, Effect, Layer } from "effect"
import { type FetchRefused, safeFetch } from "../../../kernel/http/safeFetch.ts"
import { Outbound, type OutboundAnswer } from "../../../kernel/platform/Outbound.ts"
import { Config } from "../Config.ts"

const keptMax = 2_000
/** Bytes of documents that are kept, of all origins together. */
const keptBytesMax = 8_388_608

const nothing = new Uint8Array()

const agent = { "user-agent": "Tollkeeper/0.1 (catalog; asks for /.well-known/x402)", accept: "application/json" }

/** An origin's document as it was sent, since parsed it takes many times the room; or why there is none. */
export interface OriginDocument {
  readonly document: Uint8Array
  readonly detail: string
  readonly isLocal: boolean
}

interface Kept {
  readonly at: number
  readonly answer: Deferred.Deferred<OriginDocument>
  readonly bytes: number
}

/** Leaves out the oldest map entries until at most so many are left. */
export const forgetOldest = (map: Map<string, unknown>, max = keptMax): void => {
  if (map.size > max) map.delete(map.keys().next().value!)
}

export class OriginDocuments extends Context.Service<
  OriginDocuments,
  {
    /** One request to a stranger, within the settings' bounds. */
    readonly send: (url: URL, method: string) => Effect.Effect<OutboundAnswer, FetchRefused>
    readonly wellKnown: (origin: string) => Effect.Effect<OriginDocument>
  }
>()("tollkeeper/catalog/OriginDocuments") {
  static readonly layer = Layer.effect(
    OriginDocuments,
    Effect.gen(function* () {
      const config = yield* Config
      const outbound = yield* Outbound
      const kept = new Map<string, Kept>()
      const policy = {
        allowLocal: config.allowLocalOrigins,
        allowPlain: !config.requireHttpsOrigins || config.allowLocalOrigins,
        timeoutMillis: config.probeTimeoutMillis,
        bytesMax: config.probeBytesMax,
        redirectsMax: 2
      }
      const send = (url: URL, method: string) =>
        Effect.provideService(safeFetch(url, { method, headers: agent }, policy), Outbound, outbound)

      const weigh = (origin: string, bytes: number): void => {
        const mine = kept.get(origin)
        if (mine === undefined) return
        kept.set(origin, { ...mine, bytes })
        let all = 0
        for (const one of kept.values()) all += one.bytes
        for (const [oldest, one] of kept) {
          if (all <= keptBytesMax) break
          kept.delete(oldest)
          all -= one.bytes
        }
      }

      const ask = (origin: string) =>
        send(new URL("/.well-known/x402", origin), "GET").pipe(
          Effect.map(({ body, status }): OriginDocument => ({
            document: status === 200 ? body : nothing,
            detail: `well-known ${status}`,
            isLocal: false
          })),
          Effect.catch(({ reason }: FetchRefused) =>
            Effect.succeed<OriginDocument>({
              document: nothing,
              detail: `well-known ${reason}`,
              isLocal: reason === "blocked"
            })
          )
        )

      const wellKnown = Effect.fnUntraced(function* (origin: string) {
        const now = yield* Clock.currentTimeMillis
        const known = kept.get(origin)
        if (known !== undefined && now - known.at < config.probePauseSeconds * 1_000)
          return yield* Deferred.await(known.answer)
        // Resources of one origin come due together: whoever is first asks for all of them.
        const answer = Deferred.makeUnsafe<OriginDocument>()
        kept.set(origin, { at: now, answer, bytes: 0 })
        forgetOldest(kept)
        const unasked: OriginDocument = { document: nothing, detail: "well-known interrupted", isLocal: false }
        return yield* ask(origin).pipe(
          Effect.tap((said) => {
            weigh(origin, said.document.length)
            return Deferred.succeed(answer, said)
          }),
          Effect.ensuring(Deferred.succeed(answer, unasked))
        )
      })

      return OriginDocuments.of({ send, wellKnown })
    })
  )
}
