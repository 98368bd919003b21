// The operator commands that a running process executes, and their request and response.
import { Schema } from "effect"

/** The family of a tool server that pays. */
export const toolsFamily = "tools-budget"

/** The families that a running process executes: that one, and a facilitator's. */
export const operatorFamilies = [
  toolsFamily,
  "channels",
  "settlements",
  "catalog",
  "analytics",
  "webhooks",
  "keys",
  "budget",
  "batch",
  "audit",
  "acts",
  "backup",
  "doctor"
] as const

export type OperatorFamily = (typeof operatorFamilies)[number]

/** Commands of these families that start or create something themselves, and so never run within another process. */
export const isStandaloneCommand = ([family, command]: ReadonlyArray<string>): boolean =>
  (family === "channels" && command === "open") ||
  (family === "keys" && command === "seal") ||
  (family === "backup" && command !== "save")

/** Request: the command line's arguments, and its working directory. */
export const Asked = Schema.Struct({
  /** The user who asks; absent from an older command. */
  person: Schema.optionalKey(Schema.String.check(Schema.isMaxLength(64))),
  words: Schema.Array(Schema.String.check(Schema.isMaxLength(4_096))).check(Schema.isMaxLength(64)),
  folder: Schema.String
})

/** Response: the command's output and exit code. */
export const Answered = Schema.Struct({ status: Schema.Int, out: Schema.String, err: Schema.String })

/** What `settlements list` lists: settlements by state, or refused payments. */
export const listableStates = [
  "open",
  "unresolved",
  "all",
  "prepared",
  "submitted",
  "settled",
  "failed",
  "expired",
  "ended",
  "every",
  "refused"
] as const

/**
 * `settlements list --state settled` says which settlements; `--state` before anything else is a folder, in every
 * command. A folder of such a name is meant by `--state ./settled`.
 */
export const spellStates = (words: ReadonlyArray<string>): ReadonlyArray<string> => {
  if (words[0] !== "settlements" || words[1] !== "list") return words
  const isState = (word: string | undefined) => listableStates.some((state) => state === word)
  return words.map((word, index) =>
    word === "--state" && isState(words[index + 1])
      ? "--which"
      : word.startsWith("--state=") && isState(word.slice("--state=".length))
        ? word.replace("--state", "--which")
        : word
  )
}
