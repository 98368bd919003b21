// Programs that the conformance run starts. Each exchanges JSON lines on its standard streams and ends when its
// standard input ends; if it does not, it is killed by its own process id. The tail of its output is kept for a report.
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { createInterface } from "node:readline"

export interface Program {
  readonly pid: number
  /** The next accepted JSON line; rejects if the program ends first or `timeoutMs` (default 60 000) pass. */
  readonly next: (accepts: (line: any) => boolean, timeoutMs?: number) => Promise<any>
  readonly send: (line: unknown) => void
  /** The last 8 000 characters of standard output and error. */
  readonly tail: () => string
  /** Ends the program: its input first, then SIGTERM, then SIGKILL. */
  readonly stop: () => Promise<void>
  /** Ends the program with SIGKILL, without a graceful stop. */
  readonly kill: () => Promise<void>
}

export interface ProgramOptions {
  readonly cwd: string
  readonly env?: Record<string, string>
}

export const startProgram = (command: string, args: ReadonlyArray<string>, options: ProgramOptions): Program => {
  const child: ChildProcess = spawn(command, [...args], {
    cwd: options.cwd,
    env: { ...process.env, ...options.env },
    stdio: ["pipe", "pipe", "pipe"]
  })
  const seen: Array<any> = []
  const waiting = new Set<{
    accepts: (line: any) => boolean
    resolve: (line: any) => void
    reject: (error: Error) => void
  }>()
  let text = ""
  const keep = (chunk: string) => {
    text = (text + chunk).slice(-8_000)
  }
  const failure = (why: string) => {
    for (const waiter of waiting) waiter.reject(new Error(`${args[0]} ${why}\n${text}`))
    waiting.clear()
  }
  createInterface({ input: child.stdout! }).on("line", (line) => {
    keep(`${line}\n`)
    if (!line.startsWith("{")) return
    let value: any
    try {
      value = JSON.parse(line)
    } catch {
      return
    }
    for (const waiter of waiting) {
      if (!waiter.accepts(value)) continue
      waiting.delete(waiter)
      waiter.resolve(value)
      return
    }
    seen.push(value)
  })
  child.stderr!.setEncoding("utf8").on("data", keep)
  child.stdin!.on("error", () => {})
  let ended = false
  const exit = once(child, "exit").then(
    ([code, signal]) => {
      ended = true
      failure(`ended with ${signal ?? code}`)
    },
    () => {
      ended = true
      failure("could not be started")
    }
  )

  return {
    pid: child.pid ?? -1,
    next: (accepts, timeoutMs = 60_000) => {
      const index = seen.findIndex(accepts)
      if (index >= 0) return Promise.resolve(seen.splice(index, 1)[0])
      if (ended) return Promise.reject(new Error(`${args[0]} has ended\n${text}`))
      return new Promise((resolve, reject) => {
        const waiter = { accepts, resolve, reject }
        waiting.add(waiter)
        const timer = setTimeout(() => {
          if (waiting.delete(waiter)) reject(new Error(`${args[0]} said nothing for ${timeoutMs} ms\n${text}`))
        }, timeoutMs)
        exit.finally(() => clearTimeout(timer))
        timer.unref()
      })
    },
    send: (line) => {
      child.stdin!.write(`${JSON.stringify(line)}\n`)
    },
    tail: () => text,
    kill: async () => {
      child.kill("SIGKILL")
      await exit
    },
    stop: async () => {
      child.stdin!.end()
      for (const [signal, afterMs] of [
        ["SIGTERM", 1_000],
        ["SIGKILL", 8_000]
      ] as const) {
        if (await ends(exit, afterMs)) return
        child.kill(signal)
      }
      await exit
    }
  }
}

const ends = async (exit: Promise<unknown>, withinMs: number): Promise<boolean> => {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), withinMs)
  })
  const answer = await Promise.race([exit.then(() => true), late])
  clearTimeout(timer)
  return answer
}
