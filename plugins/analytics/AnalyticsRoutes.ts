// The routes below /analytics/v1, each with its report and parameters (S144–S167). `ReportRunner.ts` reads, bounds and
// answers requests.
import { Effect, Option } from "effect"
import { HttpRouter } from "effect/http"
import { type Asked, csvRowsMax, type Report, ReportRunner } from "./ReportRunner.ts"
import { Participants } from "./reports/Participants.ts"
import type { Role } from "./reports/ranking.ts"
import { Redaction } from "./reports/Redaction.ts"
import { groupsMax, Refusals } from "./reports/Refusals.ts"
import { ResourceReports } from "./reports/ResourceReports.ts"
import { Totals } from "./reports/Totals.ts"
import { Transactions } from "./reports/Transactions.ts"

/** Rows of one CSV of a leaderboard; each needs its sums. */
const boardRowsMax = 2_000

const some = <A, E>(report: Effect.Effect<A, E>) => Effect.map(report, Option.some)

const add = Effect.fnUntraced(function* (path: string, report: (asked: Asked) => Report) {
  const router = yield* HttpRouter.HttpRouter
  const { handler } = yield* ReportRunner
  yield* router.add("GET", `/analytics/v1${path}` as HttpRouter.PathInput, handler(report))
})

const addTotals = Effect.gen(function* () {
  const totals = yield* Totals
  yield* add("/overview", ({ asset, window }) => some(totals.overview(window(30), asset())))
  yield* add("/overview/timeseries", ({ asset, read, window }) => {
    const bucket = read.given("bucket", "bucket") === "hour" ? "hour" : "day"
    return some(totals.series(window(30), bucket, asset()))
  })
  yield* add("/overview/breakdowns", ({ asset, window }) => some(totals.breakdowns(window(30), asset())))
  const refusals = yield* Refusals
  yield* add("/refusals", ({ isCsv, page, read, window }) => {
    const filter = {
      operation: read.given("operation", "operation"),
      reason: read.given("reason", "reason"),
      key: read.given("key", "principal"),
      payer: read.given("payer", "address"),
      from: read.given("from", "time"),
      to: read.given("to", "time")
    }
    const isRanged = filter.from !== undefined || filter.to !== undefined
    const limit = read.given("limit", "number") === undefined ? groupsMax : page().limit
    const asked = { limit: isCsv ? csvRowsMax : limit, cursor: read.given("cursor", "group") }
    return some(refusals.list(filter, window(isRanged ? 0 : 30), asked))
  })
  yield* add("/volume/daily", ({ page, window }) => some(totals.daily(window(30), page())))
})

const addTransactions = Effect.gen(function* () {
  const transactions = yield* Transactions
  const redaction = yield* Redaction

  /** A filter by address; None for an unknown pseudonym. */
  const addressOf = (asked: string | undefined) =>
    asked === undefined ? Effect.succeed(Option.some(undefined)) : redaction.resolve(asked)

  yield* add("/transactions", ({ asset, page, read, window }) => {
    const [payer, payTo] = [read.given("payer", "address"), read.given("payTo", "address")]
    const filter = {
      network: read.network(),
      scheme: read.given("scheme", "scheme"),
      asset: asset(),
      status: read.given("status", "status"),
      resourceId: read.given("resourceId", "id")
    }
    const [stretch, asked] = [window(0), page()]
    return Effect.gen(function* () {
      const [from, to] = [yield* addressOf(payer), yield* addressOf(payTo)]
      if (Option.isNone(from) || Option.isNone(to))
        return Option.some({ items: [], pagination: { ...asked, total: 0 } })
      return Option.some(yield* transactions.list({ ...filter, payer: from.value, payTo: to.value }, stretch, asked))
    })
  })
  yield* add("/transactions/:hash", ({ inPath }) => transactions.byHash(inPath("hash") ?? ""))
})

const addParticipants = Effect.fnUntraced(function* (role: Role) {
  const participants = yield* Participants
  const transactions = yield* Transactions
  const redaction = yield* Redaction

  /** Runs a report on the requested address, given directly or by its pseudonym. */
  const ofAddress = ({ inPath }: Asked, report: (address: string) => Report): Report =>
    Effect.flatMap(
      redaction.resolve(inPath("address") ?? ""),
      Option.match({ onNone: () => Effect.succeedNone, onSome: report })
    )

  yield* add(`/${role}s`, ({ asset, isCsv, page, read, window }) => {
    const asked = page()
    const board = {
      offset: asked.offset,
      limit: isCsv ? boardRowsMax : asked.limit,
      cursor: read.given("cursor", "place"),
      min: read.given("min", "units")
    }
    const ordered = asset()
    if (board.min !== undefined && ordered === undefined) read.refuse("asset: required to compare amounts")
    return some(participants.leaderboard(role, window(0), board, ordered))
  })
  yield* add(`/${role}s/:address`, (asked) => {
    const [asset, stretch] = [asked.asset(), asked.window(0)]
    return ofAddress(asked, (address) => participants.one(role, address, stretch, asset))
  })
  yield* add(`/${role}s/:address/transactions`, (asked) => {
    const [stretch, page] = [asked.window(0), asked.page()]
    return ofAddress(asked, (address) =>
      Effect.gen(function* () {
        if (!(yield* participants.isKnown(role, address))) return Option.none()
        return Option.some(yield* transactions.ofAddress(address, stretch, page))
      })
    )
  })
  yield* add(`/${role}s/:address/counterparties`, (asked) => {
    const [asset, stretch, page] = [asked.asset(), asked.window(0), asked.page()]
    return ofAddress(asked, (address) => participants.counterparties(role, address, stretch, page, asset))
  })
})

const addResources = Effect.gen(function* () {
  const resources = yield* ResourceReports
  const redaction = yield* Redaction
  const transactions = yield* Transactions
  const idOf = ({ inPath }: Asked): bigint => BigInt(inPath("id") ?? 0)

  yield* add("/origins", ({ asset, page }) => some(resources.origins(page(), asset())))
  yield* add("/resources", ({ isCsv, page, read }) => {
    const asked = page()
    const [cursor, payTo] = [read.given("cursor", "id"), read.given("payTo", "address")]
    const filter = {
      state: read.given("state", "state"),
      grade: read.given("grade", "grade"),
      type: read.given("type", "type"),
      origin: read.given("origin", "origin"),
      words: read.given("q", "words")
    }
    return Effect.gen(function* () {
      const of = payTo === undefined ? Option.some(undefined) : yield* redaction.resolve(payTo)
      if (Option.isNone(of)) return Option.some({ items: [], pagination: { ...asked, total: 0, cursor: null } })
      const limit = isCsv ? csvRowsMax : asked.limit
      const kept = { ...filter, payTo: of.value }
      return Option.some(yield* resources.newest({ limit, offset: asked.offset, cursor, filter: kept }))
    })
  })
  yield* add("/rejections", ({ page }) => some(resources.rejections(page())))
  yield* add("/resources/:id", (asked) => resources.detail(idOf(asked)))
  yield* add("/resources/:id/observability", (asked) => resources.observability(idOf(asked), asked.asset()))
  yield* add("/resources/:id/invocations", (asked) => {
    const [id, stretch, page] = [idOf(asked), asked.window(0), asked.page()]
    return Effect.gen(function* () {
      if (!(yield* resources.isCataloged(id))) return Option.none()
      return Option.some(yield* transactions.list({ resourceId: id.toString() }, stretch, page))
    })
  })
})

/** An account's own reports: its payments received as a seller, and every settlement in its favor. */
const addOwn = Effect.gen(function* () {
  const router = yield* HttpRouter.HttpRouter
  const { accountHandler } = yield* ReportRunner
  const participants = yield* Participants
  const transactions = yield* Transactions
  yield* router.add(
    "GET",
    "/analytics/v1/account",
    accountHandler((account, { asset, window }) => participants.one("seller", account, window(0), asset()))
  )
  yield* router.add(
    "GET",
    "/analytics/v1/account/transactions",
    accountHandler((payTo, { page, read, window }) => {
      const filter = { payTo, status: read.given("status", "status"), resourceId: read.given("resourceId", "id") }
      return some(transactions.list(filter, window(0), page()))
    })
  )
})

export const addAnalyticsRoutes = Effect.gen(function* () {
  yield* addTotals
  yield* addTransactions
  yield* addParticipants("buyer")
  yield* addParticipants("seller")
  yield* addResources
  yield* addOwn
})
