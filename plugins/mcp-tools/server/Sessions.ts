// The sessions of the HTTP transports. A session belongs to the caller that opened it and is nobody else's: its id is
// 128 random bits, and another caller that sends it finds none. There are only so many, in all and for one caller; one
// that has not been used for long makes room. They end with the Scope.
import type { Server } from "@modelcontextprotocol/sdk/server/index.js"
import { Clock, Context, Effect, Layer } from "effect"
import { Hex } from "effect/encoding"
import { Crypto } from "../../../kernel/platform/Crypto.ts"
import { Config, type HttpValues } from "../Config.ts"

export interface Session<T> {
  readonly id: string
  readonly principal: string
  readonly server: Server
  readonly transport: T
}

interface Held<T> extends Session<T> {
  usedAt: number
}

/** The sessions of one transport. */
export interface SessionTable<T> {
  /** Room for one more of this caller; false when there is none. */
  readonly makeRoom: (principal: string) => Effect.Effect<boolean>
  readonly newId: () => string
  readonly add: (session: Session<T>) => Effect.Effect<void>
  /** The caller's session of this id. */
  readonly find: (id: string, principal: string) => Effect.Effect<Session<T> | undefined>
  readonly remove: (id: string) => void
}

const close = ({ server }: Session<unknown>) => Effect.ignore(Effect.tryPromise(() => server.close()))

/** `held` is in the order of last use. */
const tableOver = <T>(held: Map<string, Held<T>>, crypto: Crypto["Service"], http: HttpValues): SessionTable<T> => ({
  makeRoom: Effect.fnUntraced(function* (principal: string) {
    const now = yield* Clock.currentTimeMillis
    for (const session of [...held.values()]) {
      if (now - session.usedAt <= http.sessionIdleMillis) continue
      held.delete(session.id)
      yield* close(session)
    }
    const own = [...held.values()].filter((session) => session.principal === principal).length
    return held.size < http.sessionsMax && own < http.sessionsPerCallerMax
  }),
  newId: () => Hex.encode(crypto.randomBytes(16)),
  add: (session) =>
    Effect.map(Clock.currentTimeMillis, (now) => void held.set(session.id, { ...session, usedAt: now })),
  find: (id, principal) =>
    Effect.map(Clock.currentTimeMillis, (now) => {
      const session = held.get(id)
      if (session === undefined || session.principal !== principal) return undefined
      session.usedAt = now
      held.delete(id)
      held.set(id, session)
      return session
    }),
  remove: (id) => void held.delete(id)
})

export class Sessions extends Context.Service<
  Sessions,
  {
    readonly table: <T>() => SessionTable<T>
    /** Ends every session and with it its streams. */
    readonly closeAll: Effect.Effect<void>
  }
>()("tollkeeper/mcp-tools/Sessions") {
  static readonly layer = Layer.effect(
    Sessions,
    Effect.gen(function* () {
      const crypto = yield* Crypto
      const { http } = yield* Config
      const tables: Array<Map<string, Held<unknown>>> = []
      const closeAll = Effect.suspend(() => {
        const all = tables.flatMap((table) => [...table.values()])
        for (const table of tables) table.clear()
        return Effect.forEach(all, close, { discard: true })
      })
      yield* Effect.addFinalizer(() => closeAll)
      return Sessions.of({
        closeAll,
        table: <T>() => {
          const held = new Map<string, Held<T>>()
          tables.push(held)
          return tableOver(held, crypto, http)
        }
      })
    })
  )
}
