// A facilitator as a supervisor like compose runs it: a process of the shipped command and profile, secrets in files,
// restarted when it exits, and counted as ready only when its readiness reports it. Its environment contains only the
// variables given here.
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

/** Pause between the exit of a process that was not stopped and its restart. */
const backOffMillis = 500
/** A start runs migrations and waits for its turn on a busy machine. */
const readyMillisMax = 120_000
/** Longer than any stop may take: a process that is still running then is killed, and its stop time shows it. */
const stopMillisMax = 30_000

/** Maximum size of the log: the lines of a scene, including those of its traffic. */
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
  /** Number of processes started so far. */
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

  /** Of the running process; undefined between two. */
  get pid(): number | undefined {
    return this.#child?.pid
  }

  /** The end of its log. */
  get log(): string {
    return this.#log
  }

  /** The matching sentences at the end of its log, in order. */
  readonly said = (wanted: RegExp): ReadonlyArray<string> => sentencesIn(this.#log, wanted)

  /** The last matching sentence; throws if it does not log one in time. */
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

  /** Sends SIGTERM; returns the milliseconds until it ended, and its exit code or signal. */
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

  /** Sends SIGKILL; the supervisor restarts it. */
  readonly crash = async (): Promise<void> => {
    const child = this.#child
    if (child === undefined) return
    const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()))
    child.kill("SIGKILL")
    await ended
  }
}
