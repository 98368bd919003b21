// The routes below /analytics/v1: each reads its query, asks one report, and answers JSON that nobody may keep. With
// keys configured, a key is wanted. A wrong parameter is 400 with a sentence for each fault, an unknown id or address
// 404, a database that is away
// 503. Only a few reports run at once and a bounded number waits, so that no flood of them takes the database from
// payments (S133–S142, S144–S167, S242, S244, S308, S329).
import { Clock, Effect, Option, Semaphore } from "effect"
import { HttpRouter, type HttpServerRequest } from "effect/http"
import type { SqlError } from "effect/sql"
import { Callers } from "../../kernel/http/Callers.ts"
import { json } from "../../kernel/http/Guard.ts"
import type { AnalyticsValues } from "./Config.ts"
import { makeReader, type Page, type Reader, readWindow, type Window } from "./reports/parameters.ts"
import { makeParticipants, type Role } from "./reports/participants.ts"
import type { Reporting } from "./reports/Reporting.ts"
import { makeResources } from "./reports/resources.ts"
import { makeTotals } from "./reports/totals.ts"
import { makeTransactions } from "./reports/transactions.ts"

type Request = HttpServerRequest.HttpServerRequest
type Response = ReturnType<typeof json>

/** What a route is given of its request. */
interface Asked {
  readonly query: URLSearchParams
  readonly read: Reader
  /** The part of the path that is named so; checked, or a fault. */
  readonly path: Readonly<Record<string, string | undefined>>
  readonly window: (absent: 0 | 30) => Window
  readonly page: () => Page
}

/** A report after its parameters were read; it runs only when they have no fault. */
type Report = Effect.Effect<Option.Option<unknown>, SqlError.SqlError>

export interface RoutesParts {
  readonly reporting: Reporting
  readonly config: AnalyticsValues
  readonly census: Reporting["records"]["census"]
}

/** Reports that run at once in this process, and those that may wait for their turn; the rest is told to come again. */
const atOnceMax = 4
const waitingMax = 100

const notFound = json({ error: "not_found" }, { status: 404 })
const unavailable = json({ error: "temporarily_unavailable" }, { status: 503, headers: { "retry-after": "1" } })

export const addAnalyticsRoutes = Effect.fnUntraced(function* ({ census, config, reporting }: RoutesParts) {
  const router = yield* HttpRouter.HttpRouter
  const callers = yield* Callers
  const totals = makeTotals(reporting, census)
  const transactions = makeTransactions(reporting)
  const participants = makeParticipants(reporting)
  const resources = makeResources(reporting)

  const permits = Semaphore.makeUnsafe(atOnceMax)
  let present = 0

  /** Runs a report in its turn, or says at once that there are too many. */
  const inTurn = (report: Report): Effect.Effect<Response, SqlError.SqlError> =>
    Effect.suspend(() => {
      if (present >= atOnceMax + waitingMax) return Effect.succeed(unavailable)
      present += 1
      return report.pipe(
        permits.withPermits(1),
        Effect.ensuring(Effect.sync(() => (present -= 1))),
        Effect.map(Option.match({ onNone: () => notFound, onSome: (body) => json(body) }))
      )
    })

  const add = (path: HttpRouter.PathInput, report: (asked: Asked) => Report) =>
    router.add("GET", `/analytics/v1${path}` as HttpRouter.PathInput, (request: Request) =>
      Effect.gen(function* (): Effect.fn.Return<Response, SqlError.SqlError, HttpRouter.RouteContext> {
        if (Option.isNone(callers.identify(request)))
          return json({ error: "unauthorized" }, { status: 401, headers: { "www-authenticate": "Bearer" } })
        const query = new URL(request.url, "http://localhost").searchParams
        const read = makeReader(query)
        const now = yield* Clock.currentTimeMillis
        const running = report({
          query,
          read,
          path: yield* HttpRouter.params,
          window: (absent) => readWindow(query, now, absent),
          page: () => read.page(config)
        })
        if (read.faults.length > 0) return json({ error: "invalid_parameter", details: read.faults }, { status: 400 })
        return yield* inTurn(running)
      }).pipe(
        Effect.catchTag("SqlError", (error) =>
          Effect.as(Effect.logError("a report could not ask the database", error), unavailable)
        )
      )
    )

  const some = <A, E>(report: Effect.Effect<A, E>) => Effect.map(report, Option.some)

  yield* add("/overview", ({ read, window }) => some(totals.overview(window(30), read.given("asset", "asset"))))
  yield* add("/overview/timeseries", ({ read, window }) =>
    some(
      totals.series(
        window(30),
        (read.given("bucket", "bucket") ?? "day") as "hour" | "day",
        read.given("asset", "asset")
      )
    )
  )
  yield* add("/overview/breakdowns", ({ read, window }) =>
    some(totals.breakdowns(window(30), read.given("asset", "asset")))
  )
  yield* add("/volume/daily", ({ page, window }) => some(totals.daily(window(30), page())))

  /** Runs a report on the address that was asked for, by itself or by its pseudonym. */
  const ofAddress = (asked: string | undefined, report: (address: string) => Report): Report =>
    Effect.flatMap(
      reporting.redaction.resolve(asked ?? ""),
      Option.match({ onNone: () => Effect.succeedNone, onSome: report })
    )

  /** A filter by address; None when it is the pseudonym of nobody. */
  const addressOf = (asked: string | undefined) =>
    asked === undefined ? Effect.succeed(Option.some(undefined)) : reporting.redaction.resolve(asked)

  yield* add("/transactions", ({ page, read, window }) => {
    const [payer, payTo] = [read.given("payer", "address"), read.given("payTo", "address")]
    const filter = {
      network: read.network(),
      scheme: read.given("scheme", "scheme"),
      asset: read.given("asset", "asset"),
      status: read.given("status", "status"),
      resourceId: read.given("resourceId", "id")
    }
    const [stretch, wanted] = [window(0), page()]
    return Effect.gen(function* () {
      const [from, to] = [yield* addressOf(payer), yield* addressOf(payTo)]
      if (Option.isNone(from) || Option.isNone(to))
        return Option.some({ items: [], pagination: { ...wanted, total: 0 } })
      return Option.some(yield* transactions.list({ ...filter, payer: from.value, payTo: to.value }, stretch, wanted))
    })
  })
  yield* add("/transactions/:hash", ({ path, read }) => {
    const hash = read.check("hash", path["hash"], "hash")
    return transactions.byHash(hash ?? "")
  })

  for (const [role, name] of [
    ["buyer", "buyers"],
    ["seller", "sellers"]
  ] as ReadonlyArray<readonly [Role, string]>) {
    yield* add(`/${name}`, ({ page, read, window }) =>
      some(participants.leaderboard(role, window(0), page(), read.given("asset", "asset")))
    )
    yield* add(`/${name}/:address`, ({ path, read, window }) => {
      const [asked, asset, stretch] = [
        read.check("address", path["address"], "address"),
        read.given("asset", "asset"),
        window(0)
      ]
      return ofAddress(asked, (address) => participants.one(role, address, stretch, asset))
    })
    yield* add(`/${name}/:address/transactions`, ({ page, path, read, window }) => {
      const [asked, stretch, wanted] = [read.check("address", path["address"], "address"), window(0), page()]
      return ofAddress(asked, (address) =>
        Effect.gen(function* () {
          if (!(yield* participants.isKnown(role, address))) return Option.none()
          return Option.some(yield* transactions.ofAddress(address, stretch, wanted))
        })
      )
    })
    yield* add(`/${name}/:address/counterparties`, ({ page, path, read, window }) => {
      const [asked, asset, stretch, wanted] = [
        read.check("address", path["address"], "address"),
        read.given("asset", "asset"),
        window(0),
        page()
      ]
      return ofAddress(asked, (address) => participants.counterparties(role, address, stretch, wanted, asset))
    })
  }

  yield* add("/origins", ({ page, read }) => some(resources.origins(page(), read.given("asset", "asset"))))
  yield* add("/resources", ({ page }) => some(resources.newest(page())))
  const idOf = ({ path, read }: Asked): bigint => BigInt(read.check("id", path["id"], "id") ?? 0)
  yield* add("/resources/:id", (asked) => resources.detail(idOf(asked)))
  yield* add("/resources/:id/observability", (asked) =>
    resources.observability(idOf(asked), asked.read.given("asset", "asset"))
  )
  yield* add("/resources/:id/invocations", (asked) => {
    const [id, stretch, wanted] = [idOf(asked), asked.window(0), asked.page()]
    return Effect.gen(function* () {
      if (!(yield* reporting.isCataloged(id))) return Option.none()
      return Option.some(yield* transactions.list({ resourceId: id.toString() }, stretch, wanted))
    })
  })
})
