// Asks an origin about its resources: its well-known document first, once for all of them and kept for a while; then
// the live 402 of a resource that is declared for GET or HEAD. Nothing else is ever requested: no body method, no
// dynamic route, no tool is called. Questions to one origin are counted, so that many listings under a stranger's name
// do not make us a flood.
import { Clock, Context, Effect, Layer } from "effect"
import type { FetchRefused } from "../../../kernel/http/safeFetch.ts"
import { Config } from "../Config.ts"
import type { Identity } from "../declaration/Declaration.ts"
import { forgetOldest, OriginDocuments } from "./OriginDocuments.ts"
import { type OriginWord, readJson, readLive402, readWellKnown } from "./OriginWire.ts"

export interface AskedResource {
  readonly identity: Identity
  /** HTTP methods declared; empty for MCP. */
  readonly methods: ReadonlyArray<string>
  readonly isDynamic: boolean
}

export interface OriginAnswer {
  readonly word: OriginWord
  /** For the operator: what was asked, and what came back. */
  readonly detail: string
  /** The origin's name leads inside; where that is not allowed, it cannot be listed. */
  readonly isLocal: boolean
}

const silence: OriginWord = { payTos: [], delisted: false }

/** Live questions to one origin in a minute. */
const livePerMinuteMax = 20

export class Origins extends Context.Service<
  Origins,
  {
    /** `later`: the origin was asked enough for now. */
    readonly ask: (resource: AskedResource) => Effect.Effect<OriginAnswer | "later">
  }
>()("tollkeeper/catalog/Origins") {
  static readonly layer = Layer.effect(
    Origins,
    Effect.gen(function* () {
      const config = yield* Config
      const { send, wellKnown } = yield* OriginDocuments
      const live = new Map<string, { readonly at: number; count: number }>()

      const mayAskLive = Effect.fnUntraced(function* (origin: string) {
        const now = yield* Clock.currentTimeMillis
        const known = live.get(origin)
        if (known === undefined || now - known.at >= 60_000) {
          live.set(origin, { at: now, count: 1 })
          forgetOldest(live)
          return true
        }
        known.count += 1
        return known.count <= livePerMinuteMax
      })

      /** Where a resource is reached: itself, or what a symbolic name is said to mean. */
      const baseOf = ({ origin, resource }: Identity): string | undefined => {
        if (origin !== undefined) return origin
        const endpoint = config.resolvedMcpEndpoints[resource]
        return endpoint === undefined ? undefined : new URL(endpoint).origin
      }

      const ask = Effect.fn("Catalog.askOrigin")(function* ({
        identity,
        isDynamic,
        methods
      }: AskedResource): Effect.fn.Return<OriginAnswer | "later"> {
        const base = baseOf(identity)
        if (base === undefined) return { word: silence, detail: "a symbolic name without an endpoint", isLocal: false }
        const { detail, document, isLocal } = yield* wellKnown(base)
        const word = readWellKnown(readJson(document), identity, base)
        if (word.delisted || word.payTos.length > 0 || isLocal) return { word, detail, isLocal }
        const method = ["GET", "HEAD"].find((one) => methods.includes(one))
        if (identity.type === "mcp" || method === undefined || isDynamic) return { word, detail, isLocal }
        if (!(yield* mayAskLive(base))) return "later"
        return yield* send(new URL(identity.resource), method).pipe(
          Effect.map((answer): OriginAnswer => ({
            word: readLive402(answer),
            detail: `${detail}, ${method} ${answer.status}`,
            isLocal: false
          })),
          Effect.catch(({ reason }: FetchRefused) =>
            Effect.succeed<OriginAnswer>({
              word: silence,
              detail: `${detail}, ${method} ${reason}`,
              isLocal: reason === "blocked"
            })
          )
        )
      })

      return Origins.of({ ask })
    })
  )
}
