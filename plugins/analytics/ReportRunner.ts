// Runs reports for requests: reads the query, runs one report, and answers JSON without caching, or CSV if a list is
// requested as such. With keys configured, a key is required, and it only reads its own payments. A wrong parameter is
// 400 with a sentence for each issue, an unknown id or address 404, an unavailable database 503. A few reports run
// concurrently and a bounded number waits, so that a flood never takes the database from payments (S133–S142, S242,
// S244, S308, S329).
import { Clock, Context, Effect, Layer, Option, Semaphore } from "effect"
import { HttpRouter, type HttpServerRequest, type HttpServerResponse } from "effect/http"
import type { SqlError } from "effect/sql"
import { AccountSessions } from "../../kernel/accounts/AccountSessions.ts"
import { ReadReplica } from "../../kernel/database/ReadReplica.ts"
import { Authentication } from "../../kernel/http/Authentication.ts"
import { asksForCsv, listed } from "../../kernel/http/csv.ts"
import { json, temporarilyUnavailable, unauthorized } from "../../kernel/http/httpMiddleware.ts"
import type { Parameters } from "../../kernel/http/OpenApi.ts"
import { queryOf, type QueryReader, readQuery } from "../../kernel/http/readQuery.ts"
import { type Documented, type Route, route } from "../../kernel/http/Route.ts"
import { Config } from "./Config.ts"
import { ofTenant } from "./reports/ofTenant.ts"
import { forms, type Page, readLimit, readPage, readWindow, type Window } from "./reports/parameters.ts"

type ReportRoute = Documented & { readonly query: Parameters }

/** Names of the parameters that a route declares. */
type NameOf<Declared extends ReportRoute> = keyof Declared["query"]["fields"] & string

/** A report's parsed request. */
export interface ReportRequest<Name extends string> {
  readonly read: QueryReader<Name>
  /** The path parameter of this name, in its form; otherwise an issue is added. */
  readonly inPath: (name: "address" | "hash" | "id") => string | undefined
  readonly window: (absent: 0 | 30) => Window
  readonly limit: () => number
  readonly page: () => Page
  /** The answer is a CSV. */
  readonly isCsv: boolean
  readonly nowMillis: number
}

/** A report after its parameters were read; it runs only without issues. None: not found. */
export type Report = Effect.Effect<Option.Option<unknown>, SqlError.SqlError>

type Request = HttpServerRequest.HttpServerRequest
type Response = HttpServerResponse.HttpServerResponse

export const csvRowsMax = 10_000

/** Reports that run concurrently in this process, and the queue's limit; above it requests are answered 503. */
const concurrencyMax = 4
const waitingMax = 100

const notFound = json({ error: "not_found" }, { status: 404 })

export class ReportRunner extends Context.Service<
  ReportRunner,
  {
    /** A route with its report, which parses its parameters when it is called, and queries when it runs. */
    readonly reported: <Declared extends ReportRoute>(
      declared: Declared,
      report: (request: ReportRequest<NameOf<Declared>>) => Report
    ) => Route
    /** The same for a route of an account's own reports: the account of the browser's session. */
    readonly ofAccount: <Declared extends ReportRoute>(
      declared: Declared,
      report: (account: string, request: ReportRequest<NameOf<Declared>>) => Report
    ) => Route
  }
>()("tollkeeper/analytics/ReportRunner") {
  static readonly layer = Layer.effect(
    ReportRunner,
    Effect.gen(function* () {
      const callers = yield* Authentication
      const sessions = yield* AccountSessions
      const config = yield* Config
      const { reading } = yield* ReadReplica
      const permits = yield* Semaphore.make(concurrencyMax)
      let present = 0

      /** Runs a report in its turn, or answers 503 immediately when the queue is full. */
      const inTurn = (
        report: Report,
        answer: (body: unknown) => Response
      ): Effect.Effect<Response, SqlError.SqlError> =>
        Effect.suspend(() => {
          if (present >= concurrencyMax + waitingMax) return Effect.succeed(temporarilyUnavailable)
          present += 1
          return reading(report).pipe(
            permits.withPermits(1),
            Effect.ensuring(Effect.sync(() => (present -= 1))),
            Effect.map(Option.match({ onNone: () => notFound, onSome: answer }))
          )
        })

      const routeOf = <Declared extends ReportRoute, Reader>(
        declared: Declared,
        readerOf: (request: Request) => Effect.Effect<Option.Option<Reader>, SqlError.SqlError>,
        report: (reader: Reader, request: ReportRequest<NameOf<Declared>>) => Report
      ): Route =>
        route(declared, (request) =>
          Effect.gen(function* () {
            const reader = yield* readerOf(request)
            if (Option.isNone(reader)) return unauthorized
            const read = readQuery(declared.query, queryOf(request)) as QueryReader<any>
            const [now, path] = [yield* Clock.currentTimeMillis, yield* HttpRouter.params]
            const running = report(reader.value, {
              read,
              inPath: (name) => read.check(name, path[name], forms[name]),
              window: (absent) => readWindow(read, now, absent),
              limit: () => readLimit(read, config),
              page: () => readPage(read, config),
              isCsv: asksForCsv(request),
              nowMillis: now
            })
            return read.issues.length > 0
              ? json({ error: "invalid_parameter", details: read.issues }, { status: 400 })
              : yield* inTurn(running, (body) => listed(request, body))
          }).pipe(
            Effect.catchTag("SqlError", (error) =>
              Effect.as(Effect.logError("a report could not read the database", error), temporarilyUnavailable)
            )
          )
        )

      const accountOf = (request: Request) =>
        Effect.map(
          sessions.of(request),
          Option.map(({ account }) => account)
        )

      return ReportRunner.of({
        reported: (declared, report) =>
          routeOf(
            declared,
            (request) => Effect.sync(() => callers.reader(request)),
            ({ only }, request) => (only === undefined ? report(request) : ofTenant(only, report(request)))
          ),
        ofAccount: (declared, report) => routeOf(declared, accountOf, report)
      })
    })
  )
}
