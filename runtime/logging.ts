// What the process writes besides its answers, to stderr: plain lines on a terminal, where people read, and one JSON
// object a line otherwise, where machines do; never both. On a terminal that is warnings and worse, and how a start
// goes on; a collector of JSON gets everything from Info on, lines of requests gathered for a moment
// (`LineWriter.ts`). The greeting and a refusal of a program that serves follow the same rule, so that what a
// supervisor collects is JSON from the first line to the last.
import { Cause, Console, Effect, Layer, Logger, References } from "effect"
import process from "node:process"
import { makeLineWriter } from "./LineWriter.ts"

/** The annotation of a line that tells how a start goes on. */
const PROGRESS = { event: "progress" } as const

/** Tells how a start goes on, in the order of what is done. */
export const progress = (sentence: string): Effect.Effect<void> =>
  Effect.annotateLogs(Effect.logInfo(sentence), PROGRESS)

/** Whether people read a stream: a terminal, unless the environment says that everything is for machines. */
export const isForPeople = (stream: { readonly isTTY?: boolean }): boolean => stream.isTTY === true

const textOf = (message: unknown): string =>
  (Array.isArray(message) ? message : [message])
    .map((part) => (typeof part === "string" ? part : part instanceof Error ? part.message : JSON.stringify(part)))
    .join(" ")

/** One line for a person: time, level, words, and whose they are. A defect's trace follows; nothing else has one. */
const plain = Logger.make<unknown, void>(({ cause, date, fiber, logLevel, message }) => {
  const annotations = fiber.getRef(References.CurrentLogAnnotations) as Readonly<Record<string, unknown>>
  const isProgress = annotations["event"] === PROGRESS.event
  if (logLevel === "Info" && !isProgress) return
  const time = date.toISOString().slice(11, 19)
  const owner = typeof annotations["plugin"] === "string" && !isProgress ? `${annotations["plugin"]}: ` : ""
  const why =
    cause.reasons.length === 0 ? "" : Cause.hasDies(cause) ? `\n${Cause.pretty(cause)}` : ` (${lineOf(cause)})`
  const level = isProgress ? "" : `${logLevel.toLowerCase()}  `
  process.stderr.write(`${time}  ${level}${owner}${textOf(message)}${why}\n`)
})

const lineOf = (cause: Cause.Cause<unknown>): string => {
  const error = Cause.squash(cause)
  return String(error instanceof Error ? error.message : error).replace(/\s*\n\s*/g, " ")
}

const writer = makeLineWriter({
  write: (lines) => void process.stderr.write(lines),
  later: (flush, millis) => void setTimeout(flush, millis).unref()
})
process.on("exit", writer.flush)

const isSimple = (value: unknown): boolean =>
  typeof value === "string" || typeof value === "boolean" || Number.isFinite(value)

/** One JSON object; what is made of plain values alone needs no care about what else may stand in a line. */
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

/** The lines of requests are the many ones; every other line leaves at once. */
export const isOfRequest = ({ logLevel, message }: Logger.Options<unknown>): boolean =>
  logLevel === "Info" && Array.isArray(message) && message[0] === "request"

const json = Logger.make<unknown, void>((entry) => writer.line(lineOfJson(entry), !isOfRequest(entry)))

/** The loggers of this process. */
export const logging = Layer.mergeAll(
  Logger.layer([isForPeople(process.stderr) ? plain : json]),
  Layer.succeed(References.MinimumLogLevel, "Info")
)

/** A line of the shape that the loggers write, for what is said beside them. */
export const jsonLine = (level: "INFO" | "ERROR", message: string, annotations: Readonly<Record<string, unknown>>) =>
  JSON.stringify({ message, level, timestamp: new Date().toISOString(), annotations })

/**
 * Says why the process ends, on stderr. A program that serves says it as its log is read; a command says it as a plain
 * sentence, since commands have answers and no log.
 */
export const sayRefusal = (sentence: string, isServing: boolean): Effect.Effect<void> =>
  Effect.suspend(() => {
    writer.flush()
    return Console.error(
      isServing && !isForPeople(process.stderr)
        ? jsonLine("ERROR", `tollkeeper: ${sentence}`, { event: "refused" })
        : `tollkeeper: ${sentence}`
    )
  })
