// `tollkeeper doctor`: checks everything a facilitator depends on, with a remedy for each problem. If a facilitator is
// running, it uses that process's services; standalone it opens what it can. It changes nothing. Exit code 1 if a
// problem keeps payments from being settled.
import { Clock, Context, Effect, Layer, Option, Schema } from "effect"
import { Command } from "effect/cli"
import { SqlClient } from "effect/sql"
import { existsSync, readdirSync, statSync } from "node:fs"
import { createServer } from "node:net"
import { fileURLToPath } from "node:url"
import { dirname, join, resolve } from "node:path"
import { Supervisor } from "../../kernel/actor/Supervisor.ts"
import { Network } from "../../kernel/config/Network.ts"
import { headersFor } from "../../kernel/config/rpcHeaders.ts"
import { Server } from "../../kernel/config/Server.ts"
import { Settings } from "../../kernel/config/Settings.ts"
import { Database } from "../../kernel/database/Database.ts"
import { databaseSection } from "../../kernel/database/databaseSection.ts"
import { Keys } from "../../kernel/http/Keys.ts"
import { lastRunsOf } from "../../kernel/payment/report/reportReconcilers.ts"
import { type DiskReading, diskProblem } from "../../kernel/platform/DiskSpace.ts"
import { Schemes } from "../../kernel/payment/Scheme.ts"
import { fundingProblem } from "../../kernel/settlement/sponsor/sponsorProblem.ts"
import { Signer } from "../../kernel/signer/Signer.ts"
import { Sponsor } from "../../kernel/settlement/sponsor/Sponsor.ts"
import { monotonicMillis } from "../../kernel/time/monotonicMillis.ts"
import { archiveProblem } from "../embeddedCheck.ts"
import { typed } from "../layout.ts"
import { readDisk } from "../platform/nodeDisk.ts"
import { damageOf } from "../resetLog.ts"
import { sentenceOf } from "../sentence.ts"
import {
  answer,
  databaseOf,
  groundAt,
  jsonFlag,
  type CommandTarget,
  placeFlags,
  profileAt,
  databaseStatus,
  Within
} from "./CommandTarget.ts"

/** A problem keeps payments from being settled. */
class ChecksFailed extends Schema.TaggedError<ChecksFailed>()("ChecksFailed", { message: Schema.String }) {}

interface Finding {
  readonly check: string
  readonly state: "ok" | "warning" | "fault"
  readonly detail: string
  /** Absent when no action is needed. */
  readonly remedy?: string
}

const ok = (check: string, detail: string): Finding => ({ check, state: "ok", detail })
const warning = (check: string, detail: string, remedy: string): Finding => ({
  check,
  state: "warning",
  detail,
  remedy
})
const error = (check: string, detail: string, remedy: string): Finding => ({ check, state: "fault", detail, remedy })

const rpcTimeoutMillis = 5_000
const skewSecondsMax = 30
const diskBytesMin = 1_000_000_000

type Headers = Readonly<Record<string, string>>

/** One request for JSON; undefined without an answer. The facilitator follows no redirect with its headers either. */
const askJson = (url: string, init: RequestInit = {}): Effect.Effect<any> =>
  Effect.promise(() =>
    fetch(url, { ...init, redirect: "error", signal: AbortSignal.timeout(rpcTimeoutMillis) })
      .then((response) => response.json() as Promise<any>)
      .catch(() => undefined)
  )

/** One JSON-RPC request, with the headers that the facilitator sends this endpoint. */
const askRpc = (url: string, headers: Headers, method: string): Effect.Effect<any> =>
  Effect.map(
    askJson(url, {
      method: "POST",
      headers: { ...headers, "content-type": "application/json" },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method })
    }),
    (answer) => answer?.result
  )

/** Checks an endpoint; it is named by its position, since its address may hold a key. */
const examineRpc = (url: string, index: number, { isOwn, network }: Examined) =>
  Effect.gen(function* () {
    const check = `RPC ${index + 1}`
    const ask = (method: string) => askRpc(url, headersFor(network.rpcHeaders ?? [], url), method)
    const served = yield* ask("getNetwork")
    const remedy = isOwn
      ? `\`${typed("start")}\` runs the embedded ledger that it names`
      : "check networks.<id>.rpc_urls and the network route; `curl` it from this machine"
    if (served === undefined) return [error(check, "does not answer", remedy)]
    if (served.passphrase !== network.passphrase)
      return [error(check, "serves another network", "set networks.<id>.rpc_urls to an endpoint of the served network")]
    const latest = yield* ask("getLatestLedger")
    const health = yield* ask("getHealth")
    const closedAt = Number(health?.latestLedgerCloseTime ?? latest?.closeTime ?? Number.NaN)
    const reached = ok(check, `answers, at ledger ${latest?.sequence ?? "unknown"}`)
    if (Number.isNaN(closedAt)) return [reached]
    const behind = Math.round((yield* Clock.currentTimeMillis) / 1_000 - closedAt)
    const skew = `its last ledger closed ${behind} s ago by this machine's clock`
    return Math.abs(behind) <= skewSecondsMax
      ? [reached, ok("clock", skew)]
      : [reached, warning("clock", skew, "synchronize this machine's clock (NTP); if it is right, the RPC is stale")]
  })

/** `isOwn`: the profile runs the ledger itself. */
interface Examined {
  readonly network: Network["Service"]
  readonly isOwn: boolean
}

const examineNetwork = Effect.gen(function* () {
  const network = yield* Network
  const isOwn = (yield* Server).plugins.includes("ledger-local")
  return (yield* Effect.forEach(network.rpcUrls, (url, index) => examineRpc(url, index, { network, isOwn }))).flat()
})

const migrationsFolder = fileURLToPath(new URL("../../migrations/", import.meta.url))

/** Kernel migrations that have not run. */
const pending = Effect.fnUntraced(function* (sql: SqlClient.SqlClient) {
  const files = readdirSync(`${migrationsFolder}kernel`).filter((name) => name.endsWith(".sql"))
  const [table] = yield* sql<{
    found: boolean
  }>`select to_regclass('tollkeeper_migrations_kernel') is not null as found`
  if (table?.found !== true) return files.length
  const [row] = yield* sql<{ count: number }>`select count(*)::int as count from tollkeeper_migrations_kernel`
  return files.length - (row?.count ?? 0)
})

const examineDatabase = Effect.gen(function* () {
  const { kind } = yield* Database
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{ version: string; vector: string | null }>`select
    current_setting('server_version') as version,
    (select default_version from pg_available_extensions where name = 'vector') as vector`
  const missing = yield* pending(sql)
  return [
    ok("database", `${kind}, PostgreSQL ${row?.version}`),
    missing === 0
      ? ok("migrations", "all have run")
      : missing > 0
        ? warning("migrations", `${missing} have not run`, "start this version once; it runs them before it listens")
        : error(
            "migrations",
            "the database is newer than this program",
            "start the version that made it, or a newer one"
          ),
    row?.vector == null
      ? warning(
          "extensions",
          "pgvector is not installed",
          "install pgvector for semantic search; everything else works without"
        )
      : ok("extensions", `pgvector ${row.vector}`)
  ]
})

/** Only a running facilitator follows the sponsor. */
export const examineSponsor = Effect.gen(function* () {
  const within = yield* Within
  const sponsor = within === undefined ? Option.none() : Context.getOption(within.services, Sponsor)
  if (Option.isNone(sponsor)) return []
  // `problem` reads a missing condition again, so that the finding is current.
  const schemes = within === undefined ? Option.none() : Context.getOption(within.services, Schemes)
  if (Option.isSome(schemes)) for (const { scheme } of schemes.value.all()) yield* sponsor.value.problem(scheme)
  const status = yield* sponsor.value.status
  if (Option.isNone(status))
    return [error("sponsor", "has not been read from the ledger yet", "fix the RPC first; it is read every second")]
  const { account, channelsUsable } = status.value
  const services = within!.services
  const address = Option.match(Context.getOption(services, Signer), {
    onNone: () => "the sponsor's address (GET /supported names it)",
    onSome: ({ sponsor }) => sponsor
  })
  const unfunded = Option.flatMapNullishOr(Context.getOption(services, Network), ({ feeCeilings }) =>
    fundingProblem(status.value, feeCeilings(""), address)
  )
  const xlm = Number((account?.balanceStroops ?? 0n) / 1_000_000n) / 10
  return [
    Option.isSome(unfunded)
      ? error("sponsor", unfunded.value, `send XLM to ${address}`)
      : xlm < 10
        ? warning("sponsor", `has ${xlm} XLM`, `send XLM to ${address}`)
        : ok("sponsor", `has ${xlm} XLM`),
    channelsUsable > 0
      ? ok("channels", `${channelsUsable} usable`)
      : error("channels", "none is usable", "wait a moment after a first start; see `tollkeeper channels list`")
  ]
})

/** Only a running facilitator has reconcilers. */
const examineReconcilers = Effect.gen(function* () {
  const within = yield* Within
  const supervisor = within === undefined ? Option.none() : Context.getOption(within.services, Supervisor)
  if (Option.isNone(supervisor)) return []
  return lastRunsOf(yield* supervisor.value.actors, yield* monotonicMillis).map(({ actor, isFailing, sentence }) =>
    isFailing
      ? warning("reconciler", `${actor} ${sentence}`, "the log shows the cause; the next run retries")
      : ok("reconciler", `${actor} ${sentence}`)
  )
})

const examineKeys = Effect.gen(function* () {
  const { callers, operators } = (yield* Keys).listed()
  const unlabelled = callers.filter((principal) => /^[0-9a-f]{16}$/.test(principal)).length
  return [
    callers.length === 0
      ? ok("keys", "no caller keys: every client that reaches the listener is served (by default only this machine)")
      : unlabelled > 0
        ? warning(
            "keys",
            `${unlabelled} caller keys have no label`,
            "write label:secret, so that a principal keeps its name over a rotation"
          )
        : ok("keys", `${callers.length} callers, ${operators.length} operators`)
  ]
})

const isFree = (port: number): Effect.Effect<boolean> =>
  Effect.callback<boolean>((resume) => {
    const server = createServer().once("error", () => resume(Effect.succeed(false)))
    server.listen(port, "127.0.0.1", () => server.close(() => resume(Effect.succeed(true))))
  })

/** Whether a facilitator answers at the port of this machine. */
const isFacilitator = (port: number): Effect.Effect<boolean> =>
  Effect.map(askJson(`http://127.0.0.1:${port}/health/live`), (answer) => answer?.status === "ok")

const examinePort = Effect.fnUntraced(function* (folder: string) {
  const { port } = yield* Server
  if ((yield* Within) !== undefined) return [ok("port", "this facilitator answers at it")]
  if (port === 0 || (yield* isFree(port))) return [ok("port", `${port} is free`)]
  return (yield* isFacilitator(port))
    ? [
        warning(
          "port",
          `a facilitator answers at ${port}, but it does not use ${folder}`,
          "name its folder with --state DIR"
        )
      ]
    : [error("port", `${port} is taken by another program`, "stop that one, or choose another with --port PORT")]
})

/** Free disk space below the reserve, in bytes, is a fault: settling answers busy because of it. */
export const diskFinding = (reading: DiskReading, reserveBytes: number): Finding => {
  const remedy = "free some space, or choose another folder with --state DIR"
  const detail = `${(reading.freeBytes / 1e9).toFixed(1)} GB free in ${reading.folder}`
  const problem = diskProblem(reading, reserveBytes)
  if (problem !== undefined) return error("disk", problem, remedy)
  return reading.freeBytes >= diskBytesMin ? ok("disk", detail) : warning("disk", detail, remedy)
}

const examineDisk = Effect.fnUntraced(function* (folder: string) {
  const within = yield* Within
  const running = within === undefined ? Option.none() : Context.getOption(within.services, Database)
  const { disk_reserve_mb, embedded_folder } = yield* (yield* Settings).section(databaseSection)
  const reserveBytes = Option.match(running, {
    onNone: () => disk_reserve_mb * 1_000_000,
    onSome: ({ diskReserveBytes }) => diskReserveBytes
  })
  const reading = yield* readDisk(folder, resolve(folder, embedded_folder))
  return reading === undefined
    ? [ok("disk", `${folder} does not exist yet; the first start creates it`)]
    : [diskFinding(reading, reserveBytes)]
})

/** A check that fails becomes a finding; the others still run. Its remedy is the check's own, never this command. */
const orError = <E, R>(check: string, remedy: string, examine: Effect.Effect<ReadonlyArray<Finding>, E, R>) =>
  Effect.catchCause(examine, (cause) =>
    Effect.succeed<ReadonlyArray<Finding>>([
      error(check, sentenceOf(cause, { isAdvised: false }) ?? "cannot be examined", remedy)
    ])
  )

/** Whether DATABASE_URL names a server, or cannot be read. */
const namesServer = (place: CommandTarget) =>
  Effect.catchCause(
    Effect.map(profileAt(place), ({ secret }) => Option.isSome(secret("DATABASE_URL"))),
    () => Effect.succeed(true)
  )

/** The newest valid archive in a state folder or next to it. */
const newestBackup = (folder: string): string | undefined =>
  [folder, dirname(folder)]
    .filter((place) => existsSync(place))
    .flatMap((place) =>
      readdirSync(place)
        .filter((name) => name.endsWith(".tar"))
        .map((name) => join(place, name))
    )
    .filter((file) => archiveProblem(file) === undefined)
    .map((file) => ({ file, at: statSync(file).mtime }))
    .toSorted((one, other) => other.at.getTime() - one.at.getTime())
    .map(({ at, file }) => `${file} of ${at.toISOString()}`)[0]

/** The remedy for an embedded database that exists but does not open: never another start, which would fail again. */
const damageRemedy = (folder: string): string | undefined => {
  const database = join(folder, "database")
  if (!existsSync(join(database, "PG_VERSION")) && !existsSync(join(database, "base"))) return undefined
  const backup = newestBackup(folder)
  const restore =
    backup === undefined
      ? "no backup was found beside it"
      : `or \`tollkeeper backup restore\` puts ${backup} into another folder, without what came later`
  const damage = damageOf(database)
  return (
    `${damage === undefined ? "" : `${damage}; `}a folder in use names its process; else ` +
    `\`tollkeeper repair --state ${folder}\` keeps a copy and says what is lost; ${restore}`
  )
}

const examine = Effect.fnUntraced(function* (place: CommandTarget) {
  const on = <A, E, R>(layer: Layer.Layer<A, E, R>) => Effect.provide(layer)
  const settings = groundAt(place)
  const config = "`tollkeeper config check` shows what the profile lacks"
  const network = databaseStatus(Network.layer.pipe(Layer.provideMerge(settings)))
  const server = databaseStatus(Server.layer.pipe(Layer.provideMerge(settings)))
  const keys = databaseStatus(Keys.layer.pipe(Layer.provideMerge(Server.layer), Layer.provideMerge(settings)))
  const within = yield* Within
  const database =
    place.profile !== "local" || (yield* namesServer(place))
      ? "start the database, or correct DATABASE_URL; a folder in use names its process"
      : `start the facilitator with \`${typed("start")}\`; a folder in use names its process`
  const folder = resolve(within?.folder ?? ".", place.state)
  const damaged = within === undefined ? damageRemedy(folder) : undefined
  return [
    yield* orError("disk", config, examineDisk(folder).pipe(on(settings))),
    yield* orError("port", config, examinePort(folder).pipe(on(server))),
    yield* orError("keys", config, examineKeys.pipe(on(keys))),
    yield* orError("database", damaged ?? database, examineDatabase.pipe(on(databaseOf(place)))),
    yield* orError("network", config, examineNetwork.pipe(on(Layer.merge(network, server)))),
    yield* orError("sponsor", "fix the RPC first", examineSponsor),
    yield* orError("reconciler", "see the log of the facilitator", examineReconcilers)
  ].flat()
})

/** A finding as a line. If the detail already ends with its remedy, the remedy is not repeated. */
export const lineOf = ({ check, detail, remedy, state }: Finding): string => {
  const last = detail.lastIndexOf("; ")
  const isRepeated = remedy !== undefined && last > 0 && remedy.startsWith(detail.slice(last + 2))
  const found = isRepeated ? detail.slice(0, last) : detail
  return `${state.padEnd(8)} ${check.padEnd(11)} ${found}${remedy === undefined ? "" : `: ${remedy}`}`
}

/** Sorts the problems first. */
export const problemsFirst = (findings: ReadonlyArray<Finding>): ReadonlyArray<Finding> =>
  (["fault", "warning", "ok"] as const).flatMap((state) => findings.filter((one) => one.state === state))

export const doctor = Command.make(
  "doctor",
  { ...placeFlags(), json: jsonFlag },
  Effect.fn(function* ({ json, ...place }) {
    const findings = problemsFirst(yield* examine(place))
    yield* answer(json, findings, findings.map(lineOf))
    const errors = findings.filter(({ state }) => state === "fault").length
    if (errors > 0)
      return yield* new ChecksFailed({
        message: `${errors} of ${findings.length} checks failed; follow the remedy in each line`
      })
  })
).pipe(
  Command.withDescription(
    "Check RPC, clock, database, migrations, extensions, balances, reconcilers, keys, port and disk"
  )
)
