// `npm run mutation -- NAME…`: puts each defect of the lists into a copy of the tree and runs the command that must
// catch it; no name means every list. A defect that is not caught, or whose place is not found, fails the run. First
// each command runs on the unchanged copy, where it must pass. Words that name no list select defects whose names
// contain them; `--from 101 --to 150` takes that part of what is left of each list, `--every 10` a tenth of it. Two
// copies are worked on at a time, and a PostgreSQL server is started once for all.
import { spawn } from "node:child_process"
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import process from "node:process"
import { fileURLToPath } from "node:url"
import { parseArgs, stripVTControlCharacters } from "node:util"
import { startPostgresInMemory, type TestPostgres } from "../support/postgres.ts"
import { listNames, type Mutation, readList, withChange } from "./Mutation.ts"

const root = fileURLToPath(new URL("../..", import.meta.url))
/** A catcher that runs longer than this has caught nothing. */
const timeoutMillis = 600_000
/** Copies that are worked on at the same time; a catcher may itself use two cores. */
const copiesMax = 2

const copyTree = async (): Promise<string> => {
  const copy = await mkdtemp(join(tmpdir(), "tollkeeper-mutation-"))
  for (const name of ["kernel", "plugins", "runtime", "migrations", "test", "examples"]) {
    await cp(join(root, name), join(copy, name), { recursive: true, filter: (path) => !path.includes("node_modules") })
  }
  for (const name of ["package.json", "tsconfig.json", "deno.json"]) await cp(join(root, name), join(copy, name))
  await symlink(join(root, "node_modules"), join(copy, "node_modules"))
  return copy
}

interface Outcome {
  readonly status: number | "timeout"
  readonly tail: string
}

type Environment = Readonly<Record<string, string>>

/** The catcher's arguments: vitest stops at the first test that fails, and at one that hangs sooner than elsewhere. */
const argsOf = (catcher: ReadonlyArray<string>): ReadonlyArray<string> =>
  catcher[0]?.includes("vitest") === true ? [...catcher, "--bail=1", "--testTimeout=60000"] : catcher

const runNode = (copy: string, args: ReadonlyArray<string>, environment: Environment): Promise<Outcome> =>
  new Promise((resolve) => {
    const child = spawn(process.execPath, args, {
      cwd: copy,
      env: { ...process.env, ...environment },
      stdio: ["ignore", "pipe", "pipe"]
    })
    let tail = ""
    const keep = (chunk: Buffer) => {
      tail = (tail + chunk.toString()).slice(-3_000)
    }
    child.stdout.on("data", keep)
    child.stderr.on("data", keep)
    const timer = setTimeout(() => {
      child.kill("SIGKILL")
      resolve({ status: "timeout", tail })
    }, timeoutMillis)
    child.on("exit", (status) => {
      clearTimeout(timer)
      resolve({ status: status ?? 1, tail })
    })
  })

/** The line that says what broke. */
const reasonOf = (tail: string): string => {
  const lines = stripVTControlCharacters(tail)
    .split("\n")
    .map((line) => line.trim())
  return (lines.find((line) => /broke: |AssertionError|^→|SQL .*twin|Error: /.test(line)) ?? "").slice(0, 160)
}

const say = (what: string, how: string) => console.log(`${what.padEnd(58)} ${how}`)

/** Does each piece of work in one of the copies; a copy does one at a time. */
const inCopies = async <A>(
  copies: ReadonlyArray<string>,
  all: ReadonlyArray<A>,
  work: (one: A, copy: string) => Promise<void>
): Promise<void> => {
  const rest = [...all]
  const worker = async (copy: string) => {
    for (let one = rest.shift(); one !== undefined; one = rest.shift()) await work(one, copy)
  }
  await Promise.all(copies.map(worker))
}

/** Makes the defect in the copy; gives back what undoes it, or undefined when a place is not there. */
const place = async (mutation: Mutation, copy: string): Promise<(() => Promise<void>) | undefined> => {
  const originals = new Map<string, string>()
  const after = new Map<string, string>()
  for (const change of mutation.changes) {
    if (!originals.has(change.file)) originals.set(change.file, await readFile(join(copy, change.file), "utf8"))
    const changed = withChange(change, after.get(change.file) ?? originals.get(change.file)!)
    if (changed === undefined) return undefined
    after.set(change.file, changed)
  }
  for (const [file, text] of after) await writeFile(join(copy, file), text)
  return async () => {
    for (const [file, text] of originals) await writeFile(join(copy, file), text)
  }
}

/** Runs one list; the number of defects that were caught and missed. */
const runList = async (
  mutations: ReadonlyArray<Mutation>,
  copies: ReadonlyArray<string>,
  environment: Environment
): Promise<{ readonly caught: number; readonly missed: number }> => {
  let [caught, missed] = [0, 0]
  const run = (mutation: Mutation, copy: string, command = mutation.catcher) =>
    runNode(copy, argsOf(command), { ...environment, ...mutation.environment })
  /** Catchers that fail on the unchanged copy: what they fail on says nothing. */
  const broken = new Set<string>()
  const keyOf = ({ catcher }: Mutation) => catcher.join(" ")
  const catchers = [...new Map(mutations.map((mutation) => [keyOf(mutation), mutation])).values()]
  await inCopies(copies, catchers, async (mutation, copy) => {
    const { status, tail } = await run(mutation, copy, mutation.unchanged ?? mutation.catcher)
    const isSound = status === 0
    say(
      `unchanged: ${mutation.catcher.slice(-3).join(" ")}`.slice(0, 57),
      isSound ? "passes" : `FAILS without any defect\n${tail}`
    )
    if (!isSound) broken.add(keyOf(mutation))
  })
  await inCopies(copies, mutations, async (mutation, copy) => {
    const miss = (why: string) => {
      missed += 1
      say(mutation.name, `MISSED  ${why}`)
    }
    if (broken.has(keyOf(mutation))) return miss("its command fails without it")
    const undo = await place(mutation, copy)
    if (undo === undefined) return miss("its text is not in the file exactly once")
    const { status, tail } = await run(mutation, copy)
    await undo()
    if (status === 0 || status === "timeout") return miss(String(status))
    caught += 1
    say(mutation.name, `caught  ${reasonOf(tail)}`)
  })
  return { caught, missed }
}

const needsPostgres = ({ environment }: Mutation): boolean =>
  environment?.["TOLLKEEPER_TEST_DATABASES"]?.includes("postgres") === true

/** Selection from each list: entries whose names contain every word, of these a range, of it every n-th. */
interface Selection {
  readonly words: ReadonlyArray<string>
  /** First and last, counted from one. */
  readonly from: number
  readonly to: number
  readonly every: number
}

const selected = (all: ReadonlyArray<Mutation>, { every, from, to, words }: Selection): ReadonlyArray<Mutation> =>
  all
    .filter(({ name }) => words.every((word) => name.includes(word)))
    .slice(from - 1, to)
    .filter((_, index) => index % every === 0)

const main = async (names: ReadonlyArray<string>, selection: Selection): Promise<void> => {
  const started = performance.now()
  const lists = await Promise.all(
    names.map(async (name) => ({ name, mutations: selected(await readList(name), selection) }))
  )
  const all = lists.flatMap(({ mutations }) => mutations)
  let postgres: TestPostgres | undefined
  const copies: Array<string> = []
  let [caught, missed] = [0, 0]
  const sums: Array<string> = []
  try {
    if (all.some(needsPostgres)) postgres = await startPostgresInMemory()
    const environment: Environment = postgres === undefined ? {} : { TOLLKEEPER_TEST_DATABASE_URL: postgres.url }
    for (let count = Math.min(copiesMax, all.length); count > 0; count--) copies.push(await copyTree())
    for (const { mutations, name } of lists.filter(({ mutations }) => mutations.length > 0)) {
      const sum = await runList(mutations, copies, environment)
      caught += sum.caught
      missed += sum.missed
      sums.push(`${name}: ${sum.caught} caught, ${sum.missed} missed`)
      console.log(sums.at(-1))
    }
  } finally {
    for (const copy of copies) await rm(copy, { recursive: true, force: true })
    await postgres?.stop()
  }
  console.log(`\n${sums.join("\n")}`)
  const minutes = (performance.now() - started) / 60_000
  console.log(`${caught} caught, ${missed} missed in ${minutes.toFixed(1)} minutes`)
  process.exitCode = missed === 0 && caught > 0 ? 0 : 1
}

const { positionals: given, values } = parseArgs({
  allowPositionals: true,
  options: {
    from: { type: "string", default: "1" },
    to: { type: "string", default: "Infinity" },
    every: { type: "string", default: "1" }
  }
})
const known = given.filter((word) => listNames.includes(word))
const names = known.length === 0 ? listNames : known
await main(names, {
  words: given.filter((word) => !names.includes(word)),
  from: Number(values.from),
  to: Number(values.to),
  every: Number(values.every)
})
