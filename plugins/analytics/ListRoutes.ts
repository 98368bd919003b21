// The routes that the pages read in addition to the reports: settlements by cursor, search, and the pulse of a range.
// Their parameters are read by the forms of `reports/parameters.ts`; a CSV has every match up to a bound.
import { Effect, Option } from "effect"
import type { QueryReader } from "../../kernel/http/readQuery.ts"
import { addRoutes } from "../../kernel/http/Route.ts"
import * as routes from "./description.ts"
import { readNetworkFilter } from "./reports/parameters.ts"
import { csvRowsMax, ReportRunner } from "./ReportRunner.ts"
import { Find } from "./reports/Find.ts"
import { Pulse, rangeOf } from "./reports/Pulse.ts"
import { Redaction } from "./reports/Redaction.ts"
import { Selling } from "./reports/Selling.ts"
import { isCursorOf, type ListFilter, SettlementList, type Sort } from "./reports/SettlementList.ts"

const millisPerDay = 86_400_000
const pulseDays = 30

const addressNames = ["payer", "payTo", "party"] as const

type FilterName = keyof (typeof routes.settlements.query)["fields"] & string

/** The filter of a list, with addresses as the caller gave them. */
const filterOf = (read: QueryReader<FilterName>): ListFilter => ({
  status: read.given("status"),
  reason: read.given("reason"),
  network: readNetworkFilter(read),
  scheme: read.given("scheme"),
  asset: read.given("asset"),
  principal: read.given("key"),
  payer: read.given("payer"),
  payTo: read.given("payTo"),
  party: read.given("party"),
  resourceId: read.given("resourceId"),
  origin: read.given("origin"),
  min: read.given("min"),
  max: read.given("max"),
  from: read.given("from"),
  to: read.given("to")
})

/** Amounts are only compared within one asset, so a limit or an order by amount needs the asset. */
const needsAsset = (filter: ListFilter, sort: Sort): boolean =>
  filter.asset === undefined &&
  (filter.min !== undefined || filter.max !== undefined || sort === "largest" || sort === "smallest")

const makeList = Effect.gen(function* () {
  const { reported } = yield* ReportRunner
  const redaction = yield* Redaction
  const settlements = yield* SettlementList

  return reported(routes.settlements, ({ isCsv, limit, read }) => {
    const filter = filterOf(read)
    const sort = (read.given("sort") ?? "newest") as Sort
    const cursor = read.given("cursor")
    if (cursor !== undefined && !isCursorOf(sort, cursor)) read.refuse("cursor: a cursor of this order")
    const rowsAsked = limit()
    if (needsAsset(filter, sort)) read.refuse("asset: required to compare amounts, which are in its atomic units")
    return Effect.gen(function* () {
      const plain: Record<string, string> = {}
      for (const name of addressNames) {
        const given = filter[name]
        if (given === undefined) continue
        const address = yield* redaction.resolve(given)
        if (Option.isNone(address))
          return Option.some({ items: [], pagination: { limit: rowsAsked, cursor: null, total: 0 } })
        plain[name] = address.value
      }
      const rows = isCsv ? csvRowsMax : rowsAsked
      return Option.some(yield* settlements.list({ ...filter, ...plain }, { sort, limit: rows, cursor }))
    })
  })
})

export const addListRoutes = Effect.gen(function* () {
  const { reported } = yield* ReportRunner
  const find = yield* Find
  const pulse = yield* Pulse
  const redaction = yield* Redaction
  const selling = yield* Selling
  yield* addRoutes(routes.group, [
    yield* makeList,
    reported(routes.find, ({ read }) => {
      const words = (read.given("q") ?? "").trim()
      if (words === "") read.refuse("q: what to find, 1 to 200 characters")
      return Effect.asSome(find.find(words))
    }),
    reported(routes.sellerResources, ({ inPath }) =>
      Effect.flatMap(
        redaction.resolve(inPath("address") ?? ""),
        Option.match({ onNone: () => Effect.succeedNone, onSome: selling.of })
      )
    ),
    reported(routes.pulse, ({ nowMillis, read }) => {
      const [from, to] = [read.given("from"), read.given("to")]
      const end = to === undefined ? nowMillis : Date.parse(to)
      const start = from === undefined ? end - pulseDays * millisPerDay : Date.parse(from)
      if (!(start < end)) read.refuse("from: a time before to")
      return Effect.asSome(pulse.of(rangeOf(start, end), read.given("asset")))
    })
  ])
})
