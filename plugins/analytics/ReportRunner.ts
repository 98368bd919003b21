// Runs reports for requests: reads the query, asks one report, and answers JSON that nobody may keep, or CSV where a
// list is asked for so. With keys configured, a key is required. A wrong parameter is 400 with a sentence for each
// fault, an unknown id or address 404, a database that is away 503. Only a few reports run at once and a bounded number
// waits, so that no flood of them takes the database from payments (S133–S142, S242, S244, S308, S329).
import { Clock, Context, Effect, Layer, Option, Semaphore } from "effect"
import { HttpRouter, type HttpServerRequest, type HttpServerResponse } from "effect/http"
import type { SqlError } from "effect/sql"
import { AccountSessions } from "../../kernel/accounts/AccountSessions.ts"
import { ReadReplica } from "../../kernel/database/ReadReplica.ts"
import { Authentication } from "../../kernel/http/Authentication.ts"
import { listed } from "../../kernel/http/csv.ts"
import { json } from "../../kernel/http/httpMiddleware.ts"
import { Config } from "./Config.ts"
import { type Page, type QueryReader, readQuery, readWindow, type Window } from "./reports/parameters.ts"

/** What a report is given of its request. */
export interface Asked {
  readonly read: QueryReader
  /** The part of the path that is named so, in its form, or a fault. */
  readonly inPath: (name: "address" | "hash" | "id") => string | undefined
  readonly asset: () => string | undefined
  readonly window: (absent: 0 | 30) => Window
  readonly page: () => Page
}

/** A report after its parameters were read; it runs only when they have no fault. None: there is no such thing. */
export type Report = Effect.Effect<Option.Option<unknown>, SqlError.SqlError>

type Request = HttpServerRequest.HttpServerRequest
type Response = HttpServerResponse.HttpServerResponse
type Handler = (request: Request) => Effect.Effect<Response, never, HttpRouter.RouteContext>

/** Reports that run at once in this process, and those that may wait for their turn; the rest is told to come again. */
const atOnceMax = 4
const waitingMax = 100

const unauthorized = json({ error: "unauthorized" }, { status: 401, headers: { "www-authenticate": "Bearer" } })
const notFound = json({ error: "not_found" }, { status: 404 })
const unavailable = json({ error: "temporarily_unavailable" }, { status: 503, headers: { "retry-after": "1" } })

export class ReportRunner extends Context.Service<
  ReportRunner,
  {
    /** The handler of a route. `report` reads its parameters when it is called, and asks when it runs. */
    readonly handler: (report: (asked: Asked) => Report) => Handler
    /** The same for a route that tells an account of itself: the account of the browser's session. */
    readonly accountHandler: (report: (account: string, asked: Asked) => Report) => Handler
  }
>()("tollkeeper/analytics/ReportRunner") {
  static readonly layer = Layer.effect(
    ReportRunner,
    Effect.gen(function* () {
      const callers = yield* Authentication
      const sessions = yield* AccountSessions
      const config = yield* Config
      const { reading } = yield* ReadReplica
      const permits = yield* Semaphore.make(atOnceMax)
      let present = 0

      /** Runs a report in its turn, or says at once that there are too many. */
      const inTurn = (
        report: Report,
        answer: (body: unknown) => Response
      ): Effect.Effect<Response, SqlError.SqlError> =>
        Effect.suspend(() => {
          if (present >= atOnceMax + waitingMax) return Effect.succeed(unavailable)
          present += 1
          return reading(report).pipe(
            permits.withPermits(1),
            Effect.ensuring(Effect.sync(() => (present -= 1))),
            Effect.map(Option.match({ onNone: () => notFound, onSome: answer }))
          )
        })

      const handlerOf =
        <Reader>(
          readerOf: (request: Request) => Effect.Effect<Option.Option<Reader>, SqlError.SqlError>,
          report: (reader: Reader, asked: Asked) => Report
        ): Handler =>
        (request) =>
          Effect.gen(function* () {
            const reader = yield* readerOf(request)
            if (Option.isNone(reader)) return unauthorized
            const query = new URL(request.url, "http://localhost").searchParams
            const read = readQuery(query)
            const now = yield* Clock.currentTimeMillis
            const path = yield* HttpRouter.params
            const running = report(reader.value, {
              read,
              inPath: (name) => read.check(name, path[name], name),
              asset: () => read.given("asset", "asset"),
              window: (absent) => readWindow(query, now, absent),
              page: () => read.page(config)
            })
            return read.issues.length > 0
              ? json({ error: "invalid_parameter", details: read.issues }, { status: 400 })
              : yield* inTurn(running, (body) => listed(request, body))
          }).pipe(
            Effect.catchTag("SqlError", (error) =>
              Effect.as(Effect.logError("a report could not ask the database", error), unavailable)
            )
          )

      return ReportRunner.of({
        handler: (report) =>
          handlerOf(
            (request) => Effect.sync(() => callers.reader(request)),
            (_, asked) => report(asked)
          ),
        accountHandler: (report) =>
          handlerOf(
            (request) =>
              Effect.map(
                sessions.of(request),
                Option.map(({ account }) => account)
              ),
            report
          )
      })
    })
  )
}
