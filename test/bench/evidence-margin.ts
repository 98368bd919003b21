// `npm run bench -- evidence-margin [shared | own [MARGIN,…]]`: the cost of `search.evidence_margin` to the ranking. In
// each relevance set half of the listings, by a hash of their names, have evidence, and then the other half. This
// evidence is independent of relevance, so the right answer is as often behind the margin as before it. Prints for each
// margin nDCG@10 of the shared set and the shares of the own sets' questions with a right answer first and among three,
// without a key. The bar: the shipped margin costs at most two points of each, compared with no margin.
import { NodeServices } from "@effect/platform-node"
import { Effect } from "effect"
import { createHash } from "node:crypto"
import { startFacilitator } from "../support/facilitator.ts"
import { type Dataset, isPresent, loadDataset } from "../relevance/dataset.ts"
import { headlineOf, mean, ndcg10 } from "../relevance/figures.ts"
import { ingest, listingsOf } from "../relevance/ingest.ts"
import { type OwnSet, ownSet } from "../relevance/judged.ts"
import { untilIndexed } from "../relevance/untilIndexed.ts"

const margins = [0, 0.1, 0.2, 0.3, 0.5]
const shippedMargin = 0.3
const costMax = 0.02
const ownSets: ReadonlyArray<OwnSet> = ["judged", "trial", "second", "third", "fourth"]

interface Figures {
  readonly ndcg: number
  readonly first: number
  readonly three: number
  readonly questions: number
}

const halfOf = (name: string): number => createHash("sha256").update(`evidence ${name}`).digest()[0]! % 2

const measure = Effect.fnUntraced(function* (set: Dataset, margin: number, half: number) {
  const facilitator = yield* startFacilitator({
    database: "pglite",
    channels: 1,
    set: [`search.evidence_margin=${margin}`]
  })
  yield* facilitator.publishedBy(ingest(facilitator.sql, listingsOf(set)))
  yield* untilIndexed(facilitator, set.resources.length)
  const evidenced = set.resources.map(({ name }) => name).filter((name) => halfOf(name) === half)
  yield* facilitator.sql`update catalog_resources set standing_at = 'epoch'
    where key in (select jsonb_array_elements_text(${JSON.stringify(evidenced)}::jsonb))`
  const answered = set.queries.filter((query) => !query.expects_no_result && headlineOf(query))
  const each = yield* Effect.forEach(answered, (query) =>
    Effect.map(
      facilitator.ask(`/discovery/search?${new URLSearchParams({ query: query.query, ...query.filters })}`),
      ({ json }) => {
        const names = (json.resources as ReadonlyArray<{ name: string }>).map(({ name }) => name)
        const grades = set.grades.get(query.id) ?? new Map<string, number>()
        const isRight = (among: number) => names.slice(0, among).some((name) => (grades.get(name) ?? 0) >= 2)
        return { ndcg: ndcg10(names, grades), first: Number(isRight(1)), three: Number(isRight(3)) }
      }
    )
  )
  const of = (figure: "ndcg" | "first" | "three") => mean(each.map((one) => one[figure]))
  return { ndcg: of("ndcg"), first: of("first"), three: of("three"), questions: each.length } satisfies Figures
})

/** Over some sets and both halves, with equal weight for each question. */
const over = (sets: ReadonlyArray<Dataset>, margin: number) =>
  Effect.runPromise(
    Effect.forEach(
      sets.flatMap((set) => [0, 1].map((half) => [set, half] as const)),
      ([set, half]) => Effect.scoped(measure(set, margin, half))
    ).pipe(
      Effect.map((all): Figures => {
        const questions = all.reduce((sum, one) => sum + one.questions, 0)
        const of = (figure: "ndcg" | "first" | "three") =>
          all.reduce((sum, one) => sum + one[figure] * one.questions, 0) / questions
        return { ndcg: of("ndcg"), first: of("first"), three: of("three"), questions: questions / 2 }
      }),
      Effect.provide(NodeServices.layer)
    ) as Effect.Effect<Figures>
  )

export const bench = async (): Promise<boolean> => {
  const shared = isPresent ? loadDataset({}) : undefined
  const groups: ReadonlyArray<readonly [string, ReadonlyArray<Dataset>]> = [
    ...(shared === undefined ? [] : [["shared", [shared]] as const]),
    ["own", ownSets.map((name) => ownSet(name, name === "judged" ? (shared?.resources ?? []) : []))]
  ]
  let holds = true
  for (const [name, sets] of groups.filter(([name]) => (process.argv[3] ?? name) === name)) {
    const byMargin = new Map<number, Figures>()
    for (const margin of process.argv[4]?.split(",").map(Number) ?? margins) {
      const figures = await over(sets, margin)
      byMargin.set(margin, figures)
      const percent = (share: number) => `${(100 * share).toFixed(1)} %`
      console.log(
        `${name.padEnd(6)} margin ${margin}: nDCG@10 ${figures.ndcg.toFixed(3)}, first ${percent(figures.first)}, ` +
          `among three ${percent(figures.three)}; of ${figures.questions} questions`
      )
    }
    const [none, shipped] = [byMargin.get(0), byMargin.get(shippedMargin)]
    if (none === undefined || shipped === undefined) continue
    if (none.ndcg - shipped.ndcg > costMax || none.three - shipped.three > costMax) holds = false
  }
  return holds
}
