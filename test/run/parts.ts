// What the plans consist of. `check` is for every few minutes, `daily` is `npm test`, `full` is what is too long for
// every day, `sample` what continuous integration runs of that. A new suite of tests needs nothing here, because vitest
// finds files by name; a program of its own needs a line.
import process from "node:process"
import type { Part } from "./Part.ts"

export type PlanName = "check" | "daily" | "full" | "sample"

const node = process.execPath

/** The compiler with Effect's own checker in it, and what it learned last time. */
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
 * What is run on either database runs on both under Node, and on PostgreSQL under Deno, for twice of everything would
 * be a third of the time. The facilitator of a test that names no database has PostgreSQL on Node, where opening an
 * embedded one would be a quarter of the work, and the embedded one on Deno.
 */
const databasesOn = {
  Node: { ...both, TOLLKEEPER_TEST_FACILITATORS: "postgres" },
  Deno: { TOLLKEEPER_TEST_DATABASES: "postgres" }
}
const databaseWords = { Node: "PGlite and PostgreSQL", Deno: "PostgreSQL", pglite: "PGlite", postgres: "PostgreSQL" }

/**
 * Every test but the slow ones on one runtime: the fast files, which compute, and those of whole processes, which wait
 * about as long.
 */
const onRuntime = (runtime: "Node" | "Deno", command: string, words: ReadonlyArray<string>) => {
  const part = { command, args: [...words, ...vitest], figures: "vitest" } as const
  const env = { ...databasesOn[runtime], DENO_NO_UPDATE_CHECK: "1" }
  const fast: Part = {
    ...part,
    name: `fast tests on ${runtime}, ${databaseWords[runtime]}`,
    // They grow to two gigabytes each on Deno, and run beside tests of processes.
    args: [...part.args, "--maxWorkers=2"],
    env: { ...env, TOLLKEEPER_TEST_FAST: "only" },
    minutesMax: 15
  }
  /** Those of the tests of processes that `test/vitest.config.ts` has by this name; on one database alone, if named. */
  const processes = (which: "house" | "plugins" | "platform" | "others", database?: "pglite" | "postgres"): Part => ({
    ...part,
    name: `process tests on ${runtime}, ${databaseWords[database ?? runtime]}: ${which}`,
    env: {
      ...env,
      ...(database === undefined ? {} : { TOLLKEEPER_TEST_DATABASES: database }),
      TOLLKEEPER_TEST_DAILY: "only",
      TOLLKEEPER_TEST_PROCESSES: which
    },
    minutesMax: 33
  })
  return { fast, processes }
}

/** Of the tests of processes those of the plugins on each database apart. */
const onNode = () => {
  const { fast, processes } = onRuntime("Node", node, [])
  return {
    fast,
    house: processes("house"),
    pluginsOnServer: processes("plugins", "postgres"),
    pluginsEmbedded: processes("plugins", "pglite")
  }
}

/** Of the tests of processes those that meet the platform itself, and the others, apart. */
const onDeno = (deno: string) => {
  const { fast, processes } = onRuntime("Deno", deno, ["run", "-A"])
  return { fast, ofPlatform: processes("platform"), others: processes("others") }
}

const fast: Part = {
  name: "fast tests on PGlite",
  command: node,
  // A third would only import everything once more: these compute.
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
  minutesMax: 15
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
  minutesMax: 3
}

const mutation: Part = {
  name: "mutation: 60 operators of today's sample",
  command: node,
  args: ["test/mutation/run.ts", "--count", "60"],
  figures: "status",
  minutesMax: 20
}

const chaos: Part = {
  name: "chaos: 800 of the 2,000 payments",
  command: node,
  args: ["test/chaos/run.ts", "--payments", "800", "--kills", "6", "--failovers", "1"],
  figures: "status",
  minutesMax: 12
}

/** Part of the files, another one each day: all of them within `parts` days. */
const dailyShare = (part: Part, parts: number): Part => {
  const share = (Math.floor(Date.now() / 86_400_000) % parts) + 1
  return {
    ...part,
    name: `${part.name}, share ${share} of ${parts}`,
    args: [...part.args, `--shard=${share}/${parts}`]
  }
}

/**
 * What continuous integration runs of the full plan, within 50 minutes together with `npm test`: all of what meets
 * other programs, a share of what a platform or database alone makes different, fewer seeds.
 */
const sampleSteps = (deno: string): ReadonlyArray<Step> => {
  const conforming = conformanceOnDeno(deno)
  const fewSeeds = {
    ...simulation,
    name: "simulation: 450 of the 20,000 seeds",
    args: ["test/simulation/run.ts", "--runs", "450", "--least", "1"]
  }
  return [
    [[dailyShare(slow, 3)]],
    [[dailyShare(onDeno(deno).others, 4), dailyShare(onNode().pluginsEmbedded, 3)]],
    [
      [conformance, { ...conforming, args: [...conforming.args, "official", "restart"] }],
      [replay, exploration, fewSeeds, chaos, guides]
    ]
  ]
}

/** Parts that run one after another. */
type Lane = ReadonlyArray<Part>
/** Lanes that run beside each other. */
export type Step = ReadonlyArray<Lane>

/**
 * The steps of a plan, one after another. What computes (the checks of the sources, the fast tests, the search for
 * states that break money) runs beside what waits for processes and ledgers. The slow tests have the machine to
 * themselves, since some of them measure. Of the tests of processes those that meet the platform run on Deno every day,
 * and all others, whose code is the same on both runtimes, in the full run; the plugins' run on PostgreSQL every day,
 * and on the embedded database, which opens for each, in the full run. `deno` is the program to use as Deno.
 */
export const stepsOf = (plan: PlanName, deno: string): ReadonlyArray<Step> => {
  const checks = [format, lint, types]
  if (plan === "sample") return sampleSteps(deno)
  if (plan === "check") return [[[fast], checks]]
  const { fast: fastOnDeno, ofPlatform, others } = onDeno(deno)
  const { fast: fastOnNode, house, pluginsEmbedded, pluginsOnServer } = onNode()
  if (plan === "daily") return [[[house], [...checks, fastOnNode, fastOnDeno, ofPlatform, pluginsOnServer]]]
  return [
    [[slow]],
    [[others, pluginsEmbedded]],
    [
      [guides, conformance, conformanceOnDeno(deno)],
      [replay, exploration, simulation, chaos, mutation]
    ]
  ]
}
