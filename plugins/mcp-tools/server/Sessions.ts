// The sessions of the HTTP transports. A session belongs to the caller that opened it: its id is 128 random bits, and
// another caller's request with the id finds no session. The number of sessions is bounded in total and per caller. An
// idle session ends after a long time, an unused one after a minute. A caller at its limit loses its own oldest session
// without a call in progress, and never another caller's. All sessions end with the Scope.
import type { Server } from "@modelcontextprotocol/server"
import { Context, Effect, Layer } from "effect"
import { Hex } from "effect/encoding"
import { monotonicMillis } from "../../../kernel/time/monotonicMillis.ts"
import { Crypto } from "../../../kernel/platform/Crypto.ts"
import { Config, type HttpValues } from "../Config.ts"
import { Calls } from "./Calls.ts"

interface Session<T> {
  readonly id: string
  readonly principal: string
  readonly server: Server
  readonly transport: T
}

interface Held<T> extends Session<T> {
  usedAt: number
  /** True until the first request after the initialization. */
  isUnused: boolean
}

/** Whether this caller may open a session; if not, the estimated time until it may. */
type Capacity = { readonly isFree: true } | { readonly isFree: false; readonly retryAfterSeconds: number }

interface SessionTable<T> {
  /** Makes room for one more session of this caller. A caller at its limit loses its own oldest idle session. */
  readonly makeRoom: (principal: string) => Effect.Effect<Capacity>
  readonly newId: () => string
  readonly add: (session: Session<T>) => Effect.Effect<void>
  readonly find: (id: string, principal: string) => Effect.Effect<Session<T> | undefined>
  readonly remove: (id: string) => void
}

/** A session ends if it was not used for this long; a session that was never used, after a minute. */
const idleMillis = 3_600_000
const unusedMillis = 60_000

const close = ({ server }: Session<unknown>) => Effect.ignore(Effect.tryPromise(() => server.close()))

/** `held` is in the order of last use. `isIdle`: the session may be ended to make room for its own caller. */
const tableOver = <T>(
  held: Map<string, Held<T>>,
  crypto: Crypto["Service"],
  http: HttpValues,
  isIdle: (id: string) => boolean
): SessionTable<T> => {
  const endOf = ({ isUnused, usedAt }: Held<T>) => usedAt + (isUnused ? unusedMillis : idleMillis)
  const end = (session: Held<T>) => {
    held.delete(session.id)
    return close(session)
  }
  const of = (principal: string) => [...held.values()].filter((session) => session.principal === principal)
  /** Seconds until the first of them expires. */
  const waitFor = (sessions: ReadonlyArray<Held<T>>, now: number): Capacity => ({
    isFree: false,
    retryAfterSeconds: Math.max(1, Math.ceil((Math.min(...sessions.map(endOf)) - now) / 1_000))
  })
  return {
    makeRoom: Effect.fnUntraced(function* (principal: string) {
      const now = yield* monotonicMillis
      for (const session of [...held.values()]) if (now > endOf(session) && isIdle(session.id)) yield* end(session)
      const isFull = held.size >= http.sessionsMax
      if (!isFull && of(principal).length < http.sessionsPerCallerMax) return { isFree: true } as Capacity
      const oldest = of(principal).find(({ id }) => isIdle(id))
      if (oldest === undefined) return waitFor(isFull ? [...held.values()] : of(principal), now)
      yield* end(oldest)
      return { isFree: true } as Capacity
    }),
    newId: () => Hex.encode(crypto.randomBytes(16)),
    add: (session) =>
      Effect.map(monotonicMillis, (now) => {
        held.set(session.id, { ...session, usedAt: now, isUnused: true })
      }),
    find: Effect.fnUntraced(function* (id, principal) {
      const now = yield* monotonicMillis
      const session = held.get(id)
      if (session === undefined || session.principal !== principal) return undefined
      if (now > endOf(session) && isIdle(id)) {
        yield* end(session)
        return undefined
      }
      session.usedAt = now
      session.isUnused = false
      held.delete(id)
      held.set(id, session)
      return session
    }),
    remove: (id) => void held.delete(id)
  }
}

export class Sessions extends Context.Service<
  Sessions,
  {
    /** `staysOpen`: a session is in use as long as its stream is open, and is not ended for another. */
    readonly table: <T>(options?: { readonly staysOpen: boolean }) => SessionTable<T>
    /** Ends every session and with it its streams. */
    readonly closeAll: Effect.Effect<void>
  }
>()("tollkeeper/mcp-tools/Sessions") {
  static readonly layer = Layer.effect(
    Sessions,
    Effect.gen(function* () {
      const crypto = yield* Crypto
      const { http } = yield* Config
      const calls = yield* Calls
      const tables: Array<Map<string, Held<unknown>>> = []
      const closeAll = Effect.suspend(() => {
        const all = tables.flatMap((table) => [...table.values()])
        for (const table of tables) table.clear()
        return Effect.forEach(all, close, { discard: true })
      })
      yield* Effect.addFinalizer(() => closeAll)
      return Sessions.of({
        closeAll,
        table: <T>({ staysOpen } = { staysOpen: false }) => {
          const held = new Map<string, Held<T>>()
          tables.push(held)
          return tableOver(held, crypto, http, (id) => !staysOpen && !calls.isBusy(id))
        }
      })
    })
  )
}
