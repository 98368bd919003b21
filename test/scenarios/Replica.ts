// A facilitator as a supervisor like compose runs it: a process of the shipped command and profile, secrets in files,
// restarted when it exits, and counted as ready only when its readiness says so. Its environment is what is given here
// and nothing of the caller's.
import { type ChildProcess, spawn } from "node:child_process"
import process from "node:process"
import { sentencesIn } from "../support/rig/logLines.ts"
import { isReady, until } from "../support/rig/until.ts"

export interface ReplicaOptions {
  readonly name: string
  readonly url: string
  readonly folder: string
  readonly command: () => ReadonlyArray<string>
  readonly environment: () => Readonly<Record<string, string>>
}

/** Between the end of a process that was not stopped and its next start. */
const backOffMillis = 500
/** A start runs migrations and waits for its turn on a busy machine. */
const readyMillisMax = 120_000
/** Longer than any stop may take: a process still there then is killed, which its stop time shows. */
const stopMillisMax = 30_000

/** Of the log: the lines of a scene, beside those of its traffic. */
const logCharactersMax = 200_000

const clean = (own: Readonly<Record<string, string>>) => ({
  PATH: process.env["PATH"] ?? "",
  HOME: process.env["HOME"] ?? "/tmp",
  TZ: "UTC",
  NO_COLOR: "1",
  ...own
})

export class Replica {
  readonly name: string
  readonly url: string
  /** Processes that were started so far. */
  starts = 0
  #child: ChildProcess | undefined
  #isWanted = false
  #log = ""
  readonly #options: ReplicaOptions

  constructor(options: ReplicaOptions) {
    this.#options = options
    this.name = options.name
    this.url = options.url
  }

  /** The last of what it logged. */
  get log(): string {
    return this.#log
  }

  /** The sentences among the last that it logged, in order. */
  readonly said = (wanted: RegExp): ReadonlyArray<string> => sentencesIn(this.#log, wanted)

  /** The last sentence of these words; throws when it does not log one in time. */
  readonly says = async (wanted: RegExp): Promise<string> => {
    const isSaid = async () => this.said(wanted).length > 0
    await until(`${this.name} logs ${wanted}`, isSaid, readyMillisMax, this.#tail)
    return this.said(wanted).at(-1)!
  }

  readonly #tail = (): string => this.#log.slice(-4_000)

  #spawn(): void {
    const { command, environment, folder } = this.#options
    this.starts += 1
    const child = spawn(process.execPath, [...command()], {
      cwd: folder,
      env: clean(environment()),
      stdio: ["ignore", "pipe", "pipe"]
    })
    this.#child = child
    for (const stream of [child.stdout!, child.stderr!])
      stream
        .setEncoding("utf8")
        .on("data", (chunk: string) => void (this.#log = (this.#log + chunk).slice(-logCharactersMax)))
    child.once("exit", () => {
      if (this.#child !== child) return
      this.#child = undefined
      if (this.#isWanted) setTimeout(() => this.#isWanted && this.#child === undefined && this.#spawn(), backOffMillis)
    })
  }

  readonly isReady = (): Promise<boolean> => isReady(this.url)

  /** Returns when it is ready; throws with its log when it is not in time. */
  readonly ready = (): Promise<void> => until(`${this.name} is ready`, this.isReady, readyMillisMax, this.#tail)

  readonly start = (): void => {
    this.#isWanted = true
    if (this.#child === undefined) this.#spawn()
  }

  /** SIGTERM; the milliseconds that it took to end, and what it ended with. */
  readonly stop = async (): Promise<{ readonly millis: number; readonly code: number | string }> => {
    this.#isWanted = false
    const child = this.#child
    if (child === undefined) return { millis: 0, code: 0 }
    const since = performance.now()
    const ended = new Promise<number | string>((resolve) =>
      child.once("exit", (code, signal) => resolve(code ?? signal ?? "unknown"))
    )
    child.kill("SIGTERM")
    const kill = setTimeout(() => child.kill("SIGKILL"), stopMillisMax)
    const code = await ended
    clearTimeout(kill)
    return { millis: performance.now() - since, code }
  }

  /** SIGKILL; the supervisor starts it again. */
  readonly crash = async (): Promise<void> => {
    const child = this.#child
    if (child === undefined) return
    const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()))
    child.kill("SIGKILL")
    await ended
  }
}
