// Reports on stderr, in one line, which process, profile and database answered an operator's command, because an answer
// from the wrong database resembles the right one. For a server it shows only the host and the database's name, not
// the URL.
import { Option, Redacted } from "effect"
import { existsSync } from "node:fs"
import { join, resolve } from "node:path"
import { readServerUrl } from "../kernel/database/readServerUrl.ts"
import type { Profile } from "./profile.ts"
import { describeInstance, type Instance, instancesOf } from "./state.ts"

/** A server and its database, without user, password or parameters. */
const describeServer = (url: string): string => {
  const unnamed = "the server of DATABASE_URL"
  const server = readServerUrl(url)
  if (server === undefined) return unnamed
  try {
    return `database ${decodeURIComponent(server.pathname.slice(1))} at ${server.host}`
  } catch {
    return unnamed
  }
}

/** The folder of the embedded database that the profile names, absolute; undefined when it names none. */
export const embeddedFolder = ({ tree }: Pick<Profile, "tree">, stateFolder: string): string | undefined => {
  const named = Object(tree["database"]).embedded_folder
  return typeof named === "string" && named !== "" ? resolve(stateFolder, named) : undefined
}

export const namesDatabase = (profile: Pick<Profile, "secret" | "tree">): boolean =>
  Option.isSome(profile.secret("DATABASE_URL")) || embeddedFolder(profile, "") !== undefined

export const describeDatabase = (profile: Pick<Profile, "secret" | "tree">, stateFolder: string): string =>
  Option.match(profile.secret("DATABASE_URL"), {
    onSome: (url) => describeServer(Redacted.value(url)),
    onNone: () => {
      const folder = embeddedFolder(profile, stateFolder)
      return folder === undefined ? "no database" : `embedded database in ${folder}`
    }
  })

/** The line for a running process. `isOverridden`: the command has `--set`, which the process ignores. */
export const answeredByProcess = (folder: string, instance: Instance, isOverridden = false): string => {
  const { databaseName = instance.database, pid, profile, url } = instance
  const at = url === undefined ? "" : `, ${url}`
  const own = isOverridden ? "; by its own settings, not those of --set" : ""
  return `answered by process ${pid}${at} (profile ${profile}; ${databaseName}; state in ${resolve(folder)}${own})`
}

/**
 * The line for a command that ran without a process. `local` is the default of `--profile`. `source`: the source of its
 * answer, if that is not the profile's database.
 */
export const answeredHere = (
  profile: Profile,
  stateFolder: string,
  source = describeDatabase(profile, stateFolder)
): string => {
  const isElsewhere = profile.name === "local" && Option.isSome(profile.secret("DATABASE_URL"))
  const name = isElsewhere ? "local, the default; name another with --profile" : profile.name
  const [other] = instancesOf(stateFolder)
  const unasked =
    other === undefined
      ? ""
      : `; ${describeInstance(other)}, runs over ${resolve(stateFolder)} with profile ${other.profile}, not asked`
  const where = `profile ${name}; ${source}`
  return `answered by this command itself, not by a running process (${where})${unasked}`
}

/** Three ways to select a facilitator. */
const ways = "name its folder with --state DIR, its profile with --profile, or its PostgreSQL server with DATABASE_URL"

/** The folder has never been used by a process. */
export const neverStartedOver = (stateFolder: string): string =>
  `nothing was ever started over ${resolve(stateFolder)}, and commands create no state; ${ways}`

/** A running process has the embedded database open and did not run the command. */
export const heldBy = (holder: Instance, profile: string): string =>
  holder.profile === profile
    ? `${describeInstance(holder)}, has the embedded database and did not answer this command; its log may say why`
    : `${describeInstance(holder)}, has the embedded database; it answers this command with --profile ${holder.profile}`

/** Why a profile without a database is refused: payments would be lost with the machine. */
export const namesNoDatabase = (profile: Pick<Profile, "name">): string =>
  `profile ${profile.name} names no database: set DATABASE_URL to a PostgreSQL server; for the embedded database, ` +
  "which survives kill -9 but not a loss of power or of its folder, ask for it with " +
  "--set database.embedded_folder=FOLDER (`database` is the one in the folder of --state); another --profile may do so"

/** The database does not have the tables of `owner`. */
export const neverStartedOn = (owner: string, profile: Profile, stateFolder: string): string =>
  owner === "kernel"
    ? `nothing was ever started on the ${describeDatabase(profile, stateFolder)}; ${ways}`
    : `${owner} was never started on the ${describeDatabase(profile, stateFolder)}; enable it, or ${ways}`

/** True if the folder contains an embedded database. */
export const isDatabase = (folder: string): boolean => existsSync(join(folder, "PG_VERSION"))
