// A newcomer's first minute, executed for real and timed: install, start, pay, read, stop, reset. Once in an empty
// folder with the package that `npm pack` makes, once in a fresh clone, each on Node or on Deno. Ports are free ones.
// From outside it only needs the npm registry.
import { type ChildProcess, execFile, spawn } from "node:child_process"
import { once } from "node:events"
import { existsSync, mkdirSync, readdirSync, statSync } from "node:fs"
import { join } from "node:path"
import process from "node:process"
import { promisify } from "node:util"
import { root } from "../../runtime/bootstrap.mjs"

export interface Step {
  readonly name: string
  readonly seconds: number
  /** The output line of the step. */
  readonly said: string
}

/** Bypasses the test runner, which hides the output of passing tests. */
export const printSteps = (where: string, steps: ReadonlyArray<Step>): void => {
  for (const { name, said, seconds } of steps)
    process.stderr.write(`${where}  ${name.padEnd(14)}${seconds.toFixed(1).padStart(6)} s  ${said}\n`)
}

/** How to run the program: a command, and the arguments before the program's own. */
interface Way {
  readonly command: string
  readonly words: ReadonlyArray<string>
}

/** Ten times the time of a step on a quiet machine. */
const stepTimeout = 300_000

/** Deno from the tools, otherwise the machine's own. */
export const denoProgram = (): string => {
  const installed = join(root, "test", "tools", "node_modules", "@deno", "linux-x64-glibc", "deno")
  return existsSync(installed) ? installed : "deno"
}

/** Variables that npm sets for the script it runs would confuse a package's program. */
const environment = (): NodeJS.ProcessEnv => ({
  ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("npm_"))),
  DATABASE_URL: "",
  DENO_NO_UPDATE_CHECK: "1"
})

const run = async (command: string, args: ReadonlyArray<string>, cwd: string): Promise<string> => {
  const options = { cwd, env: environment(), timeout: stepTimeout, maxBuffer: 64 * 1024 * 1024 }
  const { stderr, stdout } = await promisify(execFile)(command, [...args], options)
  return `${stdout}${stderr}`
}

const lineWith = (text: string, shows: RegExp): string => {
  const line = text.split("\n").find((line) => shows.test(line))
  if (line === undefined) throw new Error(`nothing shows ${shows}:\n${text.slice(-2_000)}`)
  return shows.exec(line)![0].slice(0, 160)
}

const startServing = async ({ command, words }: Way, cwd: string) => {
  const ports = ["--port", "0", "--ledger-port", "0", "--ledger-https-port", "0"]
  const child: ChildProcess = spawn(command, [...words, "start", ...ports], { cwd, env: environment() })
  const ended = once(child, "exit")
  let text = ""
  const ready = new Promise<string>((resolve) => {
    for (const stream of [child.stdout!, child.stderr!]) {
      stream.setEncoding("utf8").on("data", (chunk: string) => {
        text += chunk
        const at = /facilitator (http:\/\/[\d.]+:\d+)/.exec(text)?.[1]
        if (at !== undefined && text.includes('"event":"ready"')) resolve(at)
      })
    }
  })
  const died = ended.then(([status]) => Promise.reject(new Error(`it ended with ${status}\n${text.slice(-2_000)}`)))
  const url = await Promise.race([ready, died])
  died.catch(() => undefined)
  return {
    url,
    stop: async (): Promise<string> => {
      // The process in the state folder's note, as a second start reports it: npx and npm themselves die of a signal,
      // and would hide how the program ended.
      const [note = ""] = readdirSync(join(cwd, ".tollkeeper", "running"))
      process.kill(Number.parseInt(note), "SIGTERM")
      return `status ${(await ended)[0]}`
    }
  }
}

/** Every page and file that a browser would request first; each must answer. */
const read = async (url: string): Promise<string> => {
  const paths = ["/", "/dashboard", "/docs", "/supported", "/openapi.json", "/dashboard/library/api.js"]
  const assets = ["/dashboard/library/uplot.js", "/dashboard/web/visitorPage.ts", "/dashboard/web/style.css"]
  const answers = await Promise.all(
    [...paths, ...assets].map(async (path) => {
      const { status } = await fetch(url + path)
      if (status !== 200) throw new Error(`${path} answers ${status}`)
      return path
    })
  )
  return `${answers.length} pages and files answer 200`
}

/** Start, pay, read, stop, reset, in a folder that can run the program this way. */
export const playFirstMinute = async (way: Way, folder: string, installing: ReadonlyArray<Step>) => {
  const steps: Array<Step> = [...installing]
  const step = async <A>(name: string, work: () => Promise<A>, said: (result: A) => string): Promise<A> => {
    const startedAt = performance.now()
    const result = await work()
    steps.push({ name, seconds: (performance.now() - startedAt) / 1_000, said: said(result) })
    return result
  }
  const words = (...args: ReadonlyArray<string>) => run(way.command, [...way.words, ...args], folder)
  const serving = await step(
    "start",
    () => startServing(way, folder),
    ({ url }) => url
  )
  try {
    await step(
      "pay",
      () => words("pay"),
      (text) => lineWith(text, /SUCCESS in ledger \d+/)
    )
    await step(
      "read",
      () => read(serving.url),
      (text) => text
    )
    const shows = /20 of 20 ready/
    await step(
      "channels list",
      () => words("channels", "list"),
      (text) => lineWith(text, shows)
    )
  } finally {
    await step("stop", serving.stop, (text) => text)
  }
  await step(
    "reset",
    () => words("reset", "--yes"),
    (text) => lineWith(text, /deleted .*: database/)
  )
  if (existsSync(join(folder, ".tollkeeper"))) throw new Error("reset left the state")
  return steps
}

const timed = async (name: string, work: () => Promise<string>): Promise<Step> => {
  const startedAt = performance.now()
  const said = await work()
  return { name, seconds: (performance.now() - startedAt) / 1_000, said }
}

/** The archive that `npm pack` makes of this checkout, below `folder`. */
export const packInto = async (folder: string): Promise<{ readonly archive: string; readonly step: Step }> => {
  const step = await timed("npm pack", async () => {
    await run("npm", ["pack", "--silent", "--pack-destination", folder], root)
    const name = readdirSync(folder).find((name) => name.endsWith(".tgz"))!
    return `${name}: ${(statSync(join(folder, name)).size / 1_000_000).toFixed(1)} MB`
  })
  return { archive: join(folder, step.said.split(":")[0]!), step }
}

/** Paths of the archive's files. */
export const pathsIn = async (archive: string): Promise<ReadonlyArray<string>> =>
  (await run("tar", ["-tzf", archive], root))
    .trim()
    .split("\n")
    .map((path) => path.replace(/^package\//, ""))

/** Installs the archive into an empty folder; returns the ways to run it there. */
export const installPacked = async (archive: string, folder: string) => {
  mkdirSync(folder, { recursive: true })
  const step = await timed("npm install", async () => {
    const text = await run("npm", ["install", archive, "--no-fund", "--no-audit", "--loglevel=error"], folder)
    return lineWith(text, /added \d+ packages/)
  })
  const program = join("node_modules", "tollkeeper", "runtime", "tollkeeper.mjs")
  return {
    step,
    node: { command: "npx", words: ["tollkeeper"] } satisfies Way,
    deno: { command: denoProgram(), words: ["run", "-A", program] } satisfies Way
  }
}

/** Installed packages with a script that npm runs at their installation. */
export const scriptsIn = async (folder: string): Promise<ReadonlyArray<string>> => {
  const names = ["preinstall", "install", "postinstall"].map((name) => `:attr(scripts, [${name}])`)
  const found = JSON.parse(await run("npm", ["query", names.join(", ")], folder)) as ReadonlyArray<{ name: string }>
  return found.map(({ name }) => name)
}

/** A fresh clone of the committed state; `npm start` installs its dependencies. */
export const clone = async (folder: string) => {
  const step = await timed("git clone", async () => {
    await run("git", ["clone", "--quiet", "--depth", "1", `file://${root}`, folder], root)
    return "cloned"
  })
  const install = await timed("npm ci", async () =>
    lineWith(await run("npm", ["ci", "--loglevel=error"], folder), /added \d+ packages/)
  )
  return {
    steps: [step, install],
    node: { command: "npm", words: ["run", "--silent", "tollkeeper", "--"] } satisfies Way,
    deno: { command: denoProgram(), words: ["task", "--quiet", "tollkeeper"] } satisfies Way
  }
}
