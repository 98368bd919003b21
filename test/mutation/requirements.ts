// Requirements of the specification broken one at a time, those whose tests are far from the code that keeps them: what
// is shown and counted, which beat the follower keeps, what the defaults are, what a tool server holds against a
// seller, what operators' figures say.
import type { Mutation } from "./Mutation.ts"

const vitest = (file: string, name?: string) => [
  "node_modules/vitest/vitest.mjs",
  "run",
  "--config",
  "test/vitest.config.ts",
  file,
  ...(name === undefined ? [] : ["--testNamePattern", name])
]

const environment = { TOLLKEEPER_TEST_DATABASES: "pglite" }

const by =
  (catcher: ReadonlyArray<string>) =>
  (name: string, file: string, from: string, to: string): Mutation => ({
    name,
    changes: [{ file, from, to }],
    catcher,
    environment
  })

const shown = by(vitest("test/plugins/catalog/visibility.daily.test.ts"))
const followed = by(vitest("test/kernel/settlement/follower.test.ts"))
const decided = by(vitest("test/runtime/contract.test.ts"))
const rolledUp = by(vitest("test/plugins/analytics/payments.daily.test.ts", "S95"))
const searched = by(vitest("test/plugins/search-semantic/reports.daily.test.ts"))
const generations = by(vitest("test/plugins/search-semantic/generations.daily.test.ts"))
const pinned = by(vitest("test/kernel/http/safeFetch.test.ts"))
const errors = by(vitest("test/plugins/mcp-tools/ToolError.test.ts"))
const composed = by(vitest("test/plugins/mcp-tools/composition.test.ts"))
const started = by(vitest("test/plugins/mcp-tools-pay/pubnet.daily.test.ts"))
const paid = by(vitest("test/plugins/mcp-tools-pay/pay.daily.test.ts"))
const ordered = by(vitest("test/plugins/mcp-tools-pay/order.test.ts"))
const stopped = by(vitest("test/plugins/mcp-tools/Calls.test.ts"))
const measured = by(vitest("test/kernel/payment/report/MetricReadings.daily.test.ts"))
const watched = by(vitest("test/kernel/payment/report/watchBudget.test.ts"))
const reported = by(vitest("test/runtime/commands/settlementStory.test.ts"))
const charged = by(vitest("test/runtime/commands/budget.test.ts"))
const traced = by(vitest("test/runtime/platform/telemetry.daily.test.ts", "sampler"))
const logged = by(vitest("test/runtime/platform/telemetry.daily.test.ts", "backend"))
const rejectedReported = by(vitest("test/plugins/catalog/hostile.daily.test.ts"))
const rejectedKept = by(vitest("test/plugins/catalog/rejections.daily.test.ts"))
const clientsReported = by(vitest("test/runtime/clientConfig.test.ts"))
const meant = by(vitest("test/plugins/search-semantic/search.daily.test.ts", "S296"))
const hashed = by(vitest("test/plugins/catalog/units.test.ts"))
const booted = by(vitest("test/kernel/database/boot.daily.test.ts"))
const hooked = by(vitest("test/plugins/webhooks/webhooks.daily.test.ts"))
const packaged = by(vitest("test/architecture/packages.test.ts"))
const signalled = by(vitest("test/runtime/platform/telemetry.test.ts"))

export const mutations: ReadonlyArray<Mutation> = [
  shown(
    "S99: stale resources are shown by default",
    "plugins/catalog/discovery/conditions.ts",
    "config.includeStale ? sql`r.state in ('active', 'stale')` : sql`r.state = 'active'`",
    "sql`r.state in ('active', 'stale')`"
  ),
  shown(
    "S291: stale resources are hidden against the setting",
    "plugins/catalog/discovery/conditions.ts",
    "config.includeStale ? sql`r.state in ('active', 'stale')` : sql`r.state = 'active'`",
    "sql`r.state = 'active'`"
  ),
  shown(
    "S114: quarantined resources are shown with the stale ones",
    "plugins/catalog/discovery/conditions.ts",
    "sql`r.state in ('active', 'stale')`",
    "sql`r.state in ('active', 'stale', 'quarantined')`"
  ),
  shown(
    "S100, S148: states are not counted",
    "plugins/catalog/administration/Records.ts",
    "{ ...emptyStates, ...Object.fromEntries(rows.map(({ count, state }) => [state, count])) }",
    "emptyStates"
  ),
  shown(
    "S288: an invalid schema is refused though the operator waived it",
    "plugins/catalog/declaration/DeclarationWire.ts",
    "error !== undefined && config.requireValidSchema",
    "error !== undefined"
  ),
  shown(
    "S163: resources are listed oldest first",
    "plugins/catalog/administration/Records.ts",
    "order by r.id desc limit ${limit} offset ${offset}",
    "order by r.id limit ${limit} offset ${offset}"
  ),
  shown(
    "S165: a resource's history is its last version",
    "plugins/catalog/administration/Records.ts",
    "order by version desc limit ${historyMax}",
    "order by version desc limit 1"
  ),
  followed(
    "S92: open settlements are polled only when the follower is woken",
    "kernel/settlement/follower/reconcileSettlements.ts",
    "every: limits.recoveryPeriod,",
    'every: "10 minutes",'
  ),
  rolledUp(
    "S95: an end is added to the day and its unknown stays",
    "plugins/analytics/recording/contributions.ts",
    "for (const part of partsOf(before)[rollup]) add(deltas, part, -1n)",
    ""
  ),
  searched(
    "S177: a payment is attributed whenever it was",
    "plugins/catalog/search/report/conversion.ts",
    "interval '${attributionHours} hours'",
    "interval '100000 hours'"
  ),
  generations(
    "S105: two generations may be active",
    "migrations/search-semantic/0001_generations.sql",
    "create unique index search_semantic_generations_active on",
    "create index search_semantic_generations_active on"
  ),
  decided(
    "S332: recovery every minute",
    "kernel/config/Limits.ts",
    "recovery_ms: integer({ default: 15_000",
    "recovery_ms: integer({ default: 60_000"
  ),
  decided(
    "S301: a network funds itself by default",
    "kernel/config/Network.ts",
    "development_auto_fund: flag({ default: false",
    "development_auto_fund: flag({ default: true"
  ),
  decided(
    "S301: ceilings count as measured",
    "kernel/config/Network.ts",
    "fee_ceilings_calibrated: flag({ default: false",
    "fee_ceilings_calibrated: flag({ default: true"
  ),
  decided(
    "S30: the hosted tool server pays",
    "runtime/profiles/tools-hosted.yaml",
    "plugins: [mcp-tools]",
    "plugins: [mcp-tools, mcp-tools-pay]"
  ),
  pinned(
    "S235: a name's other addresses are not checked",
    "kernel/http/safeFetch.ts",
    "!addresses.every(isPublicAddress)",
    "!isPublicAddress(addresses[0])"
  ),
  pinned(
    "S236: an address of this network is dialled",
    "kernel/http/safeFetch.ts",
    "if (!policy.allowLocal && !addresses.every(isPublicAddress)) return",
    "if (false) return"
  ),
  errors(
    "S330: an unknown settlement is final",
    "plugins/mcp-tools/ToolError.ts",
    "SETTLEMENT_UNKNOWN: true",
    "SETTLEMENT_UNKNOWN: false"
  ),
  composed(
    "S6: the tool server needs a database",
    "plugins/mcp-tools/plugin.ts",
    "needs: [settingsContract, supervisorContract, configContract]",
    'needs: [settingsContract, supervisorContract, configContract, { id: "database", keys: [] }]'
  ),
  started(
    "S284: a tool server serves pubnet without checking its conditions",
    "plugins/mcp-tools/pubnetIssues.ts",
    'if (!networks.includes("ledger:pubnet")) return []',
    "return []"
  ),
  paid(
    "S210: the recipient is not compared",
    "plugins/mcp-tools-pay/seller/compareTerms.ts",
    '"asset",\n  "payTo",\n  "amount"',
    '"asset",\n  "amount"'
  ),
  paid(
    "S210: the timeout is not compared",
    "plugins/mcp-tools-pay/seller/compareTerms.ts",
    '"maxTimeoutSeconds",\n  "feesSponsored"',
    '"feesSponsored"'
  ),
  paid(
    "S217: what one call may cost is not asked",
    "plugins/mcp-tools-pay/call/chooseTerms.ts",
    "policy.perCall,\n      policy.assets",
    "policy.assets"
  ),
  ordered(
    "S102: the signer is asked before the budget knows",
    "plugins/mcp-tools-pay/payer/PaymentBuilder.ts",
    "yield* onAuthorization(authorization)",
    ""
  ),
  stopped(
    "S182: a stop waits for the last call",
    "plugins/mcp-tools/server/Calls.ts",
    'const stopTimeout = "3 seconds"',
    'const stopTimeout = "25 seconds"'
  ),
  stopped(
    "S182: a call that lasts ends in silence",
    "plugins/mcp-tools/server/Calls.ts",
    "yield* Deferred.succeed(isCut, undefined)",
    ""
  ),
  measured(
    "an address is a label",
    "kernel/payment/report/MetricReadings.ts",
    'source.startsWith("key:") ? source.slice("key:".length) : "anonymous"',
    "source"
  ),
  measured(
    "stale figures pass for current ones",
    "kernel/payment/report/MetricReadings.ts",
    "measure(storage.available, 0),",
    "Effect.void,"
  ),
  watched(
    "a key that rests on a new day keeps yesterday's rest",
    "kernel/payment/report/watchBudget.ts",
    "if (!scopes.some((one) => one.name === name)) yield* report({ ...scope, usedStroops: 0n })",
    "void [name, scope]"
  ),
  reported(
    "an open payment may be paid again",
    "runtime/commands/settlementStory.ts",
    "if (isOpen(record.state)) { return [",
    'if (record.state === "prepared") { return ['
  ),
  charged(
    "the budget's day is the database's",
    "runtime/commands/budget.ts",
    "if (Option.isSome(budget)) return yield* budget.value.today",
    ""
  ),
  signalled(
    "S343: one endpoint turns every signal on",
    "runtime/platform/telemetry.ts",
    "isSet(`OTEL_EXPORTER_OTLP_${signal}_ENDPOINT`)",
    'isSet("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")'
  ),
  logged(
    "a request's line in the log names no payment",
    "kernel/payment/http/Routes.ts",
    "noteUnsafe(fiber, facts)",
    ""
  ),
  logged(
    "a request's line names no settlement",
    "kernel/payment/settle/settlePayment.ts",
    "yield* noteRequest({ settlement: started.id })",
    ""
  ),
  traced(
    "states are not read for an exporter",
    "runtime/serve.ts",
    "if (Option.isSome(readings)) yield* readForExport(readings.value.refresh)",
    ""
  ),
  searched(
    "S173: the history of generations is the active one",
    "plugins/search-semantic/Generations.ts",
    "from search_semantic_generations order by id desc limit 1000",
    "from search_semantic_generations where status = 'active' order by id desc limit 1000"
  ),
  clientsReported(
    "S187: a client's configuration has no transport",
    "runtime/clientConfig.ts",
    'const server = { type: "streamable-http", url',
    "const server = { url"
  ),
  rejectedReported(
    "S257: a seller receives the operator's detail",
    "plugins/catalog/OutcomeCache.ts",
    "({ decision, dropped, reason }: Recorded): ExtensionOutcome => {\n" +
      '  if (decision === "rejected") return { status: "rejected", rejectedReason: reason ??',
    "({ decision, detail, dropped, reason }: Recorded): ExtensionOutcome => {\n" +
      '  if (decision === "rejected") return { status: "rejected", rejectedReason: (detail as any) ?? reason ??'
  ),
  rejectedKept(
    "S257: the operator does not receive the detail",
    "plugins/catalog/Observer.ts",
    "    reason,\n    detail\n  }",
    "    reason,\n    detail: reason\n  }"
  ),
  {
    // The branch's deadline, and the provider's below it: either alone keeps the bound.
    ...meant("S296: the model's timeout ignores the setting", "", "", ""),
    changes: [
      {
        file: "plugins/search-semantic/plugin.ts",
        from: "timeoutMillis: semantic.timeout_ms,",
        to: "timeoutMillis: 600_000,"
      },
      {
        file: "plugins/search-semantic/branch.ts",
        from: "timeoutMillis: semantic.timeout_ms",
        to: "timeoutMillis: 600_000"
      }
    ]
  },
  hashed(
    "S310: an operation that is added leaves the version hash as it was",
    "plugins/catalog/store/ResourceWire.ts",
    "hashOf(crypto, lastingOf(body))",
    "hashOf(crypto, { ...lastingOf(body), operations: [] })"
  ),
  hashed(
    "S310: an option's extra terms leave the version hash as it was",
    "plugins/catalog/store/ResourceWire.ts",
    "hashOf(crypto, lastingOf(body))",
    "hashOf(crypto, { ...lastingOf(body), accepts: (body['accepts'] as any).map(({ extra: _, ...one }: any) => one) })"
  ),
  booted(
    "S311: a program older than its database starts",
    "kernel/database/Migrations.ts",
    "      if (file === undefined)\n        return yield*",
    "      if (file === undefined) continue\n      if (Math.PI < 3)\n        return yield*"
  ),
  hooked(
    "S326: a receiver gets another's settlements",
    "plugins/webhooks/queueEvents.ts",
    "principal === undefined || principal === fact.principal",
    "principal === undefined || fact.principal !== null"
  ),
  decided(
    "S335: the interface's version moves without a word",
    "kernel/http/OpenApi.ts",
    'interfaceVersion = "0.1.0"',
    'interfaceVersion = "0.2.0"'
  ),
  packaged(
    "S344: OpenTelemetry's own is not what sends",
    "runtime/platform/telemetrySent.ts",
    'await import("@opentelemetry/sdk-node")',
    'await import("@opentelemetry/api")'
  ),
  shown(
    "S148: each resource is an origin",
    "plugins/catalog/administration/Records.ts",
    "select distinct origin from catalog_resources",
    "select origin from catalog_resources"
  )
]
