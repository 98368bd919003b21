// Resources that payments declared but that were not listed, because others had used up the daily quota of their
// origin. Their origins are probed, and the origins' offers are listed. The queue is bounded, for each origin and each
// payer; a hint that finds no place returns with the next payment.
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { reconciler } from "../../../kernel/actor/Actor.ts"
import { inTransaction } from "../../../kernel/database/Database.ts"
import { trustedMillis } from "../../../kernel/time/trustedTime.ts"
import { Config, documentBytesMax } from "../Config.ts"
import type { Identity } from "../declaration/Declaration.ts"
import { Changes } from "../store/Changes.ts"
import { FirstListings } from "../store/FirstListings.ts"
import { declaredText } from "../store/mergeDeclaration.ts"
import { Origins } from "./Origins.ts"

const waitingMax = 512
const perOriginMax = 32
const perPayerMax = 2
const concurrency = 4

interface Hint {
  readonly identity: Identity
  readonly method: string
  readonly payer: string
}

const keyOf = ({ resource, toolName, type }: Identity): string => `${type} ${resource} ${toolName}`

export class Hints extends Context.Service<
  Hints,
  {
    /** Asks for a probe of the resource's origin. Never waits. */
    readonly ask: (identity: Identity, method: string, payer: string) => Effect.Effect<void>
    /** Takes everything out of the queue. */
    readonly take: Effect.Effect<ReadonlyArray<Hint>>
    /** Calls back when the first hint enters an empty queue. */
    readonly onFirst: (received: Effect.Effect<void>) => Effect.Effect<void>
  }
>()("tollkeeper/catalog/Hints") {
  static readonly layer = Layer.sync(Hints, () => {
    const waiting = new Map<string, Hint>()
    let first: Effect.Effect<void> = Effect.void
    const count = (same: (hint: Hint) => boolean): number => [...waiting.values()].filter(same).length
    return Hints.of({
      ask: (identity, method, payer) =>
        Effect.suspend(() => {
          if (waiting.size >= waitingMax || waiting.has(keyOf(identity))) return Effect.void
          if (count((hint) => hint.payer === payer) >= perPayerMax) return Effect.void
          if (count((hint) => hint.identity.origin === identity.origin) >= perOriginMax) return Effect.void
          waiting.set(keyOf(identity), { identity, method, payer })
          return waiting.size === 1 ? first : Effect.void
        }),
      onFirst: (observed) => Effect.sync(() => void (first = observed)),
      take: Effect.sync(() => {
        const hints = [...waiting.values()]
        waiting.clear()
        return hints
      })
    })
  })
}

/** Follows hints for as long as the Scope lives. */
export const startHints = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const hints = yield* Hints
  const origins = yield* Origins
  const config = yield* Config
  const { listOrigin } = yield* FirstListings
  const { moved } = yield* Changes

  const follow = Effect.fnUntraced(function* ({ identity, method }: Hint) {
    const methods = method === "" ? [] : [method]
    const answer = yield* origins.ask({ identity, methods, isDynamic: identity.resource.includes("/:"), share: "free" })
    if (answer === "later" || answer.word.delisted || answer.isLocal) return
    const words = declaredText(answer.declarations, "origin", documentBytesMax(config))
    if (words === undefined) return
    const listing = { words: { ...words, identity }, payTos: answer.word.payTos, isPaid: true }
    const now = new Date(yield* trustedMillis)
    const listed = yield* Effect.provideService(inTransaction(listOrigin(listing, now)), SqlClient.SqlClient, sql)
    if (listed === "listed") yield* moved
  })

  const turn = Effect.gen(function* () {
    yield* Effect.forEach(
      yield* hints.take,
      (hint) => Effect.catch(follow(hint), (error) => Effect.logWarning("a hint could not be followed", error)),
      { concurrency, discard: true }
    )
  })

  const { wake } = yield* reconciler({ id: "hints", every: "1 minute", gather: "1 second", turn })
  yield* hints.onFirst(wake)
})
