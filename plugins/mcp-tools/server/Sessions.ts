// The sessions of the HTTP transports. A session belongs to the caller that opened it and is nobody else's: its id is
// 128 random bits, and another caller that sends it finds none. There are only so many, in all and for one caller; one
// that has not been used for long makes room. They end with the Scope.
import type { Server } from "@modelcontextprotocol/sdk/server/index.js"
import { Clock, Effect, type Scope } from "effect"
import { Hex } from "effect/encoding"
import type { Crypto } from "../../../kernel/platform/Crypto.ts"
import type { HttpValues } from "../Config.ts"

export interface Session<T> {
  readonly id: string
  readonly principal: string
  readonly server: Server
  readonly transport: T
}

interface Held<T> extends Session<T> {
  usedAt: number
}

export interface Sessions<T> {
  /** Room for one more of this caller; false when there is none. */
  readonly makeRoom: (principal: string) => Effect.Effect<boolean>
  readonly newId: () => string
  readonly add: (session: Session<T>) => Effect.Effect<void>
  /** The caller's session of this id. */
  readonly find: (id: string, principal: string) => Effect.Effect<Session<T> | undefined>
  readonly remove: (id: string) => void
  /** Ends every session and with it its streams. */
  readonly closeAll: Effect.Effect<void>
}

export const makeSessions = <T>(
  crypto: Crypto["Service"],
  http: HttpValues
): Effect.Effect<Sessions<T>, never, Scope.Scope> =>
  Effect.gen(function* () {
    /** In the order of last use. */
    const sessions = new Map<string, Held<T>>()
    const close = ({ id, server }: Session<T>) => {
      sessions.delete(id)
      return Effect.ignore(Effect.tryPromise(() => server.close()))
    }
    const closeAll = Effect.suspend(() => Effect.forEach([...sessions.values()], close, { discard: true }))
    yield* Effect.addFinalizer(() => closeAll)
    return {
      makeRoom: Effect.fnUntraced(function* (principal: string) {
        const now = yield* Clock.currentTimeMillis
        for (const session of [...sessions.values()]) {
          if (now - session.usedAt > http.sessionIdleMillis) yield* close(session)
        }
        const own = [...sessions.values()].filter((session) => session.principal === principal).length
        return sessions.size < http.sessionsMax && own < http.sessionsPerCallerMax
      }),
      newId: () => Hex.encode(crypto.randomBytes(16)),
      add: (session) =>
        Effect.map(Clock.currentTimeMillis, (now) => void sessions.set(session.id, { ...session, usedAt: now })),
      find: (id, principal) =>
        Effect.map(Clock.currentTimeMillis, (now) => {
          const session = sessions.get(id)
          if (session === undefined || session.principal !== principal) return undefined
          session.usedAt = now
          sessions.delete(id)
          sessions.set(id, session)
          return session
        }),
      remove: (id) => void sessions.delete(id),
      closeAll
    }
  })
