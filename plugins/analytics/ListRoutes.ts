// The routes that the pages read beside the reports: settlements by cursor, search, and the pulse of a range. Their
// parameters are read by the forms of `reports/parameters.ts`; a CSV has every match up to a bound.
import { Effect, Option } from "effect"
import { HttpRouter } from "effect/http"
import { type Asked, csvRowsMax, type Report, ReportRunner } from "./ReportRunner.ts"
import { Find } from "./reports/Find.ts"
import { Pulse, rangeOf } from "./reports/Pulse.ts"
import { Redaction } from "./reports/Redaction.ts"
import { Selling } from "./reports/Selling.ts"
import { type ListFilter, SettlementList, type Sort } from "./reports/SettlementList.ts"

const millisPerDay = 86_400_000
const pulseDays = 30

const addressNames = ["payer", "payTo", "party"] as const

/** The filter of a list, addresses as they were given. */
const filterOf = ({ asset, read }: Asked): ListFilter => ({
  status: read.given("status", "status"),
  reason: read.given("reason", "reason"),
  network: read.network(),
  scheme: read.given("scheme", "scheme"),
  asset: asset(),
  principal: read.given("key", "principal"),
  payer: read.given("payer", "address"),
  payTo: read.given("payTo", "address"),
  party: read.given("party", "address"),
  resourceId: read.given("resourceId", "id"),
  origin: read.given("origin", "origin"),
  min: read.given("min", "units"),
  max: read.given("max", "units"),
  from: read.given("from", "time"),
  to: read.given("to", "time")
})

/** Amounts are compared within one asset alone, so a bound or an order of amounts needs it. */
const needsAsset = (filter: ListFilter, sort: Sort): boolean =>
  filter.asset === undefined &&
  (filter.min !== undefined || filter.max !== undefined || sort === "largest" || sort === "smallest")

const addList = Effect.gen(function* () {
  const router = yield* HttpRouter.HttpRouter
  const { handler } = yield* ReportRunner
  const redaction = yield* Redaction
  const settlements = yield* SettlementList

  const report = (asked: Asked): Report => {
    const { isCsv, page, read } = asked
    const filter = filterOf(asked)
    const sort = (read.given("sort", "sort") ?? "newest") as Sort
    const cursor = read.given("cursor", "cursor")
    const { limit } = page()
    if (needsAsset(filter, sort)) read.refuse("asset: required to compare amounts, which are in its atomic units")
    return Effect.gen(function* () {
      const plain: Record<string, string> = {}
      for (const name of addressNames) {
        const given = filter[name]
        if (given === undefined) continue
        const address = yield* redaction.resolve(given)
        if (Option.isNone(address)) return Option.some({ items: [], pagination: { limit, cursor: null, total: 0 } })
        plain[name] = address.value
      }
      const rows = isCsv ? csvRowsMax : limit
      return Option.some(yield* settlements.list({ ...filter, ...plain }, { sort, limit: rows, cursor }))
    })
  }
  yield* router.add("GET", "/analytics/v1/settlements", handler(report))
})

export const addListRoutes = Effect.gen(function* () {
  const router = yield* HttpRouter.HttpRouter
  const { handler } = yield* ReportRunner
  const find = yield* Find
  const pulse = yield* Pulse
  const redaction = yield* Redaction
  const selling = yield* Selling
  yield* addList
  yield* router.add(
    "GET",
    "/analytics/v1/find",
    handler(({ read }) => {
      const words = (read.given("q", "words") ?? "").trim()
      if (words === "") read.refuse("q: what to find, 1 to 200 characters")
      return Effect.asSome(find.find(words))
    })
  )
  yield* router.add(
    "GET",
    "/analytics/v1/sellers/:address/resources",
    handler(({ inPath }) =>
      Effect.flatMap(
        redaction.resolve(inPath("address") ?? ""),
        Option.match({ onNone: () => Effect.succeedNone, onSome: selling.of })
      )
    )
  )
  yield* router.add(
    "GET",
    "/analytics/v1/pulse",
    handler(({ asset, nowMillis, read }) => {
      const [from, to] = [read.given("from", "time"), read.given("to", "time")]
      const end = to === undefined ? nowMillis : Date.parse(to)
      const start = from === undefined ? end - pulseDays * millisPerDay : Date.parse(from)
      if (!(start < end)) read.refuse("from: a time before to")
      return Effect.asSome(pulse.of(rangeOf(start, end), asset()))
    })
  )
})
