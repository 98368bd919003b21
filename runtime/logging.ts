// The process's log, on stderr: plain lines on a terminal, one JSON object a line otherwise; never both. A terminal
// shows warnings and errors, and the progress of a start; a collector of JSON gets everything from Info on, request
// lines batched for a moment. The startup banner and a serving program's refusal follow the same rule, so that a
// supervisor collects JSON from the first line to the last. Errors quote endpoints and other services, so control
// characters are written as escapes.
import { Cause, Console, Effect, Layer, Logger, References } from "effect"
import process from "node:process"
import { visibleLine, visibleText } from "./visibleText.ts"

/** The annotation of a line that reports the progress of a start. */
const PROGRESS = { event: "progress" } as const

/** Reports the progress of a start, in order. */
export const progress = (sentence: string): Effect.Effect<void> =>
  Effect.annotateLogs(Effect.logInfo(sentence), PROGRESS)

/** Whether a stream is for people: a terminal, unless the environment asks for JSON. */
export const isForPeople = (stream: { readonly isTTY?: boolean }): boolean => stream.isTTY === true

const textOf = (message: unknown): string =>
  (Array.isArray(message) ? message : [message])
    .map((part) => (typeof part === "string" ? part : part instanceof Error ? part.message : JSON.stringify(part)))
    .join(" ")

/**
 * One plain line: time, level, message, annotations; undefined if a terminal does not show it. Only a defect is
 * followed by its trace.
 */
export const plainLineOf = ({ cause, date, fiber, logLevel, message }: Logger.Options<unknown>): string | undefined => {
  const annotations = fiber.getRef(References.CurrentLogAnnotations) as Readonly<Record<string, unknown>>
  const isProgress = annotations["event"] === PROGRESS.event
  if (logLevel === "Info" && !isProgress) return undefined
  const time = date.toISOString().slice(11, 19)
  const owner = typeof annotations["plugin"] === "string" && !isProgress ? `${annotations["plugin"]}: ` : ""
  const why =
    cause.reasons.length === 0 ? "" : Cause.hasDies(cause) ? `\n${Cause.pretty(cause)}` : ` (${lineOf(cause)})`
  const level = isProgress ? "" : `${logLevel.toLowerCase()}  `
  return visibleText(`${time}  ${level}${owner}${visibleLine(textOf(message))}${why}`)
}

const plain = Logger.make<unknown, void>((entry) => {
  const line = plainLineOf(entry)
  if (line !== undefined) process.stderr.write(`${line}\n`)
})

const lineOf = (cause: Cause.Cause<unknown>): string => {
  const error = Cause.squash(cause)
  return String(error instanceof Error ? error.message : error).replace(/\s*\n\s*/g, " ")
}

/** Maximum time that a line stays buffered, in milliseconds. */
const waitMillis = 20
/** Capacity of the buffer, in characters. */
const waitingMax = 32_768

interface LineWriter {
  /** `isUrgent`: written before this returns. */
  readonly line: (text: string, isUrgent?: boolean) => void
  readonly flush: () => void
}

interface LineWriterOptions {
  /** Takes whole lines, each with its end. */
  readonly write: (lines: string) => void
  /** Calls back once, after this many milliseconds; the timer does not keep the process alive. */
  readonly later: (flush: () => void, millis: number) => void
}

/**
 * Buffers log lines and writes them together, because one system call per line costs a busy process more than making
 * the line. A line waits a moment at most; an urgent one flushes immediately, with all before it. The buffer is
 * bounded, keeps its order, and is never dropped. The process calls `flush` when it ends, on every path except SIGKILL.
 */
export const makeLineWriter = ({ later, write }: LineWriterOptions): LineWriter => {
  let waiting = ""
  let isAwaited = false
  const flush = () => {
    if (waiting === "") return
    const lines = waiting
    waiting = ""
    write(lines)
  }
  return {
    line: (text, isUrgent = false) => {
      waiting += `${text}\n`
      if (isUrgent || waiting.length >= waitingMax) return flush()
      if (isAwaited) return
      isAwaited = true
      later(() => {
        isAwaited = false
        flush()
      }, waitMillis)
    },
    flush
  }
}

const writer = makeLineWriter({
  write: (lines) => void process.stderr.write(lines),
  later: (flush, millis) => void setTimeout(flush, millis).unref()
})
process.on("exit", writer.flush)

const isSimple = (value: unknown): boolean =>
  typeof value === "string" || typeof value === "boolean" || Number.isFinite(value)

/** One JSON object; plain values need none of the logger's care for other kinds. */
const lineOfJson = (entry: Logger.Options<unknown>): string => {
  const { cause, date, fiber, logLevel, message } = entry
  const annotations = fiber.getRef(References.CurrentLogAnnotations)
  const [only, ...others] = Array.isArray(message) ? message : [message]
  const isPlain =
    others.length === 0 &&
    typeof only === "string" &&
    cause.reasons.length === 0 &&
    fiber.getRef(References.CurrentLogSpans).length === 0 &&
    Object.values(annotations).every(isSimple)
  if (!isPlain) return Logger.formatJson.log(entry)
  const level = logLevel.toUpperCase()
  return JSON.stringify({
    message: only,
    level,
    timestamp: date.toISOString(),
    annotations,
    spans: {},
    fiberId: `#${fiber.id}`
  })
}

/** Request lines are the frequent ones and are batched; every other line is flushed immediately. */
export const isOfRequest = ({ logLevel, message }: Logger.Options<unknown>): boolean =>
  logLevel === "Info" && Array.isArray(message) && message[0] === "request"

const json = Logger.make<unknown, void>((entry) => writer.line(visibleText(lineOfJson(entry)), !isOfRequest(entry)))

export const logging = Layer.mergeAll(
  Logger.layer([isForPeople(process.stderr) ? plain : json]),
  Layer.succeed(References.MinimumLogLevel, "Info")
)

/** A line in the loggers' JSON format, for messages outside a logger. */
export const jsonLine = (level: "INFO" | "ERROR", message: string, annotations: Readonly<Record<string, unknown>>) =>
  JSON.stringify({ message, level, timestamp: new Date().toISOString(), annotations })

/**
 * Reports why the process ends, on stderr: in the log's format for a serving program, as a plain sentence for a
 * command.
 */
export const sayRefusal = (sentence: string, isServing: boolean): Effect.Effect<void> =>
  Effect.suspend(() => {
    writer.flush()
    return Console.error(
      visibleText(
        isServing && !isForPeople(process.stderr)
          ? jsonLine("ERROR", `tollkeeper: ${sentence}`, { event: "refused" })
          : `tollkeeper: ${sentence}`
      )
    )
  })
