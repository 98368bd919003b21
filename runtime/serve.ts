// One process from a profile: the platform's ports, the profile's plugins, and, once all of them are started, the
// listener. So migrations are done and every refusal is reported before a port opens. On a signal the listener stops
// first and answers requests in flight, for five seconds at most, with each response the last of its connection; then
// the plugins stop in reverse order. An actor that gives up ends the process.
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as NodeHttpPlatform from "@effect/platform-node/NodeHttpPlatform"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as NodePath from "@effect/platform-node/NodePath"
import { Context, Effect, Layer, Option, Path, type Scope } from "effect"
import { Etag, HttpMiddleware, HttpRouter, HttpServer } from "effect/http"
import { hostname } from "node:os"
import { linesOf, requireAll } from "../kernel/accounts/KeyRevisions.ts"
import type { Network } from "../kernel/config/Network.ts"
import { serverSection } from "../kernel/config/Server.ts"
import { decodeSection } from "../kernel/config/Settings.ts"
import { DatabaseRefused, DatabaseSource } from "../kernel/database/DatabaseSource.ts"
import { MigrationsFolder } from "../kernel/database/Migrations.ts"
import { StartupBanner } from "../kernel/StartupBanner.ts"
import { inRange } from "../kernel/config/addressRange.ts"
import { isLoopback } from "../kernel/http/hostValidation.ts"
import { httpMiddleware, withinCapacity } from "../kernel/http/httpMiddleware.ts"
import { Authentication } from "../kernel/http/Authentication.ts"
import { Keys } from "../kernel/http/Keys.ts"
import { allowOrigins } from "../kernel/http/allowOrigins.ts"
import type { DeclaredRules } from "../kernel/http/RouteRules.ts"
import { makeAuditReads } from "../kernel/settlement/operators/auditReads.ts"
import { makeAdmitRequests } from "../kernel/http/admitRequests.ts"
import { ListenAt, type ListenChoice } from "../kernel/http/ListenAt.ts"
import { MetricReadings } from "../kernel/payment/report/MetricReadings.ts"
import { checkFeeSchemes } from "../kernel/payment/checkFeeSchemes.ts"
import { Schemes } from "../kernel/payment/Scheme.ts"
import * as Loader from "../kernel/plugin/Loader.ts"
import type { Crypto } from "../kernel/platform/Crypto.ts"
import { DiskSpace } from "../kernel/platform/DiskSpace.ts"
import { Host } from "../kernel/platform/Host.ts"
import { RequestBytes } from "../kernel/platform/RequestBytes.ts"
import { ResponseEnd } from "../kernel/platform/ResponseEnd.ts"
import { ListenFailed, type Listeners } from "../kernel/platform/Listeners.ts"
import { Stdio } from "../kernel/platform/Stdio.ts"
import { PluginStates } from "../kernel/plugin/PluginStates.ts"
import { RouteClaims } from "../kernel/plugin/Routes.ts"
import { Supervisor } from "../kernel/actor/Supervisor.ts"
import { embeddedFolder, namesDatabase, namesNoDatabase } from "./answeredBy.ts"
import { addKeptActs } from "../kernel/settlement/operators/keptActs.ts"
import { OperatorAuditLog } from "../kernel/settlement/operators/OperatorAuditLog.ts"
import { makeCatalogue } from "./App.ts"
import * as FolderLock from "./platform/folderLock.ts"
import { readDisk } from "./platform/nodeDisk.ts"
import { connectionLimits } from "./platform/connections.ts"
import { makeHttpServer } from "./platform/httpServer.ts"
import * as NodeCrypto from "./platform/nodeCrypto.ts"
import * as NodeDeadline from "./platform/nodeDeadline.ts"
import * as NodeHttpCalls from "./platform/nodeHttpCalls.ts"
import * as NodeListeners from "./platform/nodeListeners.ts"
import * as NodeOutbound from "./platform/nodeOutbound.ts"
import * as NodeProcess from "./platform/nodeProcess.ts"
import { readNode } from "./platform/nodeRequestBytes.ts"
import * as NodeStdio from "./platform/nodeStdio.ts"
import { readForExport } from "./platform/telemetry.ts"
import * as Pglite from "./platform/pglite.ts"
import type { Profile } from "./profile.ts"
import { rereadSecrets } from "./rereadSecrets.ts"
import { claimState, type StateRefused } from "./state.ts"

interface ServeOptions {
  /** False starts everything but the listener; default true. */
  readonly listens?: boolean
  readonly profile: Profile
  /** Folder of this process's state; created if missing, only for this user. */
  readonly stateFolder: string
  /** The database's source: `databaseAt`, or a test's own. */
  readonly database: Layer.Layer<DatabaseSource, never, Path.Path>
  /**
   * Called once the listener answers, with its bound address (undefined without a listener) and the started services.
   */
  readonly onReady: (
    address: { readonly host: string; readonly port: number } | undefined,
    services: Context.Context<never>
  ) => Effect.Effect<void, StateRefused | ListenFailed, StartupBanner | ListenAt | Crypto | Listeners | Scope.Scope>
}

/**
 * Requests in flight get this long to end when the process is asked to stop. Payments are answered after half of it, so
 * that a busy machine has the other half to send the responses: an undecided settlement is pending, and the next
 * process follows it.
 */
const drainTimeout = "5 seconds"

/** Paths are compared case-sensitively, so that a different spelling cannot bypass a rule in front of this process. */
const router = HttpRouter.layer.pipe(Layer.provide(Layer.succeed(HttpRouter.RouterConfig, { caseSensitive: true })))

/** Without caller keys the facilitator serves only this machine, unless the profile configures a host (rules 2). */
const listenHost = (host: string | undefined, services: Context.Context<never>): string =>
  host ?? (Option.exists(Context.getOption(services, Keys), (keys) => keys.keyed()) ? "0.0.0.0" : "127.0.0.1")

const lower = (words: ReadonlyArray<string>): ReadonlyArray<string> => words.map((word) => word.toLowerCase())

/** The PostgreSQL server of DATABASE_URL; without one, the embedded database in the folder that the profile names. */
export const databaseAt = (profile: Omit<Profile, "plugins">, stateFolder: string): Layer.Layer<DatabaseSource> =>
  Option.match(profile.secret("DATABASE_URL"), {
    onNone: () => {
      const folder = embeddedFolder(profile, stateFolder)
      if (folder !== undefined) return Pglite.layer(folder)
      const refused = new DatabaseRefused({ message: namesNoDatabase(profile) })
      return Layer.succeed(DatabaseSource, { open: Effect.fail(refused) })
    },
    onSome: (url) =>
      Layer.succeed(DatabaseSource, {
        open: Effect.sync(() => ({
          kind: "server" as const,
          url,
          directUrl: Option.getOrUndefined(profile.secret("DATABASE_DIRECT_URL"))
        }))
      })
  })

/**
 * Refuses a profile that configures no storage for payments, before anything is created: a replaced container would
 * lose them.
 */
export const requireNamedDatabase = (profile: Profile): Effect.Effect<void, DatabaseRefused> =>
  Effect.match(Loader.select(makeCatalogue(profile), profile.plugins), {
    onFailure: () => false,
    onSuccess: (plugins) => plugins.some(({ id }) => id === "database") && !namesDatabase(profile)
  }).pipe(
    Effect.flatMap((isRefused) =>
      isRefused ? Effect.fail(new DatabaseRefused({ message: namesNoDatabase(profile) })) : Effect.void
    )
  )

/** Maximum additions to a request's services before all of them are copied. */
const additionsMax = 48

/**
 * The initial services of every request, flattened. A request adds to them a dozen times: itself, its notes, its scope
 * and its log annotations. With the library's default, each eighth addition copies all services of the process.
 */
const forRequests = <R>(context: Context.Context<R>): Context.Context<R> =>
  Context.makeUnsafe(new Map(context.mapUnsafe), { maxDepth: additionsMax })

type Answering = ReturnType<HttpRouter.HttpRouter["asHttpEffect"]>

/** The router of a facilitator behind its checks of hosts, pages and keys. */
const guarded = (
  answer: Answering,
  of: {
    readonly host: string
    readonly section: {
      readonly allowed_hosts: ReadonlyArray<string>
      readonly allowed_origins: ReadonlyArray<string>
      readonly points_per_second: number
    }
    readonly services: Context.Context<never>
    readonly routes: DeclaredRules
  }
) => {
  const { routes } = of
  const allowedOrigins = lower(of.section.allowed_origins)
  const admitted = Option.match(Context.getOption(of.services, Authentication), {
    onNone: () => answer,
    onSome: (callers) => {
      const trail = Context.getOption(of.services, OperatorAuditLog)
      const audited = Option.isSome(trail) ? makeAuditReads(callers, trail.value, routes)(answer) : answer
      return makeAdmitRequests(callers, routes, of.section.points_per_second)(audited)
    }
  })
  const rules = { host: of.host, allowedHosts: lower(of.section.allowed_hosts), allowedOrigins }
  // The outermost layer, so that an allowed page can read errors and refusals too.
  return allowOrigins(allowedOrigins, routes)(httpMiddleware(withinCapacity(rules, routes)(admitted), routes))
}

/** Opens the listener and serves the router; succeeds with the bound address. */
const listen = Effect.fnUntraced(function* (
  profile: Profile,
  chosen: ListenChoice | undefined,
  services: Context.Context<never>
) {
  const router = yield* HttpRouter.HttpRouter
  const section = yield* decodeSection(serverSection, profile.tree)
  const at = chosen === undefined || chosen.at === "nowhere" ? undefined : chosen.at
  const { host, port } = at ?? { host: listenHost(section.host, services), port: section.port }
  if (at === undefined && section.host === undefined && !isLoopback(host))
    yield* Effect.logWarning(
      `callers have keys and server.host is not set: listening at every address of this machine (${host}); ` +
        "set server.host to 127.0.0.1 to be reached from this machine alone, or to 0.0.0.0 to end this warning"
    )
  const setting = at === undefined ? "server.port" : "http.port"
  const { server: httpServer, stopping } = makeHttpServer({
    isTrusted: (address) => section.trusted_proxies.some((range) => inRange(address, range)),
    requestBytesMax: 2 * section.max_request_bytes + connectionLimits.requestBytesMax
  })
  const listener = yield* Layer.build(
    NodeHttpServer.layerServer(() => httpServer, { host, port, gracefulShutdownTimeout: drainTimeout })
  ).pipe(Effect.mapError(({ cause }) => new ListenFailed({ host, port, setting, cause })))
  // After the drain, so that remaining connections delay nothing.
  yield* Effect.addFinalizer(() => Effect.sync(() => httpServer.closeAllConnections()))
  const http = Context.get(listener, HttpServer.HttpServer)
  // A tool server authorizes by its own settings.
  const { rules: routes } = yield* RouteClaims
  const answer =
    at === undefined
      ? guarded(router.asHttpEffect(), { host, section, services, routes })
      : allowOrigins(chosen?.allowedOrigins ?? [], routes)(httpMiddleware(router.asHttpEffect(), routes))
  yield* HttpServer.serveEffect(answer).pipe(
    Effect.updateContext(forRequests),
    // The middleware has its own span: the server's would carry queries, addresses and user agents.
    Effect.provideService(HttpMiddleware.TracerDisabledWhen, () => true),
    Effect.provideService(RequestBytes, readNode),
    Effect.provideService(ResponseEnd, NodeProcess.awaitNodeResponse),
    Effect.provideContext(listener)
  )
  // Resources are released in reverse order, so streams end before the listener waits for them.
  yield* Effect.addFinalizer(() => Effect.flatMap(ListenAt, ({ close }) => close))
  if (chosen !== undefined) yield* Effect.addFinalizer(() => chosen.closing)
  yield* Effect.addFinalizer(() => Effect.sync(stopping))
  return { host, port: "port" in http.address ? http.address.port : port }
})

const run = Effect.fnUntraced(function* (options: ServeOptions) {
  const { profile } = options
  const services = yield* Loader.start(makeCatalogue(profile), profile.plugins)
  if (Option.isSome(Context.getOption(services, Schemes)))
    yield* Effect.provide(checkFeeSchemes, services as Context.Context<Network | Schemes>)
  const trail = Context.getOption(services, OperatorAuditLog)
  if (Option.isSome(trail)) yield* addKeptActs(trail.value, options.stateFolder)
  const chosen = yield* (yield* ListenAt).chosen
  if (chosen !== undefined && Option.isSome(Context.getOption(services, Keys))) {
    return yield* new Loader.ProfileRefused({
      plugin: profile.plugins.join(", "),
      message: "a tool server and a facilitator are two processes"
    })
  }
  if (chosen !== undefined) yield* chosen.begins
  const isQuiet = options.listens === false || chosen?.at === "nowhere"
  const address = isQuiet ? undefined : yield* listen(profile, chosen, services)
  if (Option.isSome(Context.getOption(services, Keys))) {
    yield* NodeProcess.onHangup(
      rereadSecrets(services, {}, { person: "service manager", via: "signal", reason: "SIGHUP" }).pipe(
        Effect.tap((replicas) => Effect.logInfo(`keys were reread: ${linesOf(replicas).join("; ")}`)),
        Effect.flatMap(requireAll),
        Effect.catch((error) => Effect.logError("keys were not reread on every replica", error))
      )
    )
  }
  const readings = Context.getOption(services, MetricReadings)
  if (Option.isSome(readings)) yield* readForExport(readings.value.refresh)
  yield* options.onReady(address, services)
  const escalated = Option.match(Context.getOption(services, Supervisor), {
    onNone: () => Effect.never,
    onSome: (supervisor) => supervisor.escalated
  })
  return yield* Effect.raceFirst(escalated, (yield* Stdio).left)
}, Effect.scoped)

/** Runs the profile until it is interrupted or an actor gives up. */
export const serve = Effect.fnUntraced(function* (options: ServeOptions) {
  const path = yield* Path.Path
  const stateFolder = path.resolve(options.stateFolder)
  yield* claimState(options.stateFolder)
  const migrations = yield* Effect.orDie(path.fromFileUrl(new URL("../migrations/", import.meta.url)))
  const platform = Layer.mergeAll(
    NodeCrypto.layer,
    NodeDeadline.layer,
    NodeHttpCalls.layer,
    NodeListeners.layer,
    NodeOutbound.layer,
    NodeProcess.layer,
    NodeStdio.layer,
    FolderLock.layer,
    ListenAt.layer,
    StartupBanner.layer,
    PluginStates.layer,
    RouteClaims.layer,
    router,
    // Not `NodeHttpServer.layerHttpServices`, which opens a terminal: a serving program owns stdin.
    NodeHttpPlatform.layer,
    Etag.layerWeak,
    NodeFileSystem.layer,
    NodePath.layer,
    options.database,
    Layer.succeed(MigrationsFolder, { path: migrations }),
    Layer.succeed(Host, { name: hostname(), stateFolder })
  )
  // The embedded database may be on a separate disk.
  const disk = readDisk(stateFolder, embeddedFolder(options.profile, stateFolder) ?? stateFolder)
  return yield* Effect.provide(run(options), platform).pipe(Effect.provideService(DiskSpace, disk))
})
