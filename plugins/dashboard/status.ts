// Current status of the facilitator, for operators: money in flight, settlement times, fees and budgets, channels,
// storage, pending and unresolved settlements, plugins and actors. It only reads the kernel's state.
import { Clock, Duration, Effect, Option } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { Budget } from "../../kernel/budget/Budget.ts"
import { type Asset, Network } from "../../kernel/config/Network.ts"
import { Limits } from "../../kernel/config/Limits.ts"
import { WireVocabulary } from "../../kernel/config/WireVocabulary.ts"
import { Database } from "../../kernel/database/Database.ts"
import { type Dialect, encodeNetwork, encodeReason } from "../../kernel/Dialect.ts"
import { DiskSpace } from "../../kernel/platform/DiskSpace.ts"
import { PluginStates } from "../../kernel/plugin/PluginStates.ts"
import { ChannelCount } from "../../kernel/settlement/channels/ChannelCount.ts"
import { type ChannelListed, ChannelActions } from "../../kernel/settlement/channels/ChannelActions.ts"
import {
  type SettlementHistory as LifeRead,
  OperatorReports,
  type DailySpend
} from "../../kernel/settlement/operators/OperatorReports.ts"
import { LiveLimits } from "../../kernel/settlement/operators/LiveLimits.ts"
import { ServiceLevels } from "../../kernel/settlement/operators/ServiceLevels.ts"
import type { SettlementRecord } from "../../kernel/settlement/store/Settlements.ts"
import { Sponsor } from "../../kernel/settlement/sponsor/Sponsor.ts"
import { spendable } from "../../kernel/settlement/sponsor/sponsorProblem.ts"
import { type ActorState, Supervisor } from "../../kernel/actor/Supervisor.ts"
import { explorers } from "./about.ts"
import type { ChannelShown, SettlementHistory, FacilitatorStatus, WithoutEnd } from "./OperatorWire.ts"

const denomination = (assets: ReadonlyMap<string, Asset>, asset: string) => ({
  asset,
  asset_symbol: assets.get(asset)?.symbol ?? null,
  asset_decimals: assets.get(asset)?.decimals ?? null
})

const hashOf = ({ innerHash, transaction }: SettlementRecord): string => Option.getOrElse(transaction, () => innerHash)

const shownChannel = ({
  address,
  claimed,
  leased,
  number,
  settlement,
  state
}: ChannelListed): typeof ChannelShown.Type => ({
  number,
  address,
  state,
  use: settlement ?? (leased ? "leased" : "idle"),
  claimed
})

const shownWithoutEnd =
  (assets: ReadonlyMap<string, Asset>, dialect: Dialect, now: number) =>
  (record: SettlementRecord): typeof WithoutEnd.Type => ({
    id: record.id,
    state: record.state,
    recorded_at: record.recordedAt.toISOString(),
    age_seconds: Math.max(0, Math.floor((now - record.recordedAt.getTime()) / 1_000)),
    ...denomination(assets, record.asset),
    amount: record.amount.toString(),
    transaction_hash: hashOf(record),
    channel: record.channel,
    expires_ledger: record.authorizationExpiresLedger,
    principal: record.principal,
    reason: Option.getOrNull(Option.map(record.reason, (word) => encodeReason(word, dialect)))
  })

const shownActor = ({
  actor,
  lastRun,
  restarts,
  state
}: ActorState): (typeof FacilitatorStatus.Type)["actors"][number] => ({
  actor,
  state,
  restarts,
  last_run_at: lastRun === undefined ? null : new Date(lastRun.endedAtMillis).toISOString(),
  last_run_cause: lastRun?.cause ?? null,
  last_run_ms: lastRun?.durationMillis ?? null,
  last_run_outcome: lastRun?.outcome ?? null
})

const feesOf = (
  day: string,
  spent: ReadonlyArray<DailySpend>,
  limits: Limits["Service"]
): (typeof FacilitatorStatus.Type)["fees"] => ({
  day,
  charged_stroops: spent.reduce((sum, one) => sum + one.chargedStroops, 0n).toString(),
  reserved_stroops: spent.reduce((sum, one) => sum + one.reservedStroops, 0n).toString(),
  limit_stroops: limits.sponsoredPerDayStroopsMax.toString(),
  limit_per_principal_stroops: limits.sponsoredPerPrincipalPerDayStroopsMax.toString(),
  principals: spent.map(({ chargedStroops, principal, reservedStroops }) => ({
    principal,
    charged_stroops: chargedStroops.toString(),
    reserved_stroops: reservedStroops.toString()
  }))
})

/** PostgreSQL computes the database size from its files, so we read it at most once in this time. */
const sizeLife = Duration.minutes(1)

/**
 * Size of the database, and the free space under an embedded one. This process cannot see a database server's disk, so
 * `disk` is null there.
 */
const readStorage: Effect.Effect<
  Effect.Effect<(typeof FacilitatorStatus.Type)["storage"], SqlError.SqlError>,
  never,
  Database | SqlClient.SqlClient
> = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const { diskReserveBytes, kind } = yield* Database
  const disk = yield* DiskSpace
  const size = yield* Effect.cachedWithTTL(
    Effect.map(
      sql<{ bytes: bigint }>`select pg_database_size(current_database()) as bytes`,
      ([row]) => row?.bytes ?? null
    ),
    sizeLife
  )
  return Effect.gen(function* () {
    const reading = kind === "embedded" ? yield* disk : undefined
    return {
      database_bytes: (yield* size)?.toString() ?? null,
      disk:
        reading === undefined
          ? null
          : { free_bytes: Math.floor(reading.freeBytes).toString(), reserve_bytes: diskReserveBytes.toString() }
    }
  })
})

/** Reads the status with six short statements. */
export const readStatus = Effect.gen(function* () {
  const reports = yield* OperatorReports
  const network = yield* Network
  const limits = yield* Limits
  const [dialect] = (yield* WireVocabulary).dialects
  const sponsor = yield* Sponsor
  const budget = yield* Budget
  const count = yield* ChannelCount
  const channelMoves = yield* ChannelActions
  const plugins = yield* PluginStates
  const supervisor = yield* Supervisor
  const storage = yield* readStorage
  const serviceLevels = yield* ServiceLevels
  const liveLimits = yield* LiveLimits
  return Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    const day = yield* budget.today
    const [inFlight, levels, withoutEnd, channels, spent] = yield* Effect.all([
      reports.inFlight,
      serviceLevels.read,
      reports.withoutEnd,
      channelMoves.list,
      reports.spent(day)
    ])
    const sponsorStatus = Option.getOrUndefined(yield* sponsor.status)
    return {
      in_flight: inFlight.map(({ amount, asset, settlements }) => ({
        ...denomination(network.assets, asset),
        settlements: settlements.toString(),
        amount: amount.toString()
      })),
      pace: {
        over: Number(levels.settled),
        since: levels.since.toISOString(),
        p50_ms: levels.settleP50,
        p95_ms: levels.settleP95
      },
      fees: feesOf(day, spent, limits),
      sponsor:
        sponsorStatus === undefined
          ? null
          : {
              balance_stroops: (sponsorStatus.account?.balanceStroops ?? 0n).toString(),
              spendable_stroops: spendable(sponsorStatus).toString(),
              channels_usable: sponsorStatus.channelsUsable,
              channel_balance_least_stroops: sponsorStatus.channelStroopsLeast?.toString() ?? null
            },
      limits: (yield* liveLimits.list).map(({ isSet, name, principal, value }) => ({
        name,
        principal,
        value: value.toString(),
        is_set: isSet
      })),
      channels_required: count.known(),
      channels: channels.map(shownChannel),
      storage: yield* storage,
      without_end: withoutEnd.map(shownWithoutEnd(network.assets, dialect, now)),
      plugins: plugins.all().map(({ detail, id, state }) => ({ id, state, detail: detail ?? null })),
      actors: (yield* supervisor.actors).map(shownActor)
    } satisfies typeof FacilitatorStatus.Type
  })
})

const optionTime = (at: Date | null): string | null => at?.toISOString() ?? null

export const reportHistory = (
  life: LifeRead,
  {
    assets,
    dialect,
    isEmbedded
  }: { readonly assets: ReadonlyMap<string, Asset>; readonly dialect: Dialect; readonly isEmbedded: boolean }
): typeof SettlementHistory.Type => {
  const { record } = life
  return {
    id: record.id,
    state: record.state,
    network: encodeNetwork(record.network, dialect),
    scheme: record.scheme,
    ...denomination(assets, record.asset),
    amount: record.amount.toString(),
    moved: Option.getOrNull(Option.map(record.amountTransferred, String)),
    principal: record.principal,
    payment_identifier: Option.getOrNull(record.identifier),
    resource_url: life.resourceUrl,
    transaction_hash: hashOf(record),
    channel: record.channel,
    asked_at: optionTime(life.askedAt),
    verified_at: optionTime(life.verifiedAt),
    leased_at: optionTime(life.leasedAt),
    recorded_at: record.recordedAt.toISOString(),
    recorded_ledger: Number(life.recordedLedger),
    expires_ledger: record.authorizationExpiresLedger,
    attempts: life.attempts.map((attempt) => ({
      number: attempt.number,
      kind: attempt.kind,
      outer_hash: attempt.outerHash,
      bid_stroops: attempt.inclusionStroops.toString(),
      recorded_at: optionTime(attempt.recordedAt),
      recorded_ledger: Number(attempt.recordedLedger),
      sent_at: optionTime(attempt.sentAt),
      sent_status: attempt.sentStatus,
      sent_ledger: attempt.sentLedger === null ? null : Number(attempt.sentLedger)
    })),
    ledger: Option.getOrNull(record.ledger),
    closed_at: optionTime(life.closedAt),
    resolved_at: Option.getOrNull(Option.map(record.resolvedAt, (at) => at.toISOString())),
    delivered_at: optionTime(life.deliveredAt),
    reserved_stroops: life.reservedStroops.toString(),
    charged_stroops: Option.getOrNull(Option.map(record.feeChargedStroops, String)),
    reason: Option.getOrNull(Option.map(record.reason, (word) => encodeReason(word, dialect))),
    reason_message: Option.getOrNull(record.reasonMessage),
    explorer_url: isEmbedded ? null : `${explorers[record.network]}/tx/${hashOf(record)}`
  }
}
