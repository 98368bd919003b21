// Signs out the browser session of a key. The session is only a signed cookie and not stored, so we record its end as a
// row. This replica refuses every copy of the cookie immediately. Every other replica does so once it has read the row,
// after a notification or within five seconds. A starting replica reads the rows before it serves. A row is deleted
// when its session would have expired anyway. The number of rows per key is bounded: beyond it, one row ends all of the
// key's sessions so far.
import { Clock, Context, Effect, Layer } from "effect"
import type { HttpServerRequest } from "effect/http"
import { SqlClient, type SqlError } from "effect/sql"
import { reconciler } from "../actor/Actor.ts"
import { Database } from "../database/Database.ts"
import { Facts } from "../facts/Facts.ts"
import { Keys } from "../http/Keys.ts"
import { endedName, Sessions } from "../http/Sessions.ts"

/** Poll interval for a replica that does not receive the notifications of others. */
const pollEvery = "5 seconds"
export const ofKeyMax = 64
/** Interval over which publications, most of them payments, share one read. */
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
        sessions.setEnded(rows.map(({ session, until }) => ({ name: session, untilSeconds: until.getTime() / 1_000 })))
      })

      if (kind === "embedded") yield* read
      else {
        yield* read
        const reading = yield* reconciler({
          id: "ended-sessions",
          every: pollEvery,
          gather: gatherFor,
          // Without keys there are no sessions.
          turn: Effect.suspend(() => (keys.keyed() || keys.operatorKeyed() ? read : Effect.void))
        })
        yield* facts.onPublished(reading.wake)
      }

      const end: EndedSessions["Service"]["end"] = Effect.fnUntraced(function* (request) {
        const session = sessions.named(request)
        if (session === undefined) return
        const { untilSeconds } = session
        const name = endedName(session, session.id)
        sessions.setEnded([{ name, untilSeconds }])
        const now = new Date(yield* Clock.currentTimeMillis)
        yield* sql`delete from kernel_ended_sessions where until < ${now}`
        const all = endedName(session, "*")
        // Not a fact: it only wakes the other replicas like one.
        const [one] = yield* facts.publishedBy(sql<EndedRow>`with mine as (
            select session from kernel_ended_sessions where session like ${endedName(session, "%")}),
          ended as (insert into kernel_ended_sessions
            ${sql.insert({ session: name, until: new Date(untilSeconds * 1_000) })} on conflict do nothing),
          gone as (delete from kernel_ended_sessions where session in (select session from mine where session <> ${all})
            and (select count(*) from mine) >= ${ofKeyMax} returning until)
          insert into kernel_ended_sessions (session, until) select ${all}, max(until) from gone having count(*) > 0
          on conflict (session) do update set until = greatest(kernel_ended_sessions.until, excluded.until)
          returning session, until`)
        if (one !== undefined) sessions.setEnded([{ name: all, untilSeconds: one.until.getTime() / 1_000 }])
      })

      return EndedSessions.of({ end })
    })
  )
}
