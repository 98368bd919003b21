// `npm run mutation`: changes operators of the code that decides about money, ownership, delivery, keys and policy, one
// at a time, and runs the fast tests that cover each. StrykerJS makes the changes and runs the tests; this program
// draws the sample. `--seed N` and `--count N` choose it (today's date and 300), `--changed REF` takes only lines that
// changed since a commit, and further arguments keep only files with one of them in the path. Prints every survivor
// with its change, then `N passed, N failed`: caught and survived. The exit status is 0 if at least 90 % were caught.
import { execFileSync, spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import process from "node:process"
import { parseArgs } from "node:util"
import { install } from "../../runtime/bootstrap.mjs"
import { root, type Source, sourcesIn } from "../architecture/sources.ts"
import { makeRandom } from "../simulation/random.ts"
import { type Operator, operatorsOf, sampleOf } from "./operators.ts"

const share = 0.9

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
const isDescriptive = ({ path }: Source): boolean => /description\.ts$|metrics\.ts$|Config\.ts$/.test(path)

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
  ({ lastLine, line, path }: Operator): boolean =>
    Array.from({ length: lastLine - line + 1 }, (_, index) => line + index).some((at) => changed.get(path)?.has(at))

interface Mutant {
  readonly status: string
  readonly mutatorName: string
  readonly replacement: string
  readonly location: { readonly start: { readonly line: number; readonly column: number } }
}

interface Report {
  readonly files: Readonly<Record<string, { readonly mutants: ReadonlyArray<Mutant> }>>
}

const runStryker = async (operators: ReadonlyArray<Operator>): Promise<Report> => {
  const folder = await mkdtemp(join(tmpdir(), "tollkeeper-mutation-"))
  const fileName = join(folder, "report.json")
  const settings = {
    testRunner: "vitest",
    plugins: [join(root, "test/mutation/node_modules/@stryker-mutator/vitest-runner/dist/src/index.js")],
    vitest: { configFile: "test/vitest.config.ts", related: true },
    mutate: operators.map(({ range }) => range),
    // The compiler's own API is not there in TypeScript 7; the sources run without it.
    tsconfigFile: "none",
    disableTypeChecks: false,
    mutator: {
      excludedMutations: ["StringLiteral", "ObjectLiteral", "ArrayDeclaration", "BlockStatement", "ArrowFunction"]
    },
    coverageAnalysis: "perTest",
    ignoreStatic: true,
    concurrency: 2,
    timeoutMS: 60_000,
    dryRunTimeoutMinutes: 20,
    reporters: ["json", "progress-append-only"],
    jsonReporter: { fileName },
    tempDirName: join(folder, "copies"),
    ignorePatterns: ["test/official/*/node_modules", "test/tools", "dist", ".tollkeeper"]
  }
  await writeFile(join(folder, "settings.json"), JSON.stringify(settings))
  try {
    const stryker = join(root, "test/mutation/node_modules/@stryker-mutator/core/bin/stryker.js")
    const child = spawn(process.execPath, [stryker, "run", join(folder, "settings.json")], {
      cwd: root,
      env: { ...process.env, TOLLKEEPER_TEST_FAST: "only" },
      stdio: ["ignore", "inherit", "inherit"]
    })
    const [code] = await once(child, "exit")
    if (code !== 0) throw new Error(`StrykerJS ended with ${code}`)
    return JSON.parse(await readFile(fileName, "utf8")) as Report
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

const isCaught = ({ status }: Mutant): boolean => status === "Killed" || status === "Timeout"
const isSurvivor = ({ status }: Mutant): boolean => status === "Survived" || status === "NoCoverage"

const { positionals: words, values } = parseArgs({
  allowPositionals: true,
  options: {
    seed: { type: "string", default: new Date().toISOString().slice(0, 10).replaceAll("-", "") },
    count: { type: "string", default: "300" },
    changed: { type: "string" }
  }
})

const inScope = values.changed === undefined ? () => true : isChanged(changedSince(values.changed))
const candidates = sourcesIn(...decisive)
  .filter((source) => !isDescriptive(source))
  .filter(({ path }) => words.length === 0 || words.some((word) => path.includes(word)))
  .flatMap(operatorsOf)
  .filter(inScope)
const sample = sampleOf(candidates, Number(values.count), makeRandom(Number(values.seed)))
console.log(`seed ${values.seed}: ${sample.length} of ${candidates.length} operators`)
if (sample.length === 0) {
  console.log("0 passed, 0 failed")
  process.exit(0)
}

install(join(root, "test/mutation"), "StrykerJS")
const { files } = await runStryker(sample)
const all = Object.entries(files).flatMap(([path, { mutants }]) => mutants.map((mutant) => ({ ...mutant, path })))
for (const { location, mutatorName, path, replacement, status } of all.filter(isSurvivor)) {
  const place = `${path}:${location.start.line}:${location.start.column}`
  console.log(`${status === "Survived" ? "survived" : "no test "}  ${place}  ${mutatorName}: ${replacement}`)
}
const [caught, survived] = [all.filter(isCaught).length, all.filter(isSurvivor).length]
console.log(`${((100 * caught) / Math.max(1, caught + survived)).toFixed(1)} % caught`)
console.log(`${caught} passed, ${survived} failed`)
process.exitCode = caught >= share * (caught + survived) ? 0 : 1
