// Which process, profile and database answered an operator's command, as one line on stderr: an answer from the wrong
// database resembles the right one. Of a server's URL it shows the host and the database's name alone.
import { Option, Redacted } from "effect"
import { existsSync } from "node:fs"
import { join, resolve } from "node:path"
import type { Profile } from "./profile.ts"
import { describeInstance, type Instance, instancesOf } from "./state.ts"

/** A server and its database, without user, password or parameters. */
const describeServer = (url: string): string => {
  try {
    const { host, pathname } = new URL(url)
    return `database ${decodeURIComponent(pathname.slice(1))} at ${host}`
  } catch {
    return "the server of DATABASE_URL"
  }
}

/** The folder of the embedded database that the profile names, absolute; undefined when it names none. */
export const embeddedFolder = ({ tree }: Pick<Profile, "tree">, stateFolder: string): string | undefined => {
  const named = Object(tree["database"]).embedded_folder
  return typeof named === "string" && named !== "" ? resolve(stateFolder, named) : undefined
}

/** Whether a profile says where its database is. */
export const namesDatabase = (profile: Pick<Profile, "secret" | "tree">): boolean =>
  Option.isSome(profile.secret("DATABASE_URL")) || embeddedFolder(profile, "") !== undefined

/** The database of a profile. */
export const describeDatabase = (profile: Pick<Profile, "secret" | "tree">, stateFolder: string): string =>
  Option.match(profile.secret("DATABASE_URL"), {
    onSome: (url) => describeServer(Redacted.value(url)),
    onNone: () => {
      const folder = embeddedFolder(profile, stateFolder)
      return folder === undefined ? "no database" : `embedded database in ${folder}`
    }
  })

/** The line of a running process. `isOverridden`: the command names settings, which are not those of the process. */
export const answeredByProcess = (folder: string, instance: Instance, isOverridden = false): string => {
  const { databaseName = instance.database, pid, profile, url } = instance
  const at = url === undefined ? "" : `, ${url}`
  const own = isOverridden ? "; by its own settings, not those of --set" : ""
  return `answered by process ${pid}${at} (profile ${profile}; ${databaseName}; state in ${resolve(folder)}${own})`
}

/**
 * The line of a command that asked no process. `local` is what `--profile` is without the flag. `source`: what it
 * answers from, when that is not the profile's database.
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

/** A person's three ways to say which facilitator is meant. */
const ways = "name its folder with --state DIR, its profile with --profile, or its PostgreSQL server with DATABASE_URL"

/** Nothing was ever started over the folder. */
export const neverStartedOver = (stateFolder: string): string =>
  `nothing was ever started over ${resolve(stateFolder)}, and a command creates nothing; ${ways}`

/** A running process has the embedded database, and did not run the command. */
export const heldBy = (holder: Instance, profile: string): string =>
  holder.profile === profile
    ? `${describeInstance(holder)}, has the embedded database and did not answer this command; its log may say why`
    : `${describeInstance(holder)}, has the embedded database; it answers this command with --profile ${holder.profile}`

/** Why a profile without any database is refused: payments would be forgotten with the machine. */
export const namesNoDatabase = (profile: Pick<Profile, "name">): string =>
  `profile ${profile.name} names no database: set DATABASE_URL to a PostgreSQL server; for the embedded database, ` +
  "which survives kill -9 but not a loss of power or of its folder, ask for it with " +
  "--set database.embedded_folder=FOLDER (`database` is the one in the folder of --state); another --profile may do so"

/** What a part needs is not on the database. */
export const neverStartedOn = (owner: string, profile: Profile, stateFolder: string): string =>
  owner === "kernel"
    ? `nothing was ever started on the ${describeDatabase(profile, stateFolder)}; ${ways}`
    : `${owner} was never started on the ${describeDatabase(profile, stateFolder)}; enable it, or ${ways}`

/** Whether there is an embedded database in the folder. */
export const isDatabase = (folder: string): boolean => existsSync(join(folder, "PG_VERSION"))
