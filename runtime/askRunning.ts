// The command line's side of `listenForOperators.ts`: an operator's command runs in the process that serves over the
// state folder. It runs here when nothing serves, when another profile is named, or when DATABASE_URL names a database
// that is not the running process's. What `--set` names is the running process's own affair, and that is said.
import { Effect, Option, Schema } from "effect"
import process from "node:process"
import { answeredByProcess } from "./answeredBy.ts"
import { osUser } from "./osUser.ts"
import { Answered } from "./operatorWords.ts"
import { secretOf } from "./secretOf.ts"
import { databaseMark, type Instance, instancesOf } from "./state.ts"

/** The value of `--name value` or `--name=value`. */
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

/** Has the running process run the command, and says which it was; None without one, or when it ended meanwhile. */
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
  }).pipe(Effect.option)
  return Option.map(Option.flatMap(answer, Schema.decodeUnknownOption(Answered)), (answered) => ({
    ...answered,
    by: answeredByProcess(folder, instance, flagIn(words, "set") !== undefined)
  }))
})
