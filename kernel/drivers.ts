// The kernel's drivers and the payment core, in the form of plugins, so that one rule starts and stops them all. They
// are started when an enabled plugin needs them and are never listed in a profile. `kernel` is the journal of facts,
// and the owner of the kernel's migrations.
import { Clock, Effect, Layer } from "effect"
import { AccountSessions, accountsContract } from "./accounts/AccountSessions.ts"
import { EndedSessions } from "./accounts/EndedSessions.ts"
import { KeyRevisions } from "./accounts/KeyRevisions.ts"
import { Budget, BudgetTime } from "./budget/Budget.ts"
import { Events, eventsSection } from "./config/Events.ts"
import type { Declarations } from "./config/NetworkKeys.ts"
import { networkSecuritySection } from "./config/NetworkSecurity.ts"
import { Limits, limitsSection } from "./config/Limits.ts"
import { Network } from "./config/Network.ts"
import { Retention, retentionSection } from "./config/Retention.ts"
import { apiKeysEnvSection, operatorKeysEnvSection, pluginsSection, Server, serverSection } from "./config/Server.ts"
import { Settings, settingsContract, type SettingsSource } from "./config/Settings.ts"
import { WireVocabulary, wireSection } from "./config/WireVocabulary.ts"
import { contract } from "./contract/Contract.ts"
import { Database, databaseContract } from "./database/Database.ts"
import { databaseSection } from "./database/databaseSection.ts"
import { WriteProbe } from "./health/WriteProbe.ts"
import { Facts, factsContract } from "./facts/Facts.ts"
import { Health, healthContract, routes as healthRoutes } from "./health/Health.ts"
import { Authentication } from "./http/Authentication.ts"
import { Keys } from "./http/Keys.ts"
import { Sessions } from "./http/Sessions.ts"
import { startNetworkCheck } from "./ledger/checkNetwork.ts"
import { trustedTimeLayer } from "./ledger/ledgerTrustedTime.ts"
import { reportClock } from "./ledger/reportClock.ts"
import { LedgerClock, ledgerContract } from "./ledger/LedgerClock.ts"
import { rpcContract } from "./ledger/LedgerRpc.ts"
import * as MakeLedgerRpc from "./ledger/makeLedgerRpc.ts"
import { MetricReadings } from "./payment/report/MetricReadings.ts"
import * as Metrics from "./payment/report/Metrics.ts"
import * as DocumentRoute from "./http/documentRoute.ts"
import { OpenApi } from "./http/OpenApi.ts"
import * as EventRoutes from "./payment/http/EventRoutes.ts"
import { EventStreams } from "./payment/http/EventStreams.ts"
import { Extensions } from "./payment/Extension.ts"
import { Facilitator } from "./payment/Facilitator.ts"
import { reportReplica } from "./payment/report/reportReplica.ts"
import { reportReconcilers } from "./payment/report/reportReconcilers.ts"
import { reportSponsor } from "./payment/report/reportSponsor.ts"
import { watchBudget } from "./payment/report/watchBudget.ts"
import * as PaymentRoutes from "./payment/http/Routes.ts"
import { Schemes } from "./payment/Scheme.ts"
import { define } from "./plugin/Plugin.ts"
import { ChannelCount } from "./settlement/channels/ChannelCount.ts"
import { ChannelPool } from "./settlement/channels/ChannelPool.ts"
import { ChannelRows } from "./settlement/channels/ChannelRows.ts"
import { ChannelStore } from "./settlement/channels/ChannelStore.ts"
import { KeyRotation } from "./settlement/channels/KeyRotation.ts"
import { startChannels } from "./settlement/channels/reconcileChannels.ts"
import { Deliveries } from "./settlement/delivery/Deliveries.ts"
import { ThisProcess } from "./settlement/delivery/ThisProcess.ts"
import { Leases } from "./settlement/Leases.ts"
import { LiveLimits } from "./settlement/operators/LiveLimits.ts"
import { OperatorAuditLog } from "./settlement/operators/OperatorAuditLog.ts"
import { Outcomes } from "./settlement/follower/Outcomes.ts"
import { OwnerTags } from "./settlement/OwnerTags.ts"
import { PubnetGate, pubnetContract } from "./settlement/PubnetGate.ts"
import { SettlementEvents } from "./settlement/operators/SettlementEvents.ts"
import { Settlements } from "./settlement/store/Settlements.ts"
import { Sponsor } from "./settlement/sponsor/Sponsor.ts"
import { startSweeps } from "./settlement/store/sweepEnded.ts"
import { SponsorDrain } from "./settlement/sponsor/SponsorDrain.ts"
import { SponsorTransactions } from "./settlement/sponsor/SponsorTransactions.ts"
import * as SqlSettlements from "./settlement/store/SqlSettlements.ts"
import { budgetContract } from "./budget/Budget.ts"
import { Signer, signerContract } from "./signer/Signer.ts"
import { Vault } from "./signer/Vault.ts"
import { nameOutageAddress } from "./actor/outages.ts"
import { Supervisor, supervisorContract } from "./actor/Supervisor.ts"

export const configContract = contract("config", Server, Limits, Events, WireVocabulary, Retention)
export const networkContract = contract("network", Network)
export const httpContract = contract("http", Keys, Sessions, Authentication, OpenApi)
export const settlementContract = contract(
  "settlement",
  Settlements,
  SettlementEvents,
  ChannelCount,
  ChannelPool,
  ChannelStore,
  Deliveries,
  Outcomes,
  Leases,
  OwnerTags,
  Sponsor,
  SponsorTransactions,
  SponsorDrain,
  KeyRotation,
  OperatorAuditLog,
  LiveLimits
)
export const paymentContract = contract("payment", Schemes, Extensions, Facilitator, EventStreams, MetricReadings)

const driver = { boot: "required", migrations: "none" } as const

const supervisor = define({
  ...driver,
  id: "supervisor",
  summary: "Owner of every long-running fiber.",
  needs: [],
  layer: Supervisor.layer
})

const health = define({ ...driver, id: "health", summary: "Readiness reports.", needs: [], layer: Health.layer })

const config = define({
  ...driver,
  id: "config",
  summary: "Server, limits and spelling of the wire.",
  needs: [settingsContract],
  settings: [
    serverSection,
    pluginsSection,
    apiKeysEnvSection,
    operatorKeysEnvSection,
    limitsSection,
    eventsSection,
    retentionSection,
    wireSection,
    networkSecuritySection
  ],
  layer: Layer.mergeAll(Server.layer, Limits.layer, Events.layer, WireVocabulary.layer, Retention.layer)
})

const network = define({
  ...driver,
  id: "network",
  summary: "The one network served.",
  needs: [settingsContract],
  layer: Network.layer
})

const pubnet = define({
  ...driver,
  id: "pubnet",
  summary: "The pubnet gate, checked before any port opens.",
  needs: [settingsContract, configContract, networkContract],
  layer: PubnetGate.layer
})

const http = define({
  ...driver,
  id: "http",
  summary: "Keys, authentication and the OpenAPI document.",
  needs: [settingsContract, configContract],
  layer: Layer.merge(OpenApi.layer, Authentication.layer.pipe(Layer.provideMerge(Keys.layer)))
})

const database = define({
  ...driver,
  id: "database",
  summary: "The SQL client.",
  needs: [settingsContract],
  settings: [databaseSection],
  layer: Database.layer
})

/** The line of an outage names the server, and the endpoints by their hosts: a path or a query may hold a key. */
const nameDatabaseAddress = Effect.gen(function* () {
  const { address } = yield* Database
  if (address !== undefined) yield* nameOutageAddress(yield* Supervisor, "the database", address)
})
const nameRpcAddress = Effect.gen(function* () {
  const hosts = (yield* Network).rpcUrls.map((url) => new URL(url).host)
  yield* nameOutageAddress(yield* Supervisor, "the ledger's RPC", [...new Set(hosts)].join(", "))
})

const journal = define({
  ...driver,
  id: "kernel",
  summary: "The journal of facts, and the kernel's tables.",
  needs: [databaseContract, supervisorContract],
  migrations: "folder",
  layer: Layer.merge(Facts.layer, Layer.effectDiscard(nameDatabaseAddress))
})

const endpoints = Effect.gen(function* () {
  const { passphrase, rpcHeaders, rpcUrls } = yield* Network
  const { rpcTimeout } = yield* Limits
  return { urls: rpcUrls, passphrase, timeout: rpcTimeout, headers: rpcHeaders }
})

const rpc = define({
  ...driver,
  id: "rpc",
  summary: "The ledger's RPC.",
  needs: [configContract, networkContract],
  layer: Layer.unwrap(Effect.map(endpoints, MakeLedgerRpc.layer))
})

const accounts = define({
  ...driver,
  id: "accounts",
  summary: "Browser sessions of accounts that have proven ownership; keys and their sessions over all replicas.",
  needs: [
    supervisorContract,
    healthContract,
    configContract,
    databaseContract,
    networkContract,
    factsContract,
    httpContract,
    rpcContract
  ],
  // The tables are the kernel's.
  layer: Layer.effectDiscard(Facts).pipe(
    Layer.provideMerge(Layer.mergeAll(AccountSessions.layer, EndedSessions.layer, KeyRevisions.layer))
  )
})

const ledger = define({
  ...driver,
  id: "ledger",
  summary: "The ledger clock, which follows the ledger's head.",
  needs: [supervisorContract, healthContract, configContract, networkContract, rpcContract],
  layer: Layer.merge(
    Layer.merge(Layer.effectDiscard(reportClock), trustedTimeLayer).pipe(Layer.provideMerge(LedgerClock.layer)),
    Layer.effectDiscard(Effect.andThen(nameRpcAddress, Effect.flatMap(endpoints, startNetworkCheck)))
  )
})

const signer = define({
  ...driver,
  id: "signer",
  summary: "Transaction signer; refuses unexpected transactions.",
  needs: [networkContract, pubnetContract],
  layer: Layer.effectDiscard(PubnetGate).pipe(Layer.provideMerge(Signer.layer.pipe(Layer.provide(Vault.layer))))
})

/** Days by the ledger's clock, once its time is available. */
const budgetTime = Layer.effect(
  BudgetTime,
  Effect.map(LedgerClock, ({ status }) =>
    Effect.flatMap(status, ({ time }) =>
      time === undefined ? Clock.currentTimeMillis : Effect.succeed(time.closedAtSeconds * 1_000)
    )
  )
)

const budget = define({
  ...driver,
  id: "budget",
  summary: "The budget of sponsored fees.",
  needs: [databaseContract, configContract, factsContract, ledgerContract],
  layer: Layer.effectDiscard(Facts).pipe(Layer.provideMerge(Layer.provide(Budget.layer, budgetTime)))
})

/**
 * A fact published here or by another replica may mean a new settlement: ledgers are followed closely from then on,
 * also by the replica that holds the follower's lease, although no payment reaches it.
 */
const followWhileActive = Effect.gen(function* () {
  const { attend } = yield* LedgerClock
  yield* (yield* Facts).onPublished(attend)
})

const settlement = define({
  ...driver,
  id: "settlement",
  summary: "Settlements, channels and the queue for them.",
  needs: [
    settingsContract,
    supervisorContract,
    healthContract,
    configContract,
    networkContract,
    databaseContract,
    factsContract,
    rpcContract,
    ledgerContract,
    signerContract,
    budgetContract
  ],
  layer: Layer.effectDiscard(Effect.all([followWhileActive, startSweeps, startChannels()])).pipe(
    Layer.provideMerge(Layer.merge(KeyRotation.layer, SponsorDrain.layer)),
    Layer.provideMerge(
      Layer.mergeAll(
        Outcomes.layer,
        ChannelPool.layer,
        ChannelRows.layer,
        Leases.layer,
        OperatorAuditLog.layer,
        LiveLimits.layer,
        OwnerTags.layer,
        Sponsor.layer.pipe(Layer.provide(WriteProbe.layer)),
        SponsorTransactions.layer,
        SettlementEvents.layer
      )
    ),
    Layer.provideMerge(Deliveries.layer.pipe(Layer.provide(ThisProcess.layer))),
    Layer.provideMerge(Layer.mergeAll(SqlSettlements.layer, ChannelStore.layer, ChannelCount.layer))
  )
})

const payment = define({
  ...driver,
  id: "payment",
  summary: "The payment core: verify, settle, supported.",
  needs: [
    supervisorContract,
    healthContract,
    configContract,
    networkContract,
    httpContract,
    accountsContract,
    databaseContract,
    rpcContract,
    ledgerContract,
    signerContract,
    budgetContract,
    settlementContract
  ],
  layer: Layer.mergeAll(
    // Ensures that no key is served that another replica revoked.
    Layer.effectDiscard(KeyRevisions),
    PaymentRoutes.layer,
    EventRoutes.layer,
    healthRoutes,
    Metrics.routes,
    DocumentRoute.layer,
    Layer.effectDiscard(reportSponsor),
    Layer.effectDiscard(reportReplica),
    Layer.effectDiscard(reportReconcilers),
    Layer.effectDiscard(watchBudget)
  ).pipe(
    Layer.provideMerge(Layer.mergeAll(Facilitator.layer, EventStreams.layer, MetricReadings.layer)),
    Layer.provideMerge(Layer.mergeAll(Schemes.layer, Extensions.layer))
  )
})

/** Every driver, in dependency order. */
export const drivers = (source: SettingsSource, declared: () => Declarations) =>
  [
    define({
      ...driver,
      id: "settings",
      summary: "The profile's settings.",
      needs: [],
      layer: Settings.layer(source, declared)
    }),
    supervisor,
    health,
    config,
    network,
    pubnet,
    http,
    database,
    journal,
    rpc,
    accounts,
    ledger,
    signer,
    budget,
    settlement,
    payment
  ] as const
