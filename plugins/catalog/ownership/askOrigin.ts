// Asks an origin about its resources: its well-known document first, once for all of them and kept for a while; then
// the live 402 of a resource that is declared for GET or HEAD. Nothing else is ever requested: no body method, no
// dynamic route, no tool is called. Every request goes through `safeFetch`, on a leash (attacks 49). Questions to one
// origin are counted, so that many listings under a stranger's name do not make us a flood.
import { Clock, Deferred, Effect } from "effect"
import { FetchRefused, safeFetch } from "../../../kernel/http/safeFetch.ts"
import { Outbound } from "../../../kernel/platform/Outbound.ts"
import type { CatalogValues } from "../Config.ts"
import type { Identity } from "../declaration/Declaration.ts"
import { type OriginWord, readJson, readLive402, readWellKnown } from "./OriginWire.ts"

export interface AskedResource {
  readonly identity: Identity
  /** HTTP methods declared; empty for MCP. */
  readonly methods: ReadonlyArray<string>
  readonly isDynamic: boolean
}

export interface Asked {
  readonly word: OriginWord
  /** For the operator: what was asked, and what came back. */
  readonly detail: string
  /** The origin's name leads inside; where that is not allowed, it cannot be listed. */
  readonly isLocal: boolean
}

const silence: OriginWord = { payTos: [], delisted: false }

const keptMax = 2_000
/** Bytes of documents that are kept, of all origins together. */
const keptBytesMax = 8_388_608
/** Live questions to one origin in a minute. */
const livePerMinuteMax = 20

const nothing = new Uint8Array()

const agent = { "user-agent": "Tollkeeper/0.1 (catalog; asks for /.well-known/x402)", accept: "application/json" }

/** An origin's document as it was sent, since parsed it takes many times the room; or why there is none. */
interface Said {
  readonly document: Uint8Array
  readonly detail: string
  readonly isLocal: boolean
}

interface Kept<A> {
  readonly at: number
  value: A
}

const forgetOldest = (map: Map<string, unknown>): void => {
  if (map.size > keptMax) map.delete(map.keys().next().value!)
}

/** `later` as the answer: the origin was asked enough for now. */
export const makeAskOrigin = (config: CatalogValues, outbound: Outbound["Service"]) => {
  const documents = new Map<string, Kept<Deferred.Deferred<Said>> & { readonly bytes: number }>()
  const live = new Map<string, Kept<number>>()
  const policy = {
    allowLocal: config.allowLocalOrigins,
    allowPlain: !config.requireHttpsOrigins || config.allowLocalOrigins,
    timeoutMillis: config.probeTimeoutMillis,
    bytesMax: config.probeBytesMax,
    redirectsMax: 2
  }
  const send = (url: URL, method: string) =>
    Effect.provideService(safeFetch(url, { method, headers: agent }, policy), Outbound, outbound)

  const keep = (origin: string, bytes: number): void => {
    const mine = documents.get(origin)
    if (mine === undefined) return
    documents.set(origin, { ...mine, bytes })
    let all = 0
    for (const one of documents.values()) all += one.bytes
    for (const [oldest, one] of documents) {
      if (all <= keptBytesMax) break
      documents.delete(oldest)
      all -= one.bytes
    }
  }

  const wellKnown = Effect.fnUntraced(function* (origin: string) {
    const now = yield* Clock.currentTimeMillis
    const known = documents.get(origin)
    if (known !== undefined && now - known.at < config.probePauseSeconds * 1_000)
      return yield* Deferred.await(known.value)
    // Resources of one origin come due together: whoever is first asks for all of them.
    const answer = Deferred.makeUnsafe<Said>()
    documents.set(origin, { at: now, value: answer, bytes: 0 })
    forgetOldest(documents)
    const ask = send(new URL("/.well-known/x402", origin), "GET").pipe(
      Effect.map(({ body, status }): Said => ({
        document: status === 200 ? body : nothing,
        detail: `well-known ${status}`,
        isLocal: false
      })),
      Effect.catch(({ reason }: FetchRefused) =>
        Effect.succeed<Said>({ document: nothing, detail: `well-known ${reason}`, isLocal: reason === "blocked" })
      )
    )
    const unasked: Said = { document: nothing, detail: "well-known interrupted", isLocal: false }
    return yield* ask.pipe(
      Effect.tap((said) => {
        keep(origin, said.document.length)
        return Deferred.succeed(answer, said)
      }),
      Effect.ensuring(Deferred.succeed(answer, unasked))
    )
  })

  const mayAskLive = Effect.fnUntraced(function* (origin: string) {
    const now = yield* Clock.currentTimeMillis
    const known = live.get(origin)
    if (known === undefined || now - known.at >= 60_000) {
      live.set(origin, { at: now, value: 1 })
      forgetOldest(live)
      return true
    }
    known.value += 1
    return known.value <= livePerMinuteMax
  })

  /** Where a resource is reached: itself, or what a symbolic name is said to mean. */
  const baseOf = ({ origin, resource }: Identity): string | undefined => {
    if (origin !== undefined) return origin
    const endpoint = config.resolvedMcpEndpoints[resource]
    return endpoint === undefined ? undefined : new URL(endpoint).origin
  }

  return Effect.fn("Catalog.askOrigin")(function* ({
    identity,
    isDynamic,
    methods
  }: AskedResource): Effect.fn.Return<Asked | "later"> {
    const base = baseOf(identity)
    if (base === undefined) return { word: silence, detail: "a symbolic name without an endpoint", isLocal: false }
    const { detail, document, isLocal } = yield* wellKnown(base)
    const word = readWellKnown(readJson(document), identity, base)
    if (word.delisted || word.payTos.length > 0 || isLocal) return { word, detail, isLocal }
    const method = ["GET", "HEAD"].find((one) => methods.includes(one))
    if (identity.type === "mcp" || method === undefined || isDynamic) return { word, detail, isLocal }
    if (!(yield* mayAskLive(base))) return "later"
    return yield* send(new URL(identity.resource), method).pipe(
      Effect.map((answer): Asked => ({
        word: readLive402(answer),
        detail: `${detail}, ${method} ${answer.status}`,
        isLocal: false
      })),
      Effect.catch((error: FetchRefused) =>
        Effect.succeed<Asked>({
          word: silence,
          detail: `${detail}, ${method} ${error.reason}`,
          isLocal: error.reason === "blocked"
        })
      )
    )
  })
}
