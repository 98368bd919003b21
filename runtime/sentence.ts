// Why the process ends, as one sentence for the operator: what happened, and what to do about it. It is made of the
// error and its causes: the system's code for a port in use or a full disk decides, at any depth. Only defects have a
// trace.
import { Cause } from "effect"
import { field, errorMessage } from "../kernel/database/errorMessage.ts"

/** Remedies by errno; other codes are without one. */
const ofTheSystem: Readonly<Record<string, string>> = {
  EROFS: "the file system is read-only; choose a folder that can be written with --state DIR",
  EACCES: "this user lacks the permission; grant it, or choose another folder with --state DIR",
  EPERM: "this user lacks the permission; grant it, or choose another folder with --state DIR",
  ENOSPC: "the disk is full; free some space, or choose a folder on another disk with --state DIR",
  EDQUOT: "this user's share of the disk is used up; free some space, or choose another folder with --state DIR",
  EEXIST: "a file of that name exists; choose another folder with --state DIR",
  ENOTDIR: "a part of that path is a file; choose another folder with --state DIR",
  EMFILE: "too many files are open; raise the limit (ulimit -n)",
  ENFILE: "the machine has too many files open; close other programs"
}

/** Disk errors in the words of PGlite and PostgreSQL. */
const ofTheDatabase: ReadonlyArray<readonly [RegExp, string]> = [
  [/No space left on device|ENOSPC/i, "ENOSPC"],
  [/Read-only file system|EROFS/i, "EROFS"],
  [/Permission denied|EACCES/, "EACCES"],
  [/EDQUOT/, "EDQUOT"],
  [/EPERM/, "EPERM"]
]

/** The flag of a setting that has one. */
const flagOf: Readonly<Record<string, string>> = {
  "server.port": "--port",
  "http.port": "--port",
  "local_ledger.port": "--ledger-port",
  "local_ledger.https_port": "--ledger-https-port"
}

const depthMax = 8

/** An error and its causes, the outermost first. */
const chainOf = (error: unknown): ReadonlyArray<unknown> => {
  const chain: Array<unknown> = []
  const pending: Array<unknown> = [error]
  while (pending.length > 0 && chain.length < depthMax) {
    const next = pending.shift()
    if (next === undefined || next === null || chain.includes(next)) continue
    chain.push(next)
    pending.push(field(next, "cause"), field(next, "reason"))
  }
  return chain
}

const messageOf = (error: unknown): string => {
  if (field(error, "_tag") === "SqlError") return `the database said: ${errorMessage(error)}`
  const message = field(error, "message")
  return typeof message === "string" ? message : typeof error === "string" ? error : ""
}

/** The system's code of an error, `EADDRINUSE` and the like. */
const codeOf = (error: unknown): string | undefined => {
  for (const one of chainOf(error)) {
    const code = field(one, "code")
    if (typeof code === "string" && /^E[A-Z]+$/.test(code)) return code
    const found = ofTheDatabase.find(([pattern]) => pattern.test(messageOf(one)))
    if (found !== undefined) return found[1]
  }
  return undefined
}

/** A port that cannot be opened: `ListenFailed`, of any listener. */
const ofPort = (error: object): string => {
  const [host, port, setting] = ["host", "port", "setting"].map((name) => field(error, name))
  const flag = typeof setting === "string" ? (flagOf[setting] ?? `the setting ${setting}`) : "another port"
  const choose = flag.startsWith("--") ? `${flag} PORT (${String(setting)}; 0 picks a free one)` : flag
  switch (codeOf(error)) {
    case "EADDRINUSE":
      return `port ${port} of ${host} is taken by another program; stop that one, or choose another with ${choose}`
    case "EACCES":
      return `this user may not open port ${port} of ${host}; choose one from 1024 on with ${choose}`
    case "EADDRNOTAVAIL":
    case "ENOTFOUND":
      return `this machine has no address ${host}; set server.host to one that it has, or leave it out`
    default:
      return `port ${port} of ${host} cannot be opened (${codeOf(error) ?? "no code"}); choose another with ${choose}`
  }
}

/** Remedies by error tag, for messages without one. */
const remedies: Readonly<Record<string, string>> = {
  SettingsRefused: "`tollkeeper config schema` lists every setting, `tollkeeper config check` tries a profile",
  SqlError: "`tollkeeper doctor` checks the database",
  StateRefused: "choose another folder with --state DIR",
  SecretUnreadable: "correct its path, or give this user the right to read it",
  DatabaseRefused:
    "`tollkeeper doctor` checks database, disk and ports, and names the repair or the backup of a damaged folder",
  ProfileRefused: "correct `plugins` in the profile; `tollkeeper config check` validates it",
  MigrationRefused: "start the version of Tollkeeper that made this database, or a newer one",
  MigrationFailed: "it was rolled back; fix the database's error, or stop older replicas, and start again",
  RouteClaimedTwice: "leave one of the two plugins out of the profile",
  ActorGaveUp: "the log above says why; start the process again, and it resumes where it was"
}

const subjectOf = (error: object): string =>
  ["path", "plugin"]
    .map((name) => field(error, name))
    .filter((subject) => typeof subject === "string" && subject !== "")
    .map((subject) => `${String(subject)}: `)
    .join("")

const oneLine = (text: string): string => text.replace(/\s*\n\s*/g, " ").trim()

/** The sentence of an expected error; undefined for a defect. `isAdvised` false leaves out the tag's remedy. */
export const sentenceOf = (cause: Cause.Cause<unknown>, { isAdvised = true } = {}): string | undefined => {
  const error = Cause.squash(cause)
  if (field(error, "_tag") === "ListenFailed") return oneLine(ofPort(error as object))
  const reported = messageOf(error)
  const system = ofTheSystem[codeOf(error) ?? ""]
  if (system !== undefined) {
    const subject = chainOf(error)
      .map((one) => field(one, "path") ?? field(one, "pathOrDescriptor"))
      .find((path) => typeof path === "string")
    const what = reported === "" || Cause.hasDies(cause) ? "something could not be read or written" : reported
    return oneLine(`${typeof subject === "string" ? `${subject}: ` : ""}${firstSentence(what)}: ${system}`)
  }
  const tag = field(error, "_tag")
  // An unreadable secret is thrown wherever it is read, but it is not a defect.
  if (typeof tag !== "string" || (Cause.hasDies(cause) && tag !== "SecretUnreadable")) return undefined
  const remedy = isAdvised ? remedies[tag] : undefined
  const words = reported === "" ? `${tag}: no details` : reported
  const whole = `${subjectOf(error as object)}${words}`
  if (remedy === undefined || /`|--state|; \w/.test(whole)) return oneLine(whole)
  return oneLine(whole.endsWith("?") ? `${whole} (${remedy})` : `${whole}; ${remedy}`)
}

/** System errors repeat themselves; the first part names the operation. */
const firstSentence = (text: string): string =>
  oneLine(text)
    .replace(/\s*\(?(E[A-Z]{3,}).*$/, "")
    .replace(/[:.,;]\s*$/, "") || text
