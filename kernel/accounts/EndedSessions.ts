// Signing out of a key's browser session. The session itself is a signed cookie and is not stored, so its end is a row.
// From then on this replica refuses every copy of the cookie. Each other replica does so when it has read the row: on a
// notification, or within five seconds. A replica that starts reads the rows before it serves. A row is deleted when
// its session would have ended anyway, so there are at most as many rows as sign-outs in twelve hours.
import { Clock, Context, Effect, Layer } from "effect"
import type { HttpServerRequest } from "effect/http"
import { SqlClient, type SqlError } from "effect/sql"
import { reconciler } from "../actor/Actor.ts"
import { Database } from "../database/Database.ts"
import { Facts } from "../facts/Facts.ts"
import { Keys } from "../http/Keys.ts"
import { Sessions } from "../http/Sessions.ts"

/** Poll interval for a replica that does not receive the notifications of others. */
const pollEvery = "5 seconds"
/** Publications within this time share one read; most of them are payments. */
const gatherFor = "1 second"

interface EndedRow {
  readonly session: string
  readonly until: Date
}

export class EndedSessions extends Context.Service<
  EndedSessions,
  {
    /**
     * Ends the request's session here immediately, and on every replica once it is recorded. Does nothing without a
     * session.
     */
    readonly end: (request: HttpServerRequest.HttpServerRequest) => Effect.Effect<void, SqlError.SqlError>
  }
>()("tollkeeper/accounts/EndedSessions") {
  static readonly layer = Layer.effect(
    EndedSessions,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const sessions = yield* Sessions
      const keys = yield* Keys
      const facts = yield* Facts
      const { kind } = yield* Database

      const read = Effect.gen(function* () {
        const now = new Date(yield* Clock.currentTimeMillis)
        const rows = yield* sql<EndedRow>`select session, until from kernel_ended_sessions where until > ${now}`
        sessions.setEnded(rows.map(({ session, until }) => ({ id: session, untilSeconds: until.getTime() / 1_000 })))
      })

      if (kind === "embedded") yield* read
      else {
        const isKeyed = () => keys.keyed() || keys.operatorKeyed()
        yield* read
        const reading = yield* reconciler({
          id: "ended-sessions",
          every: pollEvery,
          gather: gatherFor,
          turn: Effect.suspend(() => (isKeyed() ? read : Effect.void))
        })
        yield* facts.onPublished(Effect.suspend(() => (isKeyed() ? reading.wake : Effect.void)))
      }

      const end: EndedSessions["Service"]["end"] = Effect.fnUntraced(function* (request) {
        const session = sessions.named(request)
        if (session === undefined) return
        sessions.setEnded([session])
        const until = new Date(session.untilSeconds * 1_000)
        const now = new Date(yield* Clock.currentTimeMillis)
        yield* sql`delete from kernel_ended_sessions where until < ${now}`
        // This is not a fact: it only wakes the other replicas in the same way.
        yield* facts.publishedBy(sql`insert into kernel_ended_sessions ${sql.insert({ session: session.id, until })}
          on conflict do nothing`)
      })

      return EndedSessions.of({ end })
    })
  )
}
