// The project's own relevance sets, graded before anything was tuned to them (grades 0 to 3; an ungraded pair is 0, a
// query without any grade has no answer). `judged` has 200 made-up listings and 80 queries over them and, where it is
// there, the shared 500 resources; `trial` has 60 listings of other fields and 64 queries, as a newcomer would try
// them; `second` is another try of 60 listings as their sellers write them, eight of them in other languages, and 86
// queries, some in a language that no listing with their answer is in; `third` is one more of 60 listings, of other
// trades, and 85 queries, sixteen of them without an answer; `fourth` has 60 of other fields again, and 84 queries,
// sixteen without an answer. A query belongs to one half or the other by a hash of its id: what is tuned is tuned on
// the first half alone. `spanish`, `russian` and `japanese` are thirty questions each, as speakers of these languages
// ask, four of them without an answer, over the listings of all these sets together and the shared 500 resources; and
// twelve more of class `drawn`, about listings drawn by lot, written when the lexicon of these languages was there and
// never changed for them.
import { createHash } from "node:crypto"
import { readFileSync } from "node:fs"
import { Option } from "effect"
import { resourceDocument } from "../plugins/search-lexical/resourceDocument.ts"
import type { Dataset, RawResource, RelevanceQuery } from "./dataset.ts"

export const ownSets = ["judged", "trial", "second", "third", "fourth"] as const
export type OwnSet = (typeof ownSets)[number]

export const languageSets = ["spanish", "russian", "japanese"] as const
export type LanguageSet = (typeof languageSets)[number]

export const isLanguageSet = (set: string): set is LanguageSet => languageSets.some((one) => one === set)

const rows = (set: OwnSet | LanguageSet, file: string): ReadonlyArray<ReadonlyArray<string>> =>
  readFileSync(new URL(`${set}/${file}`, import.meta.url), "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => line.split("\t"))

const asset = "CBIELTK6YBZJU5UP2WWQEUCYKLPU6AUNZ2BQ4WWFEIE3USCIHMXQDAMA"

const resourceOf = (
  [name, type, url, tool, service, tags, description, amount, seller]: ReadonlyArray<string>,
  at: number
) => {
  const toolName = tool === "-" ? "" : tool!
  const option = { scheme: "exact", network: "stellar:testnet", asset, amount: amount!, payTo: `GOWN${seller}` }
  const raw: RawResource = {
    id: name!,
    type: type as "http" | "mcp",
    resource: { url: url!, description: description!, serviceName: service!, tags: tags!.split(",") },
    accepts: [option],
    ...(toolName === "" ? {} : { mcp: { server_name: service!, tool_name: toolName } })
  }
  const document = resourceDocument({
    id: BigInt(10_000 + at),
    type: raw.type,
    resource: url!,
    toolName,
    origin: Option.some(new URL(url!).origin),
    serviceName: service!,
    description: description!,
    tags: tags!.split(",")
  })
  return { name: name!, raw, document }
}

export const halfOf = (id: string): "tuning" | "held" =>
  createHash("sha256").update(id).digest()[0]! % 2 === 0 ? "tuning" : "held"

/** The listings of a set of questions in another language: those of all own sets, named by set. */
const allListings = (): Dataset["resources"] =>
  ownSets
    .flatMap((set) => rows(set, "listings.tsv").map((row) => [`${set}.${row[0]}`, ...row.slice(1)]))
    .map(resourceOf)

/** A set, over these resources besides its own. */
export const ownSet = (set: OwnSet | LanguageSet, others: Dataset["resources"] = []): Dataset => {
  const queries = rows(set, "queries.tsv")
  return {
    resources: [...(isLanguageSet(set) ? allListings() : rows(set, "listings.tsv").map(resourceOf)), ...others],
    queries: queries.map(([id, kind, query, filters, grades]): RelevanceQuery => ({
      id: id!,
      class: kind!,
      query: query!,
      filters: filters === "-" ? {} : (JSON.parse(filters!) as Record<string, string>),
      expects_no_result: grades === "-"
    })),
    grades: new Map(
      queries.map(([id, , , , grades]) => [
        id!,
        new Map(
          grades === "-"
            ? []
            : grades!.split(",").map((one): [string, number] => [one.split(":")[0]!, Number(one.split(":")[1])])
        )
      ])
    ),
    dense: new Map()
  }
}
