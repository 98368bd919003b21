// `npm run mutation`: changes operators of the code that decides about money, ownership, delivery, keys and policy, one
// at a time in a copy of the tree, and runs the nearest tests of each: tests within one process first, then process
// tests. `--seed N` and `--count N` choose the sample (today's date and 300), `--changed REF` takes only lines that
// changed since a commit, `--limit S` bounds the seconds of each run of tests, and further arguments keep only files
// with one of them in the path. A test counts only if it passes without the change. Prints every survivor with its
// change, then `N passed, N failed`: caught and survived. The exit status is 0 if at least 90 % were caught.
import { execFileSync, spawn } from "node:child_process"
import { once } from "node:events"
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { basename, join, relative } from "node:path"
import process from "node:process"
import { parseArgs } from "node:util"
import { root, type Source, sources, sourcesIn } from "../architecture/sources.ts"
import { makeRandom } from "../simulation/random.ts"
import { nearTests } from "./nearTests.ts"
import { type Operator, operatorsOf, sampleOf } from "./operators.ts"

const share = 0.9
/** Test files of each kind that run for a mutant, the nearest ones. */
const filesMax = { fast: 12, processes: 5 }

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

interface Report {
  readonly testResults: ReadonlyArray<{ readonly name: string; readonly status: string }>
}

type Outcome = { readonly failed: string | undefined; readonly isLate: boolean }

/** Runs test files of a copy until the first failure, or for the time limit. */
const runTests = async ({ folder, tree }: Copy, kind: "fast" | "processes", files: ReadonlyArray<string>) => {
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
    env: { ...process.env, [kind === "fast" ? "TOLLKEEPER_TEST_FAST" : "TOLLKEEPER_TEST_DAILY"]: "only" },
    stdio: "ignore"
  })
  let isLate = false
  const timer = setTimeout(() => {
    isLate = true
    process.kill(-child.pid!, "SIGKILL")
  }, limitMillis)
  const [code] = await once(child, "exit")
  clearTimeout(timer)
  if (isLate || code === 0) return { failed: undefined, isLate }
  const { testResults } = JSON.parse(await readFile(report, "utf8")) as Report
  const failed = testResults.find(({ status }) => status === "failed")?.name ?? files[0]!
  return { failed: failed.startsWith("/") ? relative(tree, failed) : failed, isLate }
}

const passesWithout = new Map<string, boolean>()

/** The first near test file that fails with a mutant, and passes without it. */
const catcherOf = async (copy: Copy, { end, path, start }: Operator, replacement: string): Promise<Outcome> => {
  const source = sources.find((one) => one.path === path)!
  const file = join(copy.tree, path)
  const near = nearTests(source)
  let isLate = false
  for (const kind of ["fast", "processes"] as const) {
    let files = near[kind].slice(0, filesMax[kind])
    while (files.length > 0) {
      await writeFile(file, source.text.slice(0, start) + replacement + source.text.slice(end))
      const outcome: Outcome = await runTests(copy, kind, files)
      await writeFile(file, source.text)
      isLate ||= outcome.isLate
      const { failed } = outcome
      if (failed === undefined) break
      if (!passesWithout.has(failed)) {
        const { failed: again, isLate: isSlow } = await runTests(copy, kind, [failed])
        passesWithout.set(failed, again === undefined && !isSlow)
      }
      if (passesWithout.get(failed) === true) return outcome
      console.log(`        ${failed} fails without a change, and is left out`)
      files = files.filter((one) => one !== failed)
    }
  }
  return { failed: undefined, isLate }
}

const { positionals: words, values } = parseArgs({
  allowPositionals: true,
  options: {
    seed: { type: "string", default: new Date().toISOString().slice(0, 10).replaceAll("-", "") },
    count: { type: "string", default: "300" },
    changed: { type: "string" },
    limit: { type: "string", default: "180" }
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

const copy = await openCopy()
let [caught, survived] = [0, 0]
try {
  for (const operator of sample) {
    const replacement = random.pick(operator.replacements)
    const place = `${operator.path}:${operator.line}  ${operator.text} → ${replacement}`
    const { failed, isLate } = await catcherOf(copy, operator, replacement)
    if (failed === undefined) survived += 1
    else caught += 1
    console.log(
      failed === undefined ? `${isLate ? "late    " : "survived"}  ${place}` : `caught    ${place}  ${failed}`
    )
  }
} finally {
  await rm(copy.folder, { recursive: true, force: true })
}
console.log(`${((100 * caught) / Math.max(1, caught + survived)).toFixed(1)} % caught`)
console.log(`${caught} passed, ${survived} failed`)
process.exitCode = caught >= share * (caught + survived) ? 0 : 1
