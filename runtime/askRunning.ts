// The command line's side of `listenForOperators.ts`: an operator's command runs in the process that serves over the
// state folder. It runs here if no process serves, if `--profile` names another profile, or if DATABASE_URL names a
// database other than the running process's. The running process ignores `--set` and reports that in its answer. A
// command that it received is never repeated here: without an answer, its effects are unknown.
import { Data, Effect, Option, Schema } from "effect"
import process from "node:process"
import { userInfo } from "node:os"
import { answeredByProcess } from "./answeredBy.ts"
import { errorMessage, field, rootCause } from "../kernel/database/errorMessage.ts"
import { Answered } from "./operatorWords.ts"
import { secretOf } from "./secretOf.ts"
import { databaseMark, describeInstance, type Instance, instancesOf } from "./state.ts"

const nameMax = 64

/** The user who gives a command, for the audit trail: behind sudo the person, not root. */
export const osUser = (): string => {
  const sudo = process.env["SUDO_USER"]
  if (sudo !== undefined && sudo !== "") return sudo.slice(0, nameMax)
  try {
    return userInfo().username.slice(0, nameMax)
  } catch {
    // A container's user may only have a number.
    return `user ${process.getuid?.() ?? "unknown"}`
  }
}

const flagIn = (words: ReadonlyArray<string>, name: string): string | undefined => {
  const at = words.findIndex((word) => word === `--${name}` || word.startsWith(`--${name}=`))
  const word = words[at]
  return word === undefined ? undefined : word.includes("=") ? word.slice(word.indexOf("=") + 1) : words[at + 1]
}

const isMeant = (instance: Instance, words: ReadonlyArray<string>, url: string | undefined): boolean => {
  const profile = flagIn(words, "profile")
  return (
    instance.operators?.families.includes(words[0] ?? "") === true &&
    (profile === undefined || profile === instance.profile) &&
    (url === undefined || databaseMark(url) === instance.database)
  )
}

/** The process ended, or was too slow, after it had received the command. */
class AnswerLost extends Data.TaggedError("AnswerLost")<{ readonly message: string }> {}

/** Whether nothing listens at the address. Deno reports it in the message only. */
const isRefused = (cause: unknown): boolean =>
  field(rootCause(cause), "code") === "ECONNREFUSED" || /connection refused/i.test(errorMessage(cause))

/** Fails if the process may have received the command; None if it did not. */
const lost = (instance: Instance, cause: unknown) =>
  isRefused(cause)
    ? Effect.succeedNone
    : new AnswerLost({
        message:
          `${describeInstance(instance)}, received the command and did not answer, so it may have been carried out; ` +
          "see `tollkeeper acts` and its log before you run it again"
      })

/**
 * Lets the running process execute the command, and adds its identity to the output. Returns None without a running
 * process, or if the process ended before it received the command.
 */
export const askRunning = Effect.fnUntraced(function* (words: ReadonlyArray<string>) {
  const folder = flagIn(words, "state") ?? ".tollkeeper"
  const url = secretOf(process.env, "DATABASE_URL")
  const instance = instancesOf(folder).find((one) => isMeant(one, words, url))
  if (instance?.operators === undefined) return Option.none()
  const { key, url: at } = instance.operators
  const answer = yield* Effect.tryPromise(async () => {
    const response = await fetch(at, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({ words, folder: process.cwd(), person: osUser() })
    })
    return (await response.json()) as unknown
  }).pipe(
    Effect.asSome,
    Effect.catch(({ cause }) => lost(instance, cause))
  )
  return Option.map(Option.flatMap(answer, Schema.decodeUnknownOption(Answered)), (answered) => ({
    ...answered,
    by: answeredByProcess(folder, instance, flagIn(words, "set") !== undefined)
  }))
})
