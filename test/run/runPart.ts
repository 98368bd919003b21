// Runs one part in a separate process group, forwards its output, and ends the whole group if the part takes too long
// or the run is stopped, so that no server of a test outlives it. Parts may run in parallel.
import { type ChildProcess, spawn } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import process from "node:process"
import { colours, type Counts, countsOf, failedFilesOf, failuresOf, errorsOf, type Part } from "./Part.ts"

export interface Result {
  readonly part: Part
  readonly counts: Counts
  readonly seconds: number
  /** The failed tests, if the program reports them, and a note if the part was stopped. */
  readonly failures: ReadonlyArray<string>
  /** The test files with a failure. */
  readonly failedFiles: ReadonlyArray<string>
}

const running = new Set<ChildProcess>()

const endGroup = ({ pid }: ChildProcess, signal: NodeJS.Signals): void => {
  if (pid === undefined) return
  try {
    process.kill(-pid, signal)
  } catch {
    // It has exited already.
  }
}

for (const [signal, status] of [
  ["SIGINT", 130],
  ["SIGTERM", 143],
  ["SIGHUP", 129]
] as const) {
  process.on(signal, () => {
    for (const child of running) endGroup(child, "SIGTERM")
    process.exit(status)
  })
}

const environment = (part: Part): NodeJS.ProcessEnv => ({
  ...process.env,
  PATH: `${join(process.cwd(), "node_modules", ".bin")}:${process.env["PATH"] ?? ""}`,
  ...part.env
})

/**
 * `passed`: the part's output is printed immediately. `held`: it is printed as a whole after the part has ended,
 * because another part prints.
 */
export type Output = "passed" | "held"

/** Maximum characters of a part's output that are searched for failures. */
const saidMax = 1_000_000

const runOnce = (part: Part, output: Output): Promise<Result> =>
  new Promise((resolve) => {
    const folder = mkdtempSync(join(tmpdir(), "tollkeeper-run-"))
    const reportFile = join(folder, "report.json")
    const started = performance.now()
    const isVitest = part.figures === "vitest"
    const args = isVitest
      ? [...part.args, "--reporter=default", "--reporter=json", `--outputFile.json=${reportFile}`]
      : part.args
    const child = spawn(part.command, args, {
      env: environment(part),
      detached: true,
      stdio: ["ignore", "pipe", "pipe"]
    })
    running.add(child)
    let said = ""
    let held = ""
    let isStopped = false
    const report = (text: string, to: NodeJS.WriteStream) => {
      if (output === "held") held += text
      else to.write(text)
    }
    const limit = setTimeout(() => {
      isStopped = true
      report(`\n${part.name} is stopped: it took more than ${part.minutesMax} minutes\n`, process.stdout)
      endGroup(child, "SIGKILL")
    }, part.minutesMax * 60_000)
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      said = (said + text).slice(-saidMax)
      report(text, process.stdout)
    })
    child.stderr.setEncoding("utf8").on("data", (text: string) => report(text, process.stderr))
    const end = (status: number | null) => {
      clearTimeout(limit)
      endGroup(child, "SIGTERM")
      running.delete(child)
      if (held !== "") process.stdout.write(`\n── ${part.name}\n${held}`)
      const lastLine = said.slice(-4_000).replace(colours, "").trimEnd().split("\n").at(-1) ?? ""
      const counts = countsOf(part.figures, { status, lastLine, reportFile })
      const errors = counts.failed > 0 ? errorsOf(said) : []
      const failures = isVitest ? failuresOf(reportFile, process.cwd()) : errors
      const failedFiles = isVitest ? failedFilesOf(reportFile, process.cwd()) : []
      const all = isStopped ? [`it took more than ${part.minutesMax} minutes and was stopped`, ...failures] : failures
      rmSync(folder, { recursive: true, force: true })
      resolve({ part, counts, failures: all, failedFiles, seconds: (performance.now() - started) / 1_000 })
    }
    child.once("error", (error) => {
      report(`${part.command}: ${error.message}\n`, process.stderr)
      end(1)
    })
    // Only the exit counts: a server that outlives its test may keep the pipes open, and is ended with the group.
    child.once("exit", (status) => setImmediate(end, status))
  })

/** If more files, or cases of a program, than these fail, the machine is not the cause. */
const filesAgainMax = 8
const casesAgainMax = 3

/** The part to run again after its failures, if any. */
const partAgain = (part: Part, { counts, failedFiles }: Result): Part | undefined => {
  if (failedFiles.length > 0 && failedFiles.length <= filesAgainMax) {
    // A share applies to all files: it would exclude most of a few files, and Vitest refuses it for a single one.
    const whole = part.args.filter((arg) => !arg.startsWith("--shard="))
    return { ...part, args: [...whole, ...failedFiles] }
  }
  const isFew = counts.passed > 0 && counts.failed > 0 && counts.failed <= casesAgainMax
  return part.again === true && isFew ? part : undefined
}

/**
 * Runs the part to its end; never rejects. A shared machine may starve a facilitator once: if `CI` is set, test files
 * with a failure, and programs with a few, run again in a new process, and a second failure counts. Vitest could retry
 * each failed test in place, but `layer` of `@effect/vitest` counts such a test twice, and ends its services before the
 * last test of its block.
 */
export const runPart = async (part: Part, output: Output = "passed"): Promise<Result> => {
  const first = await runOnce(part, output)
  const next = process.env["CI"] === "true" ? partAgain(part, first) : undefined
  if (next === undefined) return first
  for (const failure of first.failures) console.log(`\ntried again: ${part.name}: ${failure}`)
  const again = await runOnce(next, output)
  const healed = Math.max(0, first.counts.failed - again.counts.failed)
  return {
    ...again,
    part,
    counts: { ...first.counts, passed: first.counts.passed + healed, failed: again.counts.failed },
    seconds: first.seconds + again.seconds
  }
}
