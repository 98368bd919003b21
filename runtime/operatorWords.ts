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
  "sponsor",
  "budget",
  "batch",
  "audit",
  "acts",
  "limits",
  "backup",
  "doctor",
  "receipts"
] as const

export type OperatorFamily = (typeof operatorFamilies)[number]

/** Commands of these families that start or create something themselves, and so never run within another process. */
export const isStandaloneCommand = ([family, command, ...words]: ReadonlyArray<string>): boolean =>
  (family === "channels" && command === "open") ||
  (family === toolsFamily && command === "channels" && ["refund", "withdraw"].includes(words[0] ?? "")) ||
  (family === "keys" && command === "seal") ||
  (family === "receipts" && (command === "verify" || command === "fetch")) ||
  (family === "backup" && command !== "save")

/** `channels --agent` is about agents' payment channels, which the tool server keeps. */
export const ofAgents = (words: ReadonlyArray<string>): ReadonlyArray<string> =>
  words[0] === "channels" && words.includes("--agent")
    ? [toolsFamily, ...words.filter((word) => word !== "--agent")]
    : words

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

/** `--state` is the folder of a process in every command; a state of settlements is `--which`. */
export const stateIssue = ([family, command, ...words]: ReadonlyArray<string>): string | undefined => {
  if (family !== "settlements" || command !== "list") return undefined
  const named = words.flatMap((word, index) =>
    word === "--state" ? [words[index + 1]] : word.startsWith("--state=") ? [word.slice("--state=".length)] : []
  )
  const state = listableStates.find((one) => named.includes(one))
  return state === undefined
    ? undefined
    : `--state names a folder; list settlements by state with --which ${state} ` +
        `(a folder of that name: --state ./${state})`
}
