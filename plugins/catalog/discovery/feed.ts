// A saved query as a feed (JSON Feed 1.1): its results with evidence, the newest evidence first. A mere claim costs
// nothing, so it is not in a feed, and its writer cannot push others out. Texts of sellers are `content_text`, never
// HTML.
import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { Config } from "../Config.ts"
import type { Filters } from "../contract.ts"
import type { StoredBody } from "../store/ResourceWire.ts"
import { conditionOf } from "./conditions.ts"

const itemsMax = 30

interface Row {
  readonly type: string
  readonly resource: string
  readonly tool_name: string
  readonly about: StoredBody["about"]
  readonly standing_at: Date
  readonly updated_at: Date
}

const itemOf = ({ about, resource, standing_at, tool_name, type, updated_at }: Row) => ({
  id: [type, resource, tool_name].filter((part) => part !== "").join(" "),
  url: resource,
  title: tool_name === "" ? (about.serviceName ?? resource) : tool_name,
  content_text: about.description ?? "",
  date_published: standing_at.toISOString(),
  date_modified: updated_at.toISOString(),
  tags: about.tags ?? []
})

export const makeFeed = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const config = yield* Config
  return Effect.fnUntraced(function* (
    title: string,
    filters: Filters,
    ids: ReadonlyArray<bigint> | undefined
  ): Effect.fn.Return<string, SqlError.SqlError> {
    const among = ids === undefined ? sql`true` : sql`r.id = any(${`{${ids.join(",")}}`}::int8[])`
    const rows = yield* sql<Row>`select r.type, r.resource, r.tool_name, r.declaration->'about' as about, r.standing_at,
        r.updated_at
      from catalog_resources r
      where r.standing_at is not null and ${among} and ${conditionOf(sql, config, filters)}
      order by r.standing_at desc, r.id desc limit ${sql.literal(String(itemsMax))}`.unprepared
    return JSON.stringify({ version: "https://jsonfeed.org/version/1.1", title, items: rows.map(itemOf) })
  })
})
