// `npm run mutation`: changes operators of the code that decides about money, ownership, delivery, keys and policy, one
// at a time in a copy of the tree, and runs the nearest tests of each: tests within one process first, then process
// tests, then slow tests, until one fails. `--seed N` and `--count N` choose the sample (today's date and 300),
// `--changed REF` takes only lines that changed since a commit, `--limit S` is the time for each operator, and further
// arguments keep only files with one of them in the path. A test counts only if it passes without the change. Tests
// that hang with the change alone count as well, and are marked as late. Prints every survivor with its change, then
// `N passed, N failed`: caught and survived. The exit status is 0 if at least 90 % were caught.
import { execFileSync, spawn } from "node:child_process"
import { once } from "node:events"
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { basename, join, relative } from "node:path"
import process from "node:process"
import { parseArgs } from "node:util"
import { root, type Source, sources, sourcesIn } from "../architecture/sources.ts"
import { makeRandom } from "../simulation/random.ts"
import { startPostgresInMemory } from "../support/postgres.ts"
import { nearTests } from "./nearTests.ts"
import { type Operator, operatorsOf, sampleOf } from "./operators.ts"

const share = 0.9
/** Files of the first run of tests; each later run has twice as many. A run's start takes seconds. */
const filesOfRun = { fast: 4, processes: 2, slow: 1 }
/** Share of the time after which no further run of a kind begins. */
const timeShare = { fast: 0.3, processes: 0.7, slow: 1 }
type Kind = keyof typeof filesOfRun

/** Code where a defect costs money, ownership, delivery or keys. */
const decisive = [
  "kernel/accounts",
  "kernel/audit",
  "kernel/budget",
  "kernel/http",
  "kernel/ledger",
  "kernel/payment",
  "kernel/settlement",
  "kernel/signer",
  "kernel/stellar",
  "plugins/batch-store",
  "plugins/catalog",
  "plugins/mcp-tools-pay",
  "plugins/receipts",
  "plugins/webhooks",
  "plugins/x402-batch",
  "plugins/x402-exact",
  "plugins/x402-upto"
]

/** Descriptions of routes, settings and metrics hold no decisions. */
const isDescriptive = ({ path }: Source): boolean => /(description|metrics|Config|OpenApi)\.ts$/.test(path)

/** Line numbers of the new side of a diff, by file. */
const changedSince = (ref: string): ReadonlyMap<string, ReadonlySet<number>> => {
  const changed = new Map<string, Set<number>>()
  let path = ""
  const diff = execFileSync("git", ["diff", "-U0", ref, "--", ...decisive], { cwd: root, encoding: "utf8" })
  for (const line of diff.split("\n")) {
    const file = /^\+\+\+ b\/(.*)$/.exec(line)
    if (file !== null) path = file[1]!
    const hunk = /^@@ -\S+ \+(\d+)(?:,(\d+))? @@/.exec(line)
    if (hunk === null) continue
    const [first, count] = [Number(hunk[1]), Number(hunk[2] ?? 1)]
    const lines = changed.get(path) ?? new Set<number>()
    for (let index = 0; index < count; index++) lines.add(first + index)
    changed.set(path, lines)
  }
  return changed
}

const isChanged =
  (changed: ReadonlyMap<string, ReadonlySet<number>>) =>
  ({ line, path }: Operator): boolean =>
    changed.get(path)?.has(line) === true

interface Copy {
  readonly folder: string
  readonly tree: string
}

/** A copy of the tree, which shares the installed packages. */
const openCopy = async (): Promise<Copy> => {
  const folder = await mkdtemp(join(tmpdir(), "tollkeeper-mutation-"))
  const tree = join(folder, "tree")
  const left = new Set(["node_modules", ".git", ".tollkeeper", "dist"])
  await cp(root, tree, { recursive: true, filter: (path) => !left.has(basename(path)) })
  await symlink(join(root, "node_modules"), join(tree, "node_modules"))
  await symlink(join(root, "..", "shared"), join(folder, "shared"))
  return { folder, tree }
}

interface Status {
  readonly status: string
}

interface Report {
  readonly testResults: ReadonlyArray<
    Status & { readonly name: string; readonly assertionResults: ReadonlyArray<Status> }
  >
}

const hasFailed = ({ status }: Status): boolean => status === "failed"

interface Outcome {
  /** The file that failed. */
  readonly failed: string | undefined
  /** Whether the time ended first. */
  readonly isLate: boolean
}

/** As `npm test` runs them: the process tests on PostgreSQL, here one server for all. */
const environmentOf = (kind: Kind) =>
  kind === "fast"
    ? { TOLLKEEPER_TEST_FAST: "only" }
    : {
        [kind === "slow" ? "TOLLKEEPER_TEST_SLOW" : "TOLLKEEPER_TEST_DAILY"]: "only",
        TOLLKEEPER_TEST_DATABASES: "postgres",
        TOLLKEEPER_TEST_FACILITATORS: "postgres",
        TOLLKEEPER_TEST_DATABASE_URL: postgres.url
      }

/** Runs test files of a copy until the first failure, or until the time ends. */
const runTests = async (
  { folder, tree }: Copy,
  kind: Kind,
  files: ReadonlyArray<string>,
  millis = limitMillis
): Promise<Outcome> => {
  const report = join(folder, "report.json")
  await rm(report, { force: true })
  const words = [
    "run",
    "--config",
    "test/vitest.config.ts",
    "--bail=1",
    "--maxWorkers=2",
    "--reporter=json",
    `--outputFile=${report}`
  ]
  const child = spawn(process.execPath, [join(root, "node_modules/vitest/vitest.mjs"), ...words, ...files], {
    cwd: tree,
    detached: true,
    env: { ...process.env, ...environmentOf(kind) },
    stdio: "ignore"
  })
  let isLate = false
  const timer = setTimeout(() => {
    isLate = true
    process.kill(-child.pid!, "SIGKILL")
  }, millis)
  const [code] = await once(child, "exit")
  clearTimeout(timer)
  if (isLate || code === 0) return { failed: undefined, isLate }
  const { testResults } = JSON.parse(await readFile(report, "utf8")) as Report
  // The first failure stops the other files of the run, which are reported as failed too.
  const first =
    testResults.find(({ assertionResults }) => assertionResults.some(hasFailed)) ?? testResults.find(hasFailed)
  const failed = first?.name ?? files[0]!
  return { failed: failed.startsWith("/") ? relative(tree, failed) : failed, isLate }
}

/** Whether files pass without a change, by the files and their time. */
const passing = new Map<string, boolean>()
const passingKey = (files: ReadonlyArray<string>, millis = limitMillis): string => [millis, ...files].join()

const passWithout = async (
  copy: Copy,
  kind: Kind,
  files: ReadonlyArray<string>,
  millis = limitMillis
): Promise<boolean> => {
  const key = passingKey(files, millis)
  if (!passing.has(key)) {
    const { failed, isLate } = await runTests(copy, kind, files, millis)
    passing.set(key, failed === undefined && !isLate)
  }
  return passing.get(key)!
}

type Verdict = "caught" | "late" | "survived"

/** Runs the near tests of a mutant. Returns the verdict and the file that failed, or the files that did not end. */
const judge = async (copy: Copy, { end, path, start }: Operator, replacement: string): Promise<[Verdict, string]> => {
  const source = sources.find((one) => one.path === path)!
  const file = join(copy.tree, path)
  const begun = performance.now()
  const near = nearTests(source)
  let isSlow = false
  for (const kind of ["fast", "processes", "slow"] as const) {
    let left = near[kind].filter((one) => passing.get(passingKey([one])) !== false)
    for (let count = filesOfRun[kind]; left.length > 0; count *= 2) {
      if (performance.now() - begun > timeShare[kind] * limitMillis) break
      const files = left.slice(0, count)
      await writeFile(file, source.text.slice(0, start) + replacement + source.text.slice(end))
      const { failed, isLate } = await runTests(copy, kind, files)
      await writeFile(file, source.text)
      // A slow machine is late as well, but not by half.
      if (isLate && (await passWithout(copy, kind, files, limitMillis / 2))) return ["late", files.join(", ")]
      isSlow ||= isLate
      if (failed !== undefined && (await passWithout(copy, kind, [failed]))) return ["caught", failed]
      if (failed !== undefined) console.log(`        ${failed} fails without a change, and is left out`)
      left = left.filter((one) => (failed === undefined ? !files.includes(one) : one !== failed))
    }
  }
  return ["survived", isSlow ? "(the time ended before some tests did)" : ""]
}

const { positionals: words, values } = parseArgs({
  allowPositionals: true,
  options: {
    seed: { type: "string", default: new Date().toISOString().slice(0, 10).replaceAll("-", "") },
    count: { type: "string", default: "300" },
    changed: { type: "string" },
    limit: { type: "string", default: "300" }
  }
})
const limitMillis = Number(values.limit) * 1_000

const inScope = values.changed === undefined ? () => true : isChanged(changedSince(values.changed))
const candidates = sourcesIn(...decisive)
  .filter((source) => !isDescriptive(source))
  .filter(({ path }) => words.length === 0 || words.some((word) => path.includes(word)))
  .flatMap(operatorsOf)
  .filter(inScope)
const random = makeRandom(Number(values.seed))
const sample = sampleOf(candidates, Number(values.count), random)
console.log(`seed ${values.seed}: ${sample.length} of ${candidates.length} operators`)

const postgres = await startPostgresInMemory()
const copy = await openCopy()
const counts = { caught: 0, late: 0, survived: 0 }
try {
  for (const operator of sample) {
    const replacement = random.pick(operator.replacements)
    const [verdict, by] = await judge(copy, operator, replacement)
    counts[verdict] += 1
    console.log(
      `${verdict.padEnd(8)}  ${operator.path}:${operator.line}  ${operator.text} → ${replacement}  ${by}`.trimEnd()
    )
  }
} finally {
  await rm(copy.folder, { recursive: true, force: true })
  await postgres.stop()
}
const found = counts.caught + counts.late
const all = Math.max(1, found + counts.survived)
const percent = (count: number) => `${((100 * count) / all).toFixed(1)} %`
console.log(`${percent(found)} caught, ${percent(counts.late)} of them late`)
console.log(`${found} passed, ${counts.survived} failed`)
process.exitCode = found >= share * all ? 0 : 1
