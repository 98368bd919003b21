// What an operator's command may be that a running process carries out, and how it is asked and answered.
import { Schema } from "effect"

/** The family of a tool server that pays. */
export const toolsFamily = "tools-budget"

/** The families that a running process carries out: that one, and a facilitator's. */
export const operatorFamilies = [
  toolsFamily,
  "channels",
  "settlements",
  "catalog",
  "analytics",
  "webhooks",
  "keys",
  "budget",
  "audit",
  "backup",
  "doctor"
] as const

export type OperatorFamily = (typeof operatorFamilies)[number]

/** Commands of these families that start or make something of their own, and so never run within another process. */
export const isStandaloneCommand = ([family, command]: ReadonlyArray<string>): boolean =>
  (family === "channels" && command === "open") ||
  (family === "keys" && command === "seal") ||
  (family === "backup" && command === "restore")

/** What is asked: the words of the command line, and the folder in which they were written. */
export const Asked = Schema.Struct({
  words: Schema.Array(Schema.String.check(Schema.isMaxLength(4_096))).check(Schema.isMaxLength(64)),
  folder: Schema.String
})

/** What the command printed, and its exit code. */
export const Answered = Schema.Struct({ status: Schema.Int, out: Schema.String, err: Schema.String })
