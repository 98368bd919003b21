// Liveness and readiness. Ready means that the database answers a trivial query, and nothing else: a silent ledger or a
// degraded search shows in the body and never in the status (S64–S73). Drivers and plugins register reports; a report
// is bounded in time and length, and a failing report is marked as failed and does not fail the rest.
import { Context, Effect, Layer, Schema, type Scope } from "effect"
import type { HttpRouter, HttpServerRequest } from "effect/http"
import { contract } from "../contract/Contract.ts"
import { Database } from "../database/Database.ts"
import { Authentication } from "../http/Authentication.ts"
import { json } from "../http/httpMiddleware.ts"
import { addRoutes, type Documented, processRoutes, route } from "../http/Route.ts"
import { text } from "../http/wireSchema.ts"
import { PluginStates } from "../plugin/PluginStates.ts"

export interface HealthReport {
  readonly state: "ready" | "degraded" | "disabled"
  /** At most 200 characters are shown, to anyone: it names no caller, account or amount. */
  readonly detail?: string
  /** Operators see it in place of `detail`, with the same limit; it may name callers. */
  readonly operatorDetail?: string
  /** Figures in addition to the state, such as balances in stroops as text. */
  readonly figures?: Readonly<Record<string, string | number | boolean | null>>
}

/** A search plugin's addition to the readiness body. */
export interface SearchReport extends HealthReport {
  readonly vectorSupport?: boolean
  /** Name of the active model generation. */
  readonly generation?: string
}

/** Branches that the body always contains, even without a plugin that registers them (S64). */
const searchBranches = ["lexical", "semantic"] as const
const detailMax = 200
const reportTimeout = "1 second"

/** Whether a figure is an account's balance, which only an operator needs. */
const isBalance = (figure: string): boolean => figure.includes("Stroops")

/** Merges reports under one name, bounded; the public form leaves out what only operators may see. */
const together = (reports: ReadonlyArray<HealthReport>, isOperator: boolean): HealthReport => {
  const worst = (["degraded", "ready"] as const).find((state) => reports.some((one) => one.state === state))
  const detail = reports
    .flatMap((one) => (isOperator ? (one.operatorDetail ?? one.detail) : one.detail) ?? [])
    .join("; ")
  const figures = Object.entries(Object.assign({}, ...reports.map((one) => one.figures ?? {})))
  return {
    state: worst ?? "disabled",
    ...(detail === "" ? {} : { detail: detail.slice(0, detailMax) }),
    ...Object.fromEntries(figures.filter(([name]) => isOperator || !isBalance(name)))
  }
}

export class Health extends Context.Service<
  Health,
  {
    /**
     * A driver's or plugin's own report, shown by its name. Several reports under one name are merged: degraded if one
     * of them is, with the details and figures of all.
     */
    readonly register: (name: string, report: Effect.Effect<HealthReport>) => Effect.Effect<void, never, Scope.Scope>
    /**
     * The report of one branch of search, by any plugin. `lexical` and `semantic` are always in the body, `disabled`
     * when no plugin registers them.
     */
    readonly registerSearch: (
      branch: string,
      report: Effect.Effect<SearchReport>
    ) => Effect.Effect<void, never, Scope.Scope>
    readonly reports: (isOperator: boolean) => Effect.Effect<Readonly<Record<string, HealthReport>>>
    readonly search: Effect.Effect<Readonly<Record<string, unknown>>>
  }
>()("tollkeeper/kernel/Health") {
  static readonly layer = Layer.sync(Health, () => {
    const reports = new Set<{ readonly name: string; readonly report: Effect.Effect<HealthReport> }>()
    const branches = new Map<string, Effect.Effect<SearchReport>>()
    const keep = <A>(into: Map<string, Effect.Effect<A>>, name: string, report: Effect.Effect<A>) =>
      Effect.asVoid(
        Effect.acquireRelease(
          Effect.sync(() => into.set(name, report)),
          () => Effect.sync(() => into.delete(name))
        )
      )
    const ask = <A extends HealthReport>(report: Effect.Effect<A> | undefined): Effect.Effect<A | HealthReport> =>
      report === undefined
        ? Effect.succeed({ state: "disabled" })
        : report.pipe(
            Effect.timeout(reportTimeout),
            Effect.catchCause(() => Effect.succeed<HealthReport>({ state: "degraded", detail: "the report failed" }))
          )
    return Health.of({
      register: (name, report) => {
        const entry = { name, report }
        return Effect.asVoid(
          Effect.acquireRelease(
            Effect.sync(() => reports.add(entry)),
            () => Effect.sync(() => reports.delete(entry))
          )
        )
      },
      registerSearch: (branch, report) => keep(branches, branch, report),
      reports: Effect.fnUntraced(function* (isOperator) {
        const said = yield* Effect.forEach(
          reports,
          ({ name, report }) => Effect.map(ask(report), (answer) => ({ name, answer })),
          { concurrency: "unbounded" }
        )
        const byName = Map.groupBy(said, ({ name }) => name)
        const merged = [...byName].map(([name, all]) => {
          const answers = all.map(({ answer }) => answer)
          return [name, together(answers, isOperator)] as const
        })
        return Object.fromEntries(merged)
      }),
      search: Effect.gen(function* () {
        const names = [...new Set([...searchBranches, ...branches.keys()])]
        const said: ReadonlyArray<SearchReport> = yield* Effect.forEach(names, (name) => ask(branches.get(name)))
        const detail = said.find((report) => report.detail !== undefined)?.detail
        return {
          ...Object.fromEntries(names.map((name, index) => [name, said[index]?.state ?? "disabled"])),
          vectorSupport: said.some(({ vectorSupport }) => vectorSupport === true),
          generation: said.find(({ generation }) => generation !== undefined)?.generation ?? null,
          ...(detail === undefined ? {} : { detail: detail.slice(0, detailMax) })
        }
      })
    })
  })
}

export const healthContract = contract("health", Health)

const State = Schema.Literals(["ready", "degraded", "disabled"])
const detail = Schema.optionalKey(Schema.String.check(Schema.isMaxLength(detailMax)))
const Readiness = Schema.StructWithRest(
  Schema.Struct({
    status: Schema.Literals(["ready", "not_ready"]),
    search: Schema.Struct({
      lexical: State,
      semantic: State,
      vectorSupport: Schema.Boolean,
      generation: Schema.optionalKey(Schema.NullOr(Schema.String)),
      detail
    }),
    plugins: Schema.Record(
      Schema.String,
      Schema.Struct({ state: text("Whether the plugin runs."), detail: Schema.optionalKey(text("Why not.")) })
    )
  }),
  // The report of each driver and plugin, by its name.
  [Schema.Record(Schema.String, Schema.Unknown)]
).annotate({ identifier: "Readiness" })

const probe = (
  path: HttpRouter.PathInput,
  id: string,
  summary: string,
  answers: Documented["answers"]
): Documented => ({
  method: "GET",
  path,
  id,
  summary,
  exposure: "public",
  callers: "public",
  cost: { cpuMillis: 5, bytesOut: 32_768, statements: 4 },
  label: path,
  isProbe: true,
  answers
})
const alive = { 200: { description: "The process is running.", body: Schema.Struct({ status: Schema.Literal("ok") }) } }

/** /health/live, /health and /health/ready. */
export const routes = Layer.effectDiscard(
  Effect.gen(function* () {
    const health = yield* Health
    const database = yield* Database
    const plugins = yield* PluginStates
    const callers = yield* Authentication
    const live = Effect.succeed(json({ status: "ok" }))
    const ready = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest) {
      const ready = yield* Effect.match(database.ping, { onFailure: () => false, onSuccess: () => true })
      const body = {
        status: ready ? "ready" : "not_ready",
        search: yield* health.search,
        plugins: Object.fromEntries(
          plugins.all().map(({ detail, id, state }) => [id, detail === undefined ? { state } : { state, detail }])
        ),
        ...(yield* health.reports(callers.mayOperate(request)))
      }
      return json(body, { status: ready ? 200 : 503 })
    })
    yield* addRoutes(processRoutes, [
      route(probe("/health", "health", "Alias of /health/live.", alive), live),
      route(probe("/health/live", "live", "The process is running.", alive), live),
      route(
        probe("/health/ready", "ready", "Whether the database answers; the state of search, plugins and drivers.", {
          200: { description: "Ready.", body: Readiness },
          503: { description: "The database does not answer.", body: Readiness }
        }),
        ready
      )
    ])
  })
)
