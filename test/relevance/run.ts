// `npm run relevance`: how good search is, on the shared relevance set or on another one of its form (`--queries`,
// `--judgments`, `--dense`). Prints nDCG@10, MRR and recall@20 by class of query and in all, for the lexical branch,
// the recorded dense ranking and both fused; price queries and queries without a fitting resource stand apart. The last
// line is the figures.
import { Effect } from "effect"
import process from "node:process"
import { parseArgs } from "node:util"
import { isPresent, loadDataset } from "./dataset.ts"
import { headlineOf, mean, ndcg10, recall20, reciprocalRank } from "./figures.ts"
import { measure, type Mode } from "./measure.ts"

const { values } = parseArgs({
  options: {
    queries: { type: "string" },
    judgments: { type: "string" },
    dense: { type: "string" },
    database: { type: "string", default: "pglite" },
    set: { type: "string", multiple: true },
    each: { type: "boolean", default: false }
  }
})

const modes: ReadonlyArray<Mode> = ["lexical", "semantic", "hybrid"]
const titles = { lexical: "lexical", semantic: "dense", hybrid: "fused" }

if (!isPresent) {
  console.log("the relevance set is not there: ../shared/data/search-relevance")
  process.exitCode = 2
} else {
  const set = loadDataset(values)
  const measured = (await Effect.runPromise(
    measure(set, {
      database: values.database === "postgres" ? "postgres" : "pglite",
      set: values.set ?? []
    }) as Effect.Effect<any>
  )) as import("./measure.ts").Measured[]
  const graded = measured.map(({ query, rankings }) => {
    const grades = set.grades.get(query.id) ?? new Map<string, number>()
    return {
      query,
      of: (mode: Mode) => ({
        ndcg: ndcg10(rankings[mode], grades),
        mrr: reciprocalRank(rankings[mode], grades),
        recall: recall20(rankings[mode], grades)
      })
    }
  })
  const line = (name: string, some: typeof graded) => {
    const cells = modes.map((mode) => {
      const all = some.map(({ of }) => of(mode))
      return (
        `${titles[mode]} ${mean(all.map(({ ndcg }) => ndcg)).toFixed(3)} ` +
        `${mean(all.map(({ mrr }) => mrr)).toFixed(3)} ${mean(all.map(({ recall }) => recall)).toFixed(3)}`
      )
    })
    console.log(`${name.padEnd(18)} ${String(some.length).padStart(3)}  ${cells.join("  |  ")}`)
  }
  if (values.each) for (const one of graded) line(one.query.id, [one])
  console.log(`class              queries, then nDCG@10 MRR recall@20 for each ranking`)
  for (const [name, some] of Map.groupBy(graded, ({ query }) => query.class)) line(name, some)
  const headline = graded.filter(({ query }) => headlineOf(query))
  line(
    "first half",
    headline.filter((_, at) => at % 2 === 0)
  )
  line(
    "second half",
    headline.filter((_, at) => at % 2 === 1)
  )
  line("in all", headline)
  const { hybrid, lexical, semantic } = Object.fromEntries(
    modes.map((mode) => [mode, mean(headline.map(({ of }) => of(mode).ndcg))])
  ) as Record<Mode, number>
  console.log(
    `nDCG@10 lexical ${lexical.toFixed(4)} dense ${semantic.toFixed(4)} fused ${hybrid.toFixed(4)} over ` +
      `${headline.length} queries`
  )
  process.exitCode = lexical >= 0.7 && hybrid >= semantic ? 0 : 1
}
process.exit()
