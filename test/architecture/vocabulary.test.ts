// One vocabulary (`kernel/vocabulary.md`): words that hide the actor or the mechanism are refused in identifiers,
// comments (joined over lines), strings, SQL of sources, help, guides and test titles. Only names that a table, the
// wire or another project fixes are allowed.
import { describe, expect, it } from "vitest"
import { readText, textFiles } from "./sources.ts"

const refusedWords = new Set(
  (
    "nobody somebody anybody everybody whoever whom tell tells told telling look looks looked looking stand stands " +
    "standing standings stood hear hears heard hearing lend lends lent gathered remembered judged judges judgement"
  ).split(" ")
)
const refusedPhrases = /\b(?:of before|so many|at once|the house|goes on|is away|are away|in vain)\b/i
/** A lookup, a stand-in and lookalikes are terms of the field. */
const terms = /\blook(?:s|ed|ing)?[- ]?(?:up|alike)s?\b|\bstand-?ins?\b/gi

/** Names that are fixed outside the sources, each with the files that may contain it. */
const fixed: ReadonlyArray<readonly [name: RegExp, where: RegExp]> = [
  // Tables and columns.
  [/^(?:analytics_)?standings$|^0002_standings$|^writeStandings$/, /analytics|fromVersion01|viewsFill|attack\.daily/],
  [/^(?:catalog_looks|looks|stands|standing_at|last_look_at)$/, /catalog|evidence-margin/],
  // Members, routes, facts, settings and roles of the wire.
  [
    /^(?:lastLook|lastLookAt|look|lookAtOrigin|standing)$/,
    /catalog|guides|openapi|contract|browser|search|examples\/client|[rR]oute(?:s\.md|Requests)|attackers|outgoing/
  ],
  [/^(?:told_at|toldAt|remembered_minutes|max_parallel_workers_per_gather)$/, /./],
  [
    /^(?:standing|FacilitatorStanding|nobody)$/,
    /dashboard|browser|scenarios|contract|views|examples\/client|routes\.md/
  ],
  // A user of the system, and a user name that no database has.
  [/^nobody$/, /postgres|onboarding/],
  // Information retrieval's term for queries with graded results.
  [/^judged$/, /relevance|bench|search/],
  [/^Standing$/, /names\.test/]
]

/** Generated, foreign or recorded text, lists of natural language, and the two files that list the refused words. */
const isForeign = (path: string): boolean =>
  /^test\/official\/|^test\/(?:relevance|replay)\/.*\.(?:json|tsv|txt)$|package-lock|schema\.sql$|^CHANGELOG/.test(
    path
  ) ||
  /search-lexical\/(?:lexicon|commonWords|commonShares|words|relationTable|languages)\.ts$/.test(path) ||
  path.endsWith("catalog/search/readFrame.ts") ||
  ["kernel/vocabulary.md", "test/architecture/vocabulary.test.ts"].includes(path)

const partsOf = (name: string): ReadonlyArray<string> =>
  name
    .replace(/([a-z0-9])([A-Z])/g, "$1 $2")
    .replaceAll("_", " ")
    .toLowerCase()
    .split(" ")

/** Joins consecutive comment lines. */
const withCommentsJoined = (text: string): string => text.replace(/\n[ \t]*(?:\/\/|\*(?!\/)|#)[ \t]*/g, " ")

const refusedIn = (path: string, text: string): ReadonlyArray<string> => {
  const joined = withCommentsJoined(text).replace(terms, "")
  const names = joined.match(/[A-Za-z0-9_]+/g) ?? []
  const words = names.filter(
    (name) =>
      partsOf(name).some((part) => refusedWords.has(part)) &&
      !fixed.some(([of, where]) => of.test(name) && where.test(path))
  )
  const phrase = refusedPhrases.exec(joined.replace(/([a-z])([A-Z])/g, "$1 $2"))?.[0]
  return [...words, ...(phrase === undefined ? [] : [phrase])]
}

const files = textFiles.filter(
  (path) =>
    /^(?:kernel|plugins|runtime|examples|test)\/|^README/.test(path) &&
    /\.(?:ts|mjs|md|ya?ml)$/.test(path) &&
    !isForeign(path)
)

describe("the vocabulary", () => {
  it("is that of the field in every file", () => {
    expect(files.length).toBeGreaterThan(1_000)
    const found = files.flatMap((path) => {
      const refused = refusedIn(path, readText(path))
      return refused.length === 0 ? [] : [`${path}: ${[...new Set(refused)].join(", ")}`]
    })
    expect(found).toEqual([])
  })

  it.each([
    ["an identifier", "const toldOf = 1"],
    ["a comment over lines", "// the page is made for\n// whoever asks"],
    ["a phrase over lines", "// all of them at\n// once"],
    ["SQL", "sql`select heard from t`"],
    ["a title", 'it("stands as it did")']
  ])("would catch %s", (_, text) => {
    expect(refusedIn("kernel/x.ts", text)).toHaveLength(1)
  })

  it("leaves terms of the field and fixed names alone", () => {
    expect(refusedIn("kernel/x.ts", "// looked up in a stand-in; standard, standby and standalone")).toEqual([])
    expect(refusedIn("plugins/catalog/x.ts", "sql`select stands from catalog_probes`")).toEqual([])
  })

  it("is described in a page of about fifty terms", () => {
    const rows = readText("kernel/vocabulary.md").match(/^\| (?!term|---)/gm) ?? []
    expect(rows.length).toBeGreaterThan(45)
  })
})
