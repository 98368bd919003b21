// The documents of origins, each requested once for all resources of one and cached; later it is requested
// conditionally. Every request goes through `safeFetch`, within bounds (attacks 49). A host that cannot be reached
// counts as dead only after an authoritative answer and while a canary, another outside host, answers.
import { Context, Deferred, Effect, Layer } from "effect"
import { monotonicMillis } from "../../../kernel/time/monotonicMillis.ts"
import { type FetchRefused, safeFetch } from "../../../kernel/http/safeFetch.ts"
import { LruCache } from "../../../kernel/cache/LruCache.ts"
import { makeCanary } from "./canary.ts"
import { Outbound, type OutboundAnswer } from "../../../kernel/platform/Outbound.ts"
import { Config } from "../Config.ts"

export const originsMax = 2_000
/** Bytes of cached documents, of all origins together. */
const keptBytesMax = 8_388_608
const tagLengthMax = 256

const nothing = new Uint8Array()

const agent = { "user-agent": "Tollkeeper/0.1 (catalog; asks for /.well-known/x402)", accept: "application/json" }

/** An origin's document as bytes, because the parsed form takes many times the memory; or why it is missing. */
export interface OriginDocument {
  readonly document: Uint8Array
  readonly detail: string
  readonly isLocal: boolean
  /** The origin does not exist, or refuses connections, by an authoritative answer. */
  readonly isGone?: boolean
  /** The entity tag it came with. */
  readonly tag?: string
}

interface Kept {
  readonly at: number
  readonly answer: Deferred.Deferred<OriginDocument>
  /** The last answer; its size counts against the bound. */
  readonly said: OriginDocument
}

/** Caches an answer, and evicts the least recently used until there is room for it. */
const weigh = (kept: LruCache<string, Kept>, key: string, said: OriginDocument): void => {
  const mine = kept.peek(key)
  if (mine === undefined) return
  kept.set(key, { ...mine, said })
  let all = 0
  for (const [, one] of kept.entries()) all += one.said.document.length
  for (const [oldest, one] of kept.entries()) {
    if (all <= keptBytesMax) break
    kept.delete(oldest)
    all -= one.said.document.length
  }
}

/** Limits of one request to an origin, and of its response. */
const probeMillisMax = 5_000
const probeBytesMax = 262_144

interface MoreOfRequest {
  readonly headers: Readonly<Record<string, string>>
  readonly body?: Uint8Array
}

/** Requests to outside hosts; each answer shows the canary that outside hosts can be reached. */
const makeRequests = (config: Config["Service"], outbound: Outbound["Service"]) => {
  const policy = {
    allowLocal: config.allowLocalOrigins,
    allowPlain: !config.requireHttpsOrigins || config.allowLocalOrigins,
    timeoutMillis: probeMillisMax,
    bytesMax: probeBytesMax,
    redirectsMax: 2
  }
  const sent = (url: URL, method: string, headers: Readonly<Record<string, string>>, body?: Uint8Array) =>
    Effect.provideService(
      safeFetch(url, { method, headers, ...(body === undefined ? {} : { body }) }, policy),
      Outbound,
      outbound
    )
  const canary = makeCanary((url) => sent(url, "HEAD", agent), config.canaryUrls)

  const request = (...asked: Parameters<typeof sent>) =>
    Effect.tap(sent(...asked), () => Effect.map(monotonicMillis, (now) => canary.answered(asked[0], now)))

  const isGone = (url: URL, { isAuthoritative }: FetchRefused) =>
    isAuthoritative === true ? canary.isOutsideSeen(url) : Effect.succeed(false)

  return { isGone, request }
}

export class OriginDocuments extends Context.Service<
  OriginDocuments,
  {
    /** One request to an untrusted host, within the settings' bounds. */
    readonly send: (url: URL, method: string, more?: MoreOfRequest) => Effect.Effect<OutboundAnswer, FetchRefused>
    /** True if the failure proves that the origin is dead: an authoritative answer while other hosts can be reached. */
    readonly isGone: (url: URL, refused: FetchRefused) => Effect.Effect<boolean>
    /** `/.well-known/x402`. */
    readonly wellKnown: (origin: string) => Effect.Effect<OriginDocument>
    readonly manifest: (origin: string) => Effect.Effect<OriginDocument>
    readonly openApi: (origin: string) => Effect.Effect<OriginDocument>
  }
>()("tollkeeper/catalog/OriginDocuments") {
  static readonly layer = Layer.effect(
    OriginDocuments,
    Effect.gen(function* () {
      const config = yield* Config
      const outbound = yield* Outbound
      const { isGone, request } = makeRequests(config, outbound)
      const kept = new LruCache<string, Kept>({ name: "origin-documents", capacity: originsMax })
      const ask = (url: URL, word: string, before: OriginDocument) =>
        request(url, "GET", before.tag === undefined ? agent : { ...agent, "if-none-match": before.tag }).pipe(
          Effect.map(({ body, headers, status }): OriginDocument => {
            if (status === 304 && before.tag !== undefined) return { ...before, detail: `${word} 304` }
            const tag = headers["etag"]
            const isTagged = status === 200 && tag !== undefined && tag.length <= tagLengthMax
            return {
              document: status === 200 ? body : nothing,
              detail: `${word} ${status}`,
              isLocal: false,
              ...(isTagged ? { tag } : {})
            }
          }),
          Effect.catch((refused: FetchRefused) =>
            Effect.map(isGone(url, refused), (gone): OriginDocument => ({
              document: nothing,
              detail: `${word} ${refused.reason}`,
              isLocal: refused.reason === "blocked",
              ...(gone ? { isGone: true } : {})
            }))
          )
        )

      const documentAt = (path: string, word: string) =>
        Effect.fnUntraced(function* (origin: string) {
          const now = yield* monotonicMillis
          const key = `${path} ${origin}`
          const known = kept.get(key, ({ at }) => now - at < config.probePauseSeconds * 1_000)
          if (known !== undefined) return yield* Deferred.await(known.answer)
          // Resources of one origin come due together: the first one requests for all of them.
          const answer = Deferred.makeUnsafe<OriginDocument>()
          const unasked: OriginDocument = { document: nothing, detail: `${word} interrupted`, isLocal: false }
          const before = kept.peek(key)?.said ?? unasked
          kept.set(key, { at: now, answer, said: before })
          return yield* ask(new URL(path, origin), word, before).pipe(
            Effect.tap((said) => {
              weigh(kept, key, said)
              return Deferred.succeed(answer, said)
            }),
            Effect.ensuring(Deferred.succeed(answer, unasked))
          )
        })

      return OriginDocuments.of({
        isGone,
        send: (url, method, more) => request(url, method, { ...agent, ...more?.headers }, more?.body),
        wellKnown: documentAt("/.well-known/x402", "well-known"),
        manifest: documentAt("/.well-known/x402.json", "manifest"),
        openApi: documentAt("/openapi.json", "openapi")
      })
    })
  )
}
