// `npm run mutation -- NAME`: puts each defect of `NAME.ts` into a copy of the tree, by exact replacement, and runs the
// command that must catch it. A defect that is not caught, or whose text is not found exactly once, fails the run.
// First the command runs on the unchanged copy, where it must pass. Words after the name select defects that contain
// them.
import { spawn } from "node:child_process"
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import process from "node:process"
import { fileURLToPath } from "node:url"
import { stripVTControlCharacters } from "node:util"

export interface Mutation {
  readonly name: string
  /** Each replacement is made once; the text must stand in the file exactly once. */
  readonly changes: ReadonlyArray<{ readonly file: string; readonly from: string; readonly to: string }>
  /** Arguments of node, from the copy's root; caught when it exits with another status than 0. */
  readonly catcher: ReadonlyArray<string>
  readonly environment?: Readonly<Record<string, string>>
}

const root = fileURLToPath(new URL("../..", import.meta.url))
/** A catcher that runs longer than this has caught nothing. */
const timeoutMillis = 300_000

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

const runNode = (
  copy: string,
  args: ReadonlyArray<string>,
  environment: Readonly<Record<string, string>> = {}
): Promise<Outcome> =>
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

const [name, ...words] = process.argv.slice(2)
if (name === undefined || !/^[a-z0-9-]+$/.test(name)) {
  console.log("usage: npm run mutation -- NAME [WORD…], where test/mutation/NAME.ts exists")
  process.exitCode = 2
} else {
  const { mutations } = (await import(new URL(`${name}.ts`, import.meta.url).href)) as {
    readonly mutations: ReadonlyArray<Mutation>
  }
  const chosen = mutations.filter((mutation) => words.every((word) => mutation.name.includes(word)))
  const copy = await copyTree()
  let [caught, missed] = [0, 0]
  const say = (mutation: string, what: string) => console.log(`${mutation.padEnd(58)} ${what}`)
  /** Catchers that fail on the unchanged copy: what they fail on says nothing. */
  const broken = new Set<string>()
  try {
    for (const catcher of new Map(chosen.map((mutation) => [mutation.catcher.join(" "), mutation])).values()) {
      const { status, tail } = await runNode(copy, catcher.catcher, catcher.environment)
      say(
        `unchanged: ${catcher.catcher.slice(-3).join(" ")}`.slice(0, 57),
        status === 0 ? "passes" : `FAILS without any defect\n${tail}`
      )
      if (status !== 0) broken.add(catcher.catcher.join(" "))
    }
    for (const mutation of chosen) {
      if (broken.has(mutation.catcher.join(" "))) {
        missed += 1
        say(mutation.name, "MISSED  its command fails without it")
        continue
      }
      const before = new Map<string, string>()
      let isPlaced = true
      for (const { file, from, to } of mutation.changes) {
        const text = await readFile(join(copy, file), "utf8")
        if (!before.has(file)) before.set(file, text)
        isPlaced &&= text.split(from).length === 2
        await writeFile(
          join(copy, file),
          text.replace(from, () => to)
        )
      }
      const { status, tail } = isPlaced
        ? await runNode(copy, mutation.catcher, mutation.environment)
        : { status: "timeout" as const, tail: "" }
      const isCaught = isPlaced && status !== 0 && status !== "timeout"
      if (isCaught) caught += 1
      else missed += 1
      say(
        mutation.name,
        isCaught
          ? `caught  ${reasonOf(tail)}`
          : isPlaced
            ? `MISSED  ${status}`
            : "MISSED  its text is not in the file exactly once"
      )
      for (const [file, text] of before) await writeFile(join(copy, file), text)
    }
  } finally {
    await rm(copy, { recursive: true, force: true })
  }
  console.log(`${caught} caught, ${missed} missed`)
  process.exitCode = missed === 0 ? 0 : 1
}
