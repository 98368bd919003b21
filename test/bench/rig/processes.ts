// Programs that a bench starts, and the system's figures of their processor time and memory. Their output goes to a
// file, so that reading it does not disturb a measurement. Without /proc, the system's figures are NaN, which a report
// prints as unknown.
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { closeSync, openSync, readdirSync, readFileSync } from "node:fs"
import process from "node:process"

/** Milliseconds of a tick of /proc. */
const tickMillis = 10

const textOf = (path: string): string => {
  try {
    return readFileSync(path, "latin1")
  } catch {
    return ""
  }
}

const fieldsOf = (pid: number): ReadonlyArray<string> => {
  const text = textOf(`/proc/${pid}/stat`)
  return text === "" ? [] : text.slice(text.lastIndexOf(") ") + 2).split(" ")
}

/** Scheduler time of the live threads, finer than ticks; 0 if the system does not count it. */
const liveThreadsMillis = (pid: number): number => {
  let nanos = 0
  try {
    for (const thread of readdirSync(`/proc/${pid}/task`))
      nanos += Number(textOf(`/proc/${pid}/task/${thread}/schedstat`).split(" ")[0])
  } catch {
    return 0
  }
  return nanos / 1_000_000
}

/** Time used by a process's ended threads, as far as its ticks show. */
const endedThreads = new Map<number, number>()

/**
 * Processor time that a process has used so far, for all its threads together, in milliseconds. Live threads count in
 * nanoseconds, since a round of a hundred payments takes a few ticks; ended threads count in ticks.
 */
export const processorMillis = (pid: number): number => {
  const fields = fieldsOf(pid)
  const ticked = (Number(fields[11]) + Number(fields[12])) * tickMillis
  const live = liveThreadsMillis(pid)
  if (Number.isNaN(ticked) || live === 0) return ticked
  const ended = endedThreads.get(pid)
  const known = live + (ended ?? 0)
  // User and system time are each truncated to a tick.
  if (ended !== undefined && known >= ticked - 2 * tickMillis) return known
  endedThreads.set(pid, Math.max(0, ticked - live))
  return Math.max(ticked, live)
}

/** The same for a process with its children, including ended ones: a PostgreSQL server. */
export const familyMillis = (pid: number): number => {
  const own = fieldsOf(pid)
  const ended = Number(own[13]) + Number(own[14])
  const children = own.length === 0 ? [] : readdirSync("/proc").filter((name) => /^\d+$/.test(name))
  return children
    .map((name) => fieldsOf(Number(name)))
    .filter((fields) => fields[1] === String(pid))
    .reduce(
      (sum, fields) => sum + (Number(fields[11]) + Number(fields[12])) * tickMillis,
      processorMillis(pid) + ended * tickMillis
    )
}

export interface Memory {
  /** Current bytes in memory, including shared memory. */
  readonly resident: number
  /** Maximum so far. */
  readonly peak: number
}

export const memoryOf = (pid: number): Memory => {
  const text = textOf(`/proc/${pid}/status`)
  const bytes = (name: string) => 1_024 * Number(new RegExp(`^${name}:\\s+(\\d+) kB`, "m").exec(text)?.[1])
  return { resident: bytes("VmRSS"), peak: bytes("VmHWM") }
}

export interface Service {
  readonly pid: number
  /** The end of its output. */
  readonly tail: () => string
  readonly isRunning: () => boolean
  /** Ends it: SIGTERM, and after ten seconds SIGKILL. */
  readonly stop: () => Promise<void>
}

export interface ServiceOptions {
  readonly cwd: string
  readonly env?: Readonly<Record<string, string>>
  /** The file that its output goes to. */
  readonly log: string
}

export const startService = (command: string, args: ReadonlyArray<string>, options: ServiceOptions): Service => {
  const log = openSync(options.log, "a")
  const child: ChildProcess = spawn(command, [...args], {
    cwd: options.cwd,
    env: { ...process.env, ...options.env },
    stdio: ["pipe", log, log]
  })
  closeSync(log)
  let ended = false
  const exit = once(child, "exit")
    .catch(() => undefined)
    .then(() => (ended = true))
  return {
    pid: child.pid ?? -1,
    tail: () => readFileSync(options.log, "utf8").slice(-4_000),
    isRunning: () => !ended,
    stop: async () => {
      child.kill("SIGTERM")
      const late = setTimeout(() => child.kill("SIGKILL"), 10_000)
      await exit
      clearTimeout(late)
    }
  }
}

export const pause = (millis: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, millis))

/** Waits until a condition holds, at most a minute and a half; fails if the service has ended. */
export const until = async (what: string, holds: () => Promise<boolean>, by?: Service): Promise<void> => {
  const end = performance.now() + 90_000
  while (!(await holds().catch(() => false))) {
    const problem = by?.isRunning() === false ? "it has ended" : performance.now() > end ? "not in time" : undefined
    if (problem !== undefined) throw new Error(`${what}: ${problem}\n${by?.tail() ?? ""}`)
    await pause(20)
  }
}
