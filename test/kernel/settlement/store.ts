// The settlement repository over a fresh database, with its dependencies, and settlements to put into it.
import { Duration, Effect, Layer, Option } from "effect"
import { SqlClient } from "effect/sql"
import { Budget } from "../../../kernel/budget/Budget.ts"
import { Limits, type LimitValues } from "../../../kernel/config/Limits.ts"
import { Network } from "../../../kernel/config/Network.ts"
import { Server } from "../../../kernel/config/Server.ts"
import { Facts } from "../../../kernel/facts/Facts.ts"
import type { Principal } from "../../../kernel/http/Authentication.ts"
import { Host } from "../../../kernel/platform/Host.ts"
import { ChannelStore } from "../../../kernel/settlement/channels/ChannelStore.ts"
import { Leases } from "../../../kernel/settlement/Leases.ts"
import type { Outcome } from "../../../kernel/settlement/state/Settlement.ts"
import type { DeliveryClaim, NewSettlement } from "../../../kernel/settlement/store/Settlements.ts"
import * as SqlSettlements from "../../../kernel/settlement/store/SqlSettlements.ts"
import { Signer } from "../../../kernel/signer/Signer.ts"
import { Supervisor } from "../../../kernel/actor/Supervisor.ts"
import { databaseLayer, type DatabaseKind } from "../../support/databases.ts"
import { layerTest } from "../../support/layerTest.ts"

export const limitValues: LimitValues = {
  settleTimeout: Duration.seconds(25),
  settlePoll: Duration.millis(500),
  recoveryPeriod: Duration.seconds(15),
  rpcTimeout: Duration.seconds(5),
  channelLease: Duration.seconds(5),
  channelWait: undefined,
  pendingSettlementsMax: 1_000,
  sponsoredPerPrincipalPerDayStroopsMax: 1_000_000n,
  sponsoredPerDayStroopsMax: 4_000_000n,
  expiryToleranceLedgers: 4,
  verifyPerSecond: 0,
  settlePerSecond: 0
}

/** Leases one channel, when one is free. */
export const takeOne = Effect.gen(function* () {
  const [lease] = yield* (yield* ChannelStore).take(1)
  return Option.fromUndefinedOr(lease)
})

export const channelName = (number: number): string => `channel-${number}`

/**
 * Options for suites over the repository: pauses between its statements use the machine's clock, which no test moves.
 */
export const byMachineClock = { timeout: "240 seconds", excludeTestServices: true } as const

/** A database with the repository, channel store, budget and leases over it. */
export const storeLayer = (kind: DatabaseKind, limits: Partial<LimitValues> = {}) =>
  Layer.mergeAll(SqlSettlements.layer, ChannelStore.layer, Leases.layer).pipe(
    Layer.provideMerge(Layer.mergeAll(Budget.layer, Facts.layer)),
    Layer.provideMerge(Supervisor.layer),
    Layer.provideMerge(databaseLayer(kind)),
    Layer.provideMerge(
      Layer.mergeAll(
        Layer.succeed(Limits, { ...limitValues, ...limits }),
        layerTest(Network, { id: "ledger:testnet" }),
        layerTest(Server, { instance: undefined }),
        Layer.succeed(Host, { name: "this-machine", stateFolder: "" }),
        layerTest(Signer, {
          sponsor: "sponsor",
          channels: Array.from({ length: 100 }, (_, i) => channelName(i)),
          formerChannels: []
        })
      )
    )
  )

/**
 * Empties the database and adds this many ready channels, each idle longer than the next. Their last used number is
 * 100.
 */
export const emptyStore = Effect.fnUntraced(function* (channels: number) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`truncate kernel_channels, kernel_settlements, kernel_attempts, kernel_leases, kernel_sponsor_transactions,
    kernel_sponsor_budget, kernel_sponsor_budget_total, kernel_facts, kernel_processes cascade`
  yield* sql`insert into kernel_processes (id) values (${aProcess})`
  yield* sql`insert into kernel_channels (address, network, sponsor, number, state, sequence, used_at)
    select 'channel-' || n, 'ledger:testnet', 'sponsor', n, 'ready', 100, clock_timestamp()
        - make_interval(secs => 1000 - n)
    from generate_series(0, ${channels - 1}::int) n`
})

/** Expires every lease except holds. */
export const endLeases = Effect.flatMap(SqlClient.SqlClient, (sql) =>
  Effect.asVoid(
    sql`update kernel_channels set leased_until = clock_timestamp() - interval '1 second'
    where leased_until is not null`
  )
)

export const idOf = (number: number): string => `00000000-0000-4000-a000-${String(number).padStart(12, "0")}`
export const hashOf = (text: string): string => text.padEnd(64, "0")

/** A living process, from `emptyStore`, and its claims. */
export const aProcess = "this-process"
let claims = 0n
export const claimOf = (number: number, process = aProcess): DeliveryClaim => ({
  id: idOf(number),
  process,
  claim: (claims += 1n)
})

/** A caller with a key. */
export const keyedPrincipal = (owner: string): Principal => ({ owner, source: owner, keyed: true })

/** The settlement with a number, on a lease. */
export const newSettlement = (
  number: number,
  channel: NewSettlement["channel"],
  changes: Partial<NewSettlement> = {}
): NewSettlement => ({
  id: idOf(number),
  network: "ledger:testnet",
  scheme: "exact",
  authorizationKey: `authorization-${number}`,
  authorizationExpiresLedger: 1_012,
  fingerprint: `fingerprint-${number}`,
  principal: keyedPrincipal("key:a"),
  identifier: Option.some(`identifier-${number}`),
  payer: "payer",
  payTo: "seller",
  asset: "asset",
  amountMax: 10n,
  amount: 10n,
  resourceUrl: Option.none(),
  innerHash: hashOf(`a${number}`),
  sponsor: "sponsor",
  channel,
  resourceFeeStroops: 40_000n,
  recordedLedger: 1_000,
  deadlineAt: 1_767_000_000_000,
  budgetStroops: 50_000n,
  attempt: {
    kind: "payment",
    innerHash: hashOf(`a${number}`),
    outerHash: hashOf(`b${number}`),
    envelope: "AAAA",
    inclusionStroops: 200n,
    recordedLedger: 1_000
  },
  ...changes
})

export const outcomeOf = (state: Outcome["state"], changes: Partial<Outcome> = {}): Outcome => ({
  state,
  transaction: undefined,
  feeUnknown: false,
  ledger: state === "expired" ? undefined : 1_003,
  closedAtSeconds: state === "expired" ? undefined : 1_767_000_015,
  amountTransferred: state === "settled" ? 10n : undefined,
  feeChargedStroops: state === "expired" ? 0n : 12_345n,
  reason:
    state === "failed"
      ? "settle_ledger_transaction_failed"
      : state === "expired"
        ? "settle_ledger_transaction_expired"
        : undefined,
  message: undefined,
  channel: { sequenceUsed: state !== "expired", ledger: 1_003 },
  ...changes
})

export interface Books {
  readonly reserved: bigint
  readonly committed: bigint
}

/** The sums of the budget's rows: by principal, and in total. */
export const books = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const [own] = yield* sql<Books>`select coalesce(sum(reserved_stroops), 0)::int8 as reserved,
      coalesce(sum(committed_stroops), 0)::int8 as committed from kernel_sponsor_budget`
  const [all] = yield* sql<Books>`select coalesce(sum(reserved_stroops), 0)::int8 as reserved,
      coalesce(sum(committed_stroops), 0)::int8 as committed from kernel_sponsor_budget_total`
  return { own: own!, all: all! }
})
