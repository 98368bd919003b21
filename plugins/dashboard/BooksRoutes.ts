// The books over HTTP, for operators: totals by month, and statements of one month. Statements of any length are
// streamed, as CSV or as one JSON object per line.
import { Effect, Stream } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { SqlClient } from "effect/sql"
import { Network } from "../../kernel/config/Network.ts"
import { Authentication } from "../../kernel/http/Authentication.ts"
import { asksForCsv, csvOf, csvType, listed } from "../../kernel/http/csv.ts"
import { json, operatorRequired, temporarilyUnavailable } from "../../kernel/http/httpMiddleware.ts"
import { queryOf, readQuery } from "../../kernel/http/readQuery.ts"
import { addRoutes, route } from "../../kernel/http/Route.ts"
import { monthTotals, type StatementLine, statementPages } from "../../kernel/settlement/operators/Books.ts"
import * as routes from "./description.ts"

type Request = HttpServerRequest.HttpServerRequest

const monthsShown = 12

/** CSV lines of a page. Only the first page has the column names. */
const csvPage = (lines: ReadonlyArray<StatementLine>, index: number): string => {
  const text = csvOf({ items: lines }).pipe((some) => (some._tag === "None" ? "" : some.value))
  return index === 0 ? text : text.slice(text.indexOf("\n") + 1)
}

const jsonPage = (lines: ReadonlyArray<StatementLine>): string =>
  lines.map((line) => `${JSON.stringify(line)}\n`).join("")

export const addBooksRoutes = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const { assets } = yield* Network
  const callers = yield* Authentication

  const statement = (request: Request) => {
    const query = readQuery(routes.statement.query, queryOf(request))
    const [month, key, format] = [query.given("month"), query.given("key"), query.given("format")]
    if (month === undefined || query.issues.length > 0)
      return json({ error: "invalid_filter", details: ["month: YYYY-MM", ...query.issues] }, { status: 400 })
    const isCsv = format === "csv" || (format === undefined && asksForCsv(request))
    const pages = statementPages(sql, assets, { month, key })
    const text = isCsv
      ? Stream.map(Stream.zipWithIndex(pages), ([lines, at]) => csvPage(lines, at))
      : Stream.map(pages, jsonPage)
    return HttpServerResponse.stream(Stream.encodeText(text), {
      contentType: isCsv ? csvType : "application/x-ndjson",
      headers: {
        "cache-control": "no-store",
        "x-content-type-options": "nosniff",
        "content-disposition": `attachment; filename="statement-${month}.${isCsv ? "csv" : "jsonl"}"`
      }
    })
  }
  const months = (request: Request) =>
    Effect.matchEffect(Effect.provideService(monthTotals(assets, monthsShown), SqlClient.SqlClient, sql), {
      onFailure: (error) => Effect.as(Effect.logError("the books could not be read", error), temporarilyUnavailable),
      onSuccess: (items) => Effect.succeed(listed(request, { items }))
    })
  yield* addRoutes(routes.group, [
    route(routes.books, (request) =>
      callers.mayOperate(request) ? months(request) : Effect.succeed(operatorRequired)
    ),
    route(routes.statement, (request) =>
      Effect.sync(() => (callers.mayOperate(request) ? statement(request) : operatorRequired))
    )
  ])
})
