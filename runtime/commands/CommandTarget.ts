// A command's target: profile, overridden settings and state folder. Every command has the same flags and Layers. A
// command that runs within a serving process (`operators.ts`) uses the services of that process. Standalone it opens
// the database itself; on a server it does so in parallel with the running replicas.
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Console, Context, Effect, Layer, Option, Schema } from "effect"
import { Flag } from "effect/cli"
import { SqlClient, type SqlError } from "effect/sql"
import { hostname } from "node:os"
import { resolve } from "node:path"
import process from "node:process"
import { fileURLToPath } from "node:url"
import { Settings } from "../../kernel/config/Settings.ts"
import { Database } from "../../kernel/database/Database.ts"
import * as Migrations from "../../kernel/database/Migrations.ts"
import { Facts, ServesFacts } from "../../kernel/facts/Facts.ts"
import { Host } from "../../kernel/platform/Host.ts"
import { type AuditChange, type AuditEntry, makeAuditLog } from "../../kernel/settlement/operators/OperatorAuditLog.ts"
import { Supervisor } from "../../kernel/actor/Supervisor.ts"
import * as FolderLock from "../platform/folderLock.ts"
import * as NodeCrypto from "../platform/nodeCrypto.ts"
import {
  answeredHere,
  describeDatabase,
  embeddedFolder,
  heldBy,
  isDatabase,
  neverStartedOn,
  neverStartedOver
} from "../answeredBy.ts"
import { declaredSettings } from "../App.ts"
import { loadProfile, type Profile } from "../profile.ts"
import { databaseAt } from "../serve.ts"
import { osUser } from "../askRunning.ts"
import { instancesOf, isClaimed, StateRefused } from "../state.ts"
import { visibleText } from "../visibleText.ts"
import { keepAct } from "../../kernel/settlement/operators/keptActs.ts"

export interface CommandTarget {
  readonly profile: string
  readonly state: string
  readonly set: ReadonlyArray<string>
}

/** A flag's description and its default, which the help shows. */
export const defaulting =
  <A>(words: string, value: A) =>
  (flag: Flag.Flag<A>): Flag.Flag<A> =>
    flag.pipe(Flag.withDescription(`${words}; default ${String(value)}`), Flag.withDefault(value)) as Flag.Flag<A>

export const stateFlag = Flag.String("state").pipe(defaulting("Folder of this process's state", ".tollkeeper"))

export const jsonFlag = Flag.Boolean("json").pipe(
  Flag.withDescription("Print one JSON value instead of text; default false"),
  Flag.withDefault(false)
)

/** The flags of a target. `shipped` is the default profile. */
export const placeFlags = (shipped: "local" | "tools" = "local") => ({
  profile: Flag.String("profile").pipe(
    defaulting(
      "A shipped profile (local, hosted, self-hosted, tools, tools-hosted) or the path of a YAML file",
      shipped as string
    )
  ),
  state: stateFlag,
  set: Flag.String("set").pipe(
    Flag.withDescription("Override one setting: path=value, the value being YAML; default none, may be repeated"),
    Flag.atLeast(0)
  )
})

/** The profile of a target, secrets from this process's environment. */
export const profileAt = (place: Pick<CommandTarget, "profile" | "set">, overrides: ReadonlyArray<string> = []) =>
  loadProfile(place.profile, [...overrides, ...place.set], process.env)

/** The services of the serving process, when it runs the command on an operator's request. */
export const Within = Context.Reference<
  | { readonly services: Context.Context<never>; readonly folder: string; readonly person?: string | undefined }
  | undefined
>("tollkeeper/commands/Within", { defaultValue: () => undefined })

/** The command's services: those of the serving process, else the command's own layer. */
export const databaseStatus = <A, E, R>(layer: Layer.Layer<A, E, R>): Layer.Layer<A, E, R> =>
  Layer.unwrap(
    Effect.map(Within, (within) =>
      within === undefined ? layer : Layer.succeedContext(within.services as unknown as Context.Context<A>)
    )
  )

/** The operating system user of a command: of the requesting process, otherwise of this process. */
export const byPerson = Effect.map(Within, (within) => ({
  person: within?.person ?? osUser(),
  via: "command line" as const
}))

/** Records an action in the audit trail of the serving process, or of the database that the command has opened. */
export const noted =
  (entry: Omit<AuditEntry, "person" | "via">) =>
  <A, E extends { readonly message: string }, R>(
    act: Effect.Effect<A, E, R>,
    changed?: (result: A) => AuditChange
  ): Effect.Effect<A, E | SqlError.SqlError, R | SqlClient.SqlClient> =>
    Effect.gen(function* () {
      const by = yield* byPerson
      return yield* makeAuditLog(yield* SqlClient.SqlClient).record({ ...by, ...entry }, act, changed)
    })

/** A reason, required for commands that move money or change keys. */
export const reasonFlag = Flag.String("reason").pipe(
  Flag.withAlias("note"),
  Flag.withSchema(Schema.Trim.check(Schema.isMinLength(1), Schema.isMaxLength(500))),
  Flag.withDescription("Why, for the audit trail (`tollkeeper acts`)")
)

/** An optional reason. */
export const whyFlag = reasonFlag.pipe(Flag.withDefault("no reason was given"))

/** Converts values without a JSON form to text or null. */
const plainOf = (_: string, value: unknown): unknown =>
  typeof value === "bigint" ? value.toString() : Option.isOption(value) ? Option.getOrNull(value) : value

/** A command's answer: one JSON value, or lines for people. */
export const answer = (json: boolean, value: unknown, lines: ReadonlyArray<string>): Effect.Effect<void> =>
  Console.log(visibleText(json ? JSON.stringify(value, plainOf) : lines.join("\n")))

/** No process has ever been started with this folder or database. */
class NeverStarted extends Schema.TaggedError<NeverStarted>()("NeverStarted", { message: Schema.String }) {}

/** Loads the target's profile, after stderr shows where the answer comes from. */
const announced = (place: CommandTarget) =>
  Effect.tap(profileAt(place), (profile) => Console.error(answeredHere(profile, place.state)))

/**
 * Refuses an embedded database that was never started, or that a running process has open. A profile without a database
 * is refused when the database is opened.
 */
const requireDatabase = (profile: Profile, state: string) => {
  const folder = Option.isSome(profile.secret("DATABASE_URL")) ? undefined : embeddedFolder(profile, state)
  if (folder === undefined) return Effect.void
  const holder = instancesOf(state).find(
    ({ database, isAlone, operators }) => isAlone && database === "embedded" && operators !== undefined
  )
  if (holder !== undefined) return new StateRefused({ message: heldBy(holder, profile.name) })
  return isDatabase(folder) ? Effect.void : new NeverStarted({ message: neverStartedOver(state) })
}

/** Settings, the platform's ports and the database's address. Nothing is opened. */
const ground = (place: CommandTarget, profile: Profile) =>
  Layer.mergeAll(
    Settings.layer(profile, () => declaredSettings(profile)),
    Supervisor.layer,
    NodeCrypto.layer,
    FolderLock.layer,
    databaseAt(profile, place.state),
    Layer.succeed(Host, { name: hostname(), stateFolder: resolve(place.state) }),
    Layer.succeed(Migrations.MigrationsFolder, { path: fileURLToPath(new URL("../../migrations/", import.meta.url)) })
  ).pipe(Layer.provideMerge(NodeServices.layer))

/** The layers below a command that opens the database itself, or none. */
export const groundAt = (place: CommandTarget) =>
  Layer.unwrap(Effect.map(profileAt(place), (profile) => ground(place, profile)))

/** The same for a command that only needs the profile and this shell's variables. */
export const announcedAt = (place: CommandTarget) =>
  Layer.unwrap(Effect.map(announced(place), (profile) => ground(place, profile)))

/** The database of a facilitator that was started before. Creates and migrates nothing. */
export const databaseOf = (place: CommandTarget) =>
  databaseStatus(
    Layer.unwrap(
      Effect.gen(function* () {
        const profile = yield* announced(place)
        yield* requireDatabase(profile, place.state)
        return Database.layer.pipe(Layer.provideMerge(ground(place, profile)))
      })
    )
  )

/** Refuses a database without an owner's tables in this version. Only a start creates them, no command does. */
const requireTables = (place: CommandTarget, owner: string) =>
  Effect.gen(function* () {
    const missing = yield* Migrations.pendingCount(owner)
    const profile = yield* profileAt(place)
    if (missing === undefined) return yield* new NeverStarted({ message: neverStartedOn(owner, profile, place.state) })
    if (missing > 0)
      return yield* new NeverStarted({
        message:
          `the ${describeDatabase(profile, place.state)} is of an older version: ${missing} migrations of ${owner} ` +
          "have not run, and commands run no migrations; use the version that serves, or start this one first"
      })
  })

/**
 * The layers of a command that reads a tool server's data: the files of a state folder that a process was started over,
 * or the database of DATABASE_URL if the profile stores the budget there.
 */
export const startedAt = (place: CommandTarget) =>
  Layer.unwrap(
    Effect.gen(function* () {
      const profile = yield* profileAt(place)
      const isShared = Object(profile.tree["budget"]).store === "postgres"
      yield* Console.error(
        answeredHere(profile, place.state, isShared ? undefined : `files in ${resolve(place.state)}`)
      )
      if (!isShared && !isClaimed(place.state))
        return yield* new NeverStarted({ message: neverStartedOver(place.state) })
      const tables = isShared ? Effect.provide(requireTables(place, "mcp-tools"), Database.layer) : Effect.void
      return Layer.effectDiscard(tables).pipe(Layer.provideMerge(ground(place, profile)))
    })
  )

/** The database with its journal, and the tables of the kernel and of these plugins. */
export const tablesOf = (place: CommandTarget, ...owners: ReadonlyArray<string>) =>
  databaseStatus(
    Facts.layer.pipe(
      Layer.provide(Layer.succeed(ServesFacts, false)),
      Layer.provideMerge(
        Layer.effectDiscard(Effect.forEach(["kernel", ...owners], (owner) => requireTables(place, owner)))
      ),
      Layer.provideMerge(databaseOf(place))
    )
  )

/** The database with the tables of the kernel. */
export const kernelTables = (place: CommandTarget) => tablesOf(place)

/** Uses the serving process's folder if that process runs the command. */
export const kept =
  (state: string, entry: Omit<AuditEntry, "person" | "via">) =>
  <A, E extends { readonly message: string }, R>(act: Effect.Effect<A, E, R>, changed?: (result: A) => AuditChange) =>
    Effect.gen(function* () {
      const within = yield* Within
      const host = within === undefined ? Option.none() : Context.getOption(within.services, Host)
      const folder = Option.isSome(host) ? host.value.stateFolder : state
      return yield* keepAct(folder, { ...(yield* byPerson), ...entry })(act, changed)
    })
