// The routes below /analytics/v1, each with its report and parameters (S144–S167). `ReportRunner.ts` reads, bounds and
// answers requests.
import { Effect, Option } from "effect"
import { addRoutes } from "../../kernel/http/Route.ts"
import * as routes from "./description.ts"
import { type ReportRequest, csvRowsMax, type Report, ReportRunner } from "./ReportRunner.ts"
import { readNetworkFilter } from "./reports/parameters.ts"
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

const makeTotals = Effect.gen(function* () {
  const { reported } = yield* ReportRunner
  const totals = yield* Totals
  const refusals = yield* Refusals
  return [
    reported(routes.overview, ({ read, window }) => some(totals.overview(window(30), read.given("asset")))),
    reported(routes.timeseries, ({ read, window }) => {
      const bucket = read.given("bucket") === "hour" ? "hour" : "day"
      return some(totals.series(window(30), bucket, read.given("asset")))
    }),
    reported(routes.breakdowns, ({ read, window }) => some(totals.breakdowns(window(30), read.given("asset")))),
    reported(routes.refusals, ({ isCsv, limit, read, window }) => {
      const filter = {
        operation: read.given("operation"),
        reason: read.given("reason"),
        key: read.given("key"),
        payer: read.given("payer"),
        from: read.given("from"),
        to: read.given("to")
      }
      const isRanged = filter.from !== undefined || filter.to !== undefined
      const groups = read.given("limit") === undefined ? groupsMax : limit()
      const listPage = { limit: isCsv ? csvRowsMax : groups, cursor: read.given("cursor") }
      return some(refusals.list(filter, window(isRanged ? 0 : 30), listPage))
    }),
    reported(routes.dailyVolume, ({ page, window }) => some(totals.daily(window(30), page())))
  ]
})

const makeTransactions = Effect.gen(function* () {
  const { reported } = yield* ReportRunner
  const transactions = yield* Transactions
  const redaction = yield* Redaction

  /** A filter by address; None for an unknown pseudonym. */
  const addressOf = (addressOrPseudonym: string | undefined) =>
    addressOrPseudonym === undefined ? Effect.succeed(Option.some(undefined)) : redaction.resolve(addressOrPseudonym)

  return [
    reported(routes.transactions, ({ page, read, window }) => {
      const [payer, payTo] = [read.given("payer"), read.given("payTo")]
      const filter = {
        network: readNetworkFilter(read),
        scheme: read.given("scheme"),
        asset: read.given("asset"),
        status: read.given("status"),
        resourceId: read.given("resourceId")
      }
      const [stretch, listPage] = [window(0), page()]
      return Effect.gen(function* () {
        const [from, to] = [yield* addressOf(payer), yield* addressOf(payTo)]
        if (Option.isNone(from) || Option.isNone(to))
          return Option.some({ items: [], pagination: { ...listPage, total: 0 } })
        return Option.some(
          yield* transactions.list({ ...filter, payer: from.value, payTo: to.value }, stretch, listPage)
        )
      })
    }),
    reported(routes.transaction, ({ inPath }) => transactions.byHash(inPath("hash") ?? ""))
  ]
})

const makeParticipants = Effect.fnUntraced(function* (role: Role) {
  const { reported } = yield* ReportRunner
  const participants = yield* Participants
  const transactions = yield* Transactions
  const redaction = yield* Redaction
  const declared = routes.participants(role)

  /** Runs a report on the requested address, given directly or by its pseudonym. */
  const ofAddress = ({ inPath }: Pick<ReportRequest<never>, "inPath">, report: (address: string) => Report): Report =>
    Effect.flatMap(
      redaction.resolve(inPath("address") ?? ""),
      Option.match({ onNone: () => Effect.succeedNone, onSome: report })
    )

  return [
    reported(declared.board, ({ isCsv, page, read, window }) => {
      const listPage = page()
      const board = {
        offset: listPage.offset,
        limit: isCsv ? boardRowsMax : listPage.limit,
        cursor: read.given("cursor"),
        min: read.given("min")
      }
      const ordered = read.given("asset")
      if (board.min !== undefined && ordered === undefined) read.refuse("asset: required to compare amounts")
      return some(participants.leaderboard(role, window(0), board, ordered))
    }),
    reported(declared.one, (request) => {
      const [asset, stretch] = [request.read.given("asset"), request.window(0)]
      return ofAddress(request, (address) => participants.one(role, address, stretch, asset))
    }),
    reported(declared.transactions, (request) => {
      const [stretch, page] = [request.window(0), request.page()]
      return ofAddress(request, (address) =>
        Effect.gen(function* () {
          if (!(yield* participants.isKnown(role, address))) return Option.none()
          return Option.some(yield* transactions.ofAddress(address, stretch, page))
        })
      )
    }),
    reported(declared.counterparties, (request) => {
      const [asset, stretch, page] = [request.read.given("asset"), request.window(0), request.page()]
      return ofAddress(request, (address) => participants.counterparties(role, address, stretch, page, asset))
    })
  ]
})

const makeResources = Effect.gen(function* () {
  const { reported } = yield* ReportRunner
  const resources = yield* ResourceReports
  const redaction = yield* Redaction
  const transactions = yield* Transactions
  const idOf = ({ inPath }: Pick<ReportRequest<never>, "inPath">): bigint => BigInt(inPath("id") ?? 0)

  return [
    reported(routes.origins, ({ page, read }) => {
      const listPage = page()
      return some(resources.origins(listPage, read.given("asset")))
    }),
    reported(routes.resources, ({ isCsv, page, read }) => {
      const listPage = page()
      const [cursor, payTo] = [read.given("cursor"), read.given("payTo")]
      const filter = {
        state: read.given("state"),
        grade: read.given("grade"),
        type: read.given("type"),
        origin: read.given("origin"),
        words: read.given("q")
      }
      return Effect.gen(function* () {
        const of = payTo === undefined ? Option.some(undefined) : yield* redaction.resolve(payTo)
        if (Option.isNone(of)) return Option.some({ items: [], pagination: { ...listPage, total: 0, cursor: null } })
        const limit = isCsv ? csvRowsMax : listPage.limit
        const ofReceiver = { ...filter, payTo: of.value }
        return Option.some(yield* resources.newest({ limit, offset: listPage.offset, cursor, filter: ofReceiver }))
      })
    }),
    reported(routes.rejections, ({ page }) => some(resources.rejections(page()))),
    reported(routes.resource, (request) => resources.detail(idOf(request))),
    reported(routes.resourceUse, (request) => resources.observability(idOf(request), request.read.given("asset"))),
    reported(routes.resourceInvocations, (request) => {
      const [id, stretch, page] = [idOf(request), request.window(0), request.page()]
      return Effect.gen(function* () {
        if (!(yield* resources.isCataloged(id))) return Option.none()
        return Option.some(yield* transactions.list({ resourceId: id.toString() }, stretch, page))
      })
    })
  ]
})

/** An account's own reports: its payments received as a seller, and every settlement in its favor. */
const makeOwn = Effect.gen(function* () {
  const { ofAccount } = yield* ReportRunner
  const participants = yield* Participants
  const transactions = yield* Transactions
  return [
    ofAccount(routes.ownTotals, (account, { read, window }) =>
      participants.one("seller", account, window(0), read.given("asset"))
    ),
    ofAccount(routes.ownTransactions, (payTo, { page, read, window }) => {
      const filter = { payTo, status: read.given("status"), resourceId: read.given("resourceId") }
      return some(transactions.list(filter, window(0), page()))
    })
  ]
})

export const addAnalyticsRoutes = Effect.gen(function* () {
  const groups = Effect.all([
    makeTotals,
    makeTransactions,
    makeParticipants("buyer"),
    makeParticipants("seller"),
    makeResources,
    makeOwn
  ])
  yield* addRoutes(routes.group, (yield* groups).flat())
})
