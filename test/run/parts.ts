// The parts of the plans. `check` is for every few minutes, `daily` is `npm test`, `full` has the tests that are too
// long for every day, `sample` is the share of it that continuous integration runs. A new suite of tests needs no
// change here, because vitest finds files by name; a separate program needs a line.
import process from "node:process"
import { dailyGroups, everyDay } from "../conformance/conformanceParts.ts"
import type { Part } from "./Part.ts"

export type PlanName = "check" | "daily" | "full" | "sample"

const node = process.execPath

/** The compiler with Effect's own checker in it, and its incremental cache. */
const types: Part = {
  name: "types and effects",
  command: node,
  args: ["test/run/types.mjs"],
  figures: "status",
  minutesMax: 8
}

const format: Part = {
  name: "format",
  command: "test/tools/node_modules/.bin/oxfmt",
  args: ["--check", "."],
  figures: "status",
  minutesMax: 3
}

const lint: Part = {
  name: "lint",
  command: "test/tools/node_modules/.bin/oxlint",
  args: ["--quiet", "--deny-warnings", "."],
  figures: "status",
  minutesMax: 3
}

const vitest = ["node_modules/vitest/vitest.mjs", "run", "--config", "test/vitest.config.ts"]

const both = { TOLLKEEPER_TEST_DATABASES: "pglite,postgres" }
/**
 * Tests for either database run on both under Node, and on PostgreSQL under Deno, because running everything twice
 * would take a third of the time. A test that names no database uses PostgreSQL on Node, where opening an embedded one
 * would be a quarter of the work, and the embedded one on Deno.
 */
const databasesOn = {
  Node: { ...both, TOLLKEEPER_TEST_FACILITATORS: "postgres" },
  Deno: { TOLLKEEPER_TEST_DATABASES: "postgres" }
}
const databaseWords = { Node: "PGlite and PostgreSQL", Deno: "PostgreSQL", pglite: "PGlite", postgres: "PostgreSQL" }

/**
 * Every test except the slow ones on one runtime: the fast files, which compute, and those of whole processes, which
 * wait about as long.
 */
const onRuntime = (runtime: "Node" | "Deno", command: string, words: ReadonlyArray<string>) => {
  const part = { command, args: [...words, ...vitest], figures: "vitest" } as const
  const env = { ...databasesOn[runtime], DENO_NO_UPDATE_CHECK: "1" }
  const fast: Part = {
    ...part,
    name: `fast tests on ${runtime}, ${databaseWords[runtime]}`,
    // They grow to two gigabytes each on Deno, and run in parallel with process tests.
    args: [...part.args, "--maxWorkers=2"],
    env: { ...env, TOLLKEEPER_TEST_FAST: "only" },
    minutesMax: 15
  }
  /** The process tests of this name in `test/vitest.config.ts`; on one database only, if given. */
  const processes = (which: "house" | "plugins" | "platform" | "others", database?: "pglite" | "postgres"): Part => ({
    ...part,
    name: `process tests on ${runtime}, ${databaseWords[database ?? runtime]}: ${which}`,
    env: {
      ...env,
      ...(database === undefined ? {} : { TOLLKEEPER_TEST_DATABASES: database }),
      TOLLKEEPER_TEST_DAILY: "only",
      TOLLKEEPER_TEST_PROCESSES: which
    },
    minutesMax: 40
  })
  return { fast, processes }
}

/** The process tests run separately on each database, and those of the plugins apart from the others. */
const onNode = () => {
  const { fast, processes } = onRuntime("Node", node, [])
  return {
    fast,
    onServer: { house: processes("house", "postgres"), plugins: processes("plugins", "postgres") },
    embedded: { house: processes("house", "pglite"), plugins: processes("plugins", "pglite") }
  }
}

/** Among the process tests, tests of the platform itself run separately from the others. */
const onDeno = (deno: string) => {
  const { fast, processes } = onRuntime("Deno", deno, ["run", "-A"])
  return { fast, ofPlatform: processes("platform"), others: processes("others") }
}

const fast: Part = {
  name: "fast tests on PGlite",
  command: node,
  // A third worker would only import everything once more, since these tests compute.
  args: [...vitest, "--maxWorkers=2"],
  env: { TOLLKEEPER_TEST_FAST: "only" },
  figures: "vitest",
  minutesMax: 8
}

const slow: Part = {
  name: "slow tests on Node, PGlite and PostgreSQL",
  command: node,
  args: [...vitest, "--passWithNoTests"],
  env: { ...both, TOLLKEEPER_TEST_SLOW: "only" },
  figures: "vitest",
  minutesMax: 20
}

const conformance: Part = {
  name: "conformance",
  command: node,
  args: ["test/conformance/run.ts"],
  figures: "last-line",
  minutesMax: 28,
  again: true
}

const conformanceOnDeno = (deno: string): Part => ({
  ...conformance,
  name: "conformance, facilitator on Deno",
  command: deno,
  args: ["run", "-A", ...conformance.args]
})

/** Every block of README and of the guides, as a reader would run it. */
const guides: Part = {
  name: "guides",
  command: node,
  args: ["test/guides/run.ts"],
  figures: "last-line",
  minutesMax: 15
}

const replay: Part = {
  name: "replay",
  command: node,
  args: ["test/replay/replay.ts"],
  figures: "status",
  minutesMax: 4
}

const simulation: Part = {
  name: "simulation: 3,000 of the 20,000 seeds",
  command: node,
  args: ["test/simulation/run.ts", "--runs", "3000", "--least", "10"],
  figures: "status",
  minutesMax: 15
}

const exploration: Part = {
  name: "exploration: every state",
  command: node,
  args: ["test/model/run.ts"],
  figures: "status",
  minutesMax: 6
}

const mutation: Part = {
  name: "mutation: 30 operators of today's sample",
  command: node,
  args: ["test/mutation/run.ts", "--count", "30", "--limit", "120"],
  figures: "status",
  minutesMax: 40
}

const chaos: Part = {
  name: "chaos: 600 of the 2,000 payments",
  command: node,
  args: ["test/chaos/run.ts", "--payments", "600", "--kills", "6", "--failovers", "1"],
  figures: "status",
  minutesMax: 12
}

/** Days since 1970, by which the daily shares rotate. */
const today = (): number => Math.floor(Date.now() / 86_400_000)

/** A share of a part's files, another one each day: all of them within `shares` days. */
const dailyShare = (part: Part, shares: number, day: number): Part => {
  const share = (day % shares) + 1
  return {
    ...part,
    name: `${part.name}, share ${share} of ${shares}`,
    args: [...part.args, `--shard=${share}/${shares}`]
  }
}

/** Parts of a conformance run only. */
const conforming = (part: Part, only: ReadonlyArray<string>): Part => ({
  ...part,
  name: `${part.name}: ${only.join(", ")}`,
  args: [...part.args, ...only]
})

/**
 * The part of the full plan that continuous integration runs, within 50 minutes together with `npm test` on a machine
 * half as fast as a developer's: a share of the tests that differ only by runtime or database, of the slow tests, of
 * conformance and of the guides; fewer seeds. The lanes take about the same time.
 */
const sampleSteps = (deno: string, day: number): ReadonlyArray<Step> => {
  const { fast, ofPlatform, others } = onDeno(deno)
  const { embedded } = onNode()
  const fewSeeds = {
    ...simulation,
    name: "simulation: 450 of the 20,000 seeds",
    args: ["test/simulation/run.ts", "--runs", "450", "--least", "1"]
  }
  const group = dailyGroups[day % dailyGroups.length] ?? []
  return [
    [[dailyShare(slow, 10, day)]],
    [
      [
        dailyShare(ofPlatform, 3, day),
        dailyShare(others, 24, day),
        dailyShare(fast, 3, day),
        conforming(conformance, [...everyDay, ...group]),
        conforming(conformanceOnDeno(deno), everyDay)
      ],
      [
        dailyShare(embedded.house, 12, day),
        dailyShare(embedded.plugins, 12, day),
        replay,
        exploration,
        fewSeeds,
        chaos,
        dailyShare(guides, 4, day)
      ]
    ]
  ]
}

/** Parts that run one after another. */
type Lane = ReadonlyArray<Part>
/** Lanes that run in parallel. */
export type Step = ReadonlyArray<Lane>

/**
 * The sequential steps of a plan. Computing parts (the checks of the sources, the fast tests, the search for states
 * that break money) run in parallel with parts that wait for processes and ledgers. The slow tests have the machine to
 * themselves, since some of them measure. `npm test` runs the process tests on Node and PostgreSQL, one part after the
 * other: the four workers of each keep two processors busy. The full plan runs the same files on the embedded database,
 * which each test has to open, and on Deno. `deno` is the program to use as Deno; `day` chooses the shares of a sample.
 */
export const stepsOf = (plan: PlanName, deno: string, day: number = today()): ReadonlyArray<Step> => {
  const checks = [format, lint, types]
  if (plan === "sample") return sampleSteps(deno, day)
  if (plan === "check") return [[[fast], checks]]
  const { embedded, fast: fastOnNode, onServer } = onNode()
  if (plan === "daily")
    return [
      [
        [onServer.house, onServer.plugins],
        [...checks, fastOnNode]
      ]
    ]
  const { fast: fastOnDeno, ofPlatform, others } = onDeno(deno)
  return [
    [[slow]],
    [
      [fastOnDeno, ofPlatform, others],
      [embedded.house, embedded.plugins]
    ],
    [
      [guides, conformance, conformanceOnDeno(deno)],
      [replay, exploration, simulation, chaos, mutation]
    ]
  ]
}
