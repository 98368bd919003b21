// Claims and settles of the claimer, in SQL: recorded with their whole payload before they are submitted, so that a
// crash between the two, or a lost answer, submits the same again, which is one transaction. A channel is in one claim
// at a time.
import { Context, Effect, Layer } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import type { KnownChannel } from "../x402-batch/contract.ts"
import { claimPauseSeconds } from "./contract.ts"
import type { ChannelRecord } from "./ChannelWire.ts"

type Sql<A> = Effect.Effect<A, SqlError.SqlError>

export interface OpenClaim {
  readonly id: bigint
  readonly principal: string
  readonly network: string
  readonly kind: "claim" | "settle"
  readonly receiver: string
  readonly token: string
  readonly payload: Readonly<Record<string, unknown>>
  readonly attempts: number
}

/** Channels of one seller that are claimed together: one receiver, one token. */
interface Group {
  readonly principal: string
  readonly receiver: string
  readonly token: string
  readonly alone: boolean
}

/** Input that decides which channels are due. */
export interface Due {
  readonly network: string
  /** Applies to sellers without a policy. */
  readonly claimEverySeconds: number
}

/** A started withdrawal with something left to claim. */
export interface Withdrawals {
  readonly unanswered: number
  /** First close time that allows a withdrawal to end, Unix seconds; null without a withdrawal. */
  readonly firstEndsAt: number | null
}

/** Charges in one token that can no longer be claimed. */
export interface Lost {
  readonly token: string
  readonly channels: number
  /** Atomic units. */
  readonly amount: string
  /** Whether some of it was found within the last day. */
  readonly isRecent: boolean
}

/** A receiver with claimed amounts that could not be paid out. The settle is repeated later. */
export interface Unpaid {
  readonly principal: string
  readonly receiver: string
  readonly token: string
  readonly reason: string
}

/** A seller's channel with something to claim, and its newest voucher. */
export interface Watched {
  readonly principal: string
  readonly channelId: string
  readonly channelConfig: ChannelRecord["channelConfig"]
  readonly maxClaimableAmount: string
  readonly signature: string
  readonly charged: string
  readonly withdrawRequestedAt: number
  readonly refundNonce: string
  readonly lost: string
}

/** The channels that a claim claims, as its payload has them. */
export const claimsOf = (payload: OpenClaim["payload"]): ReadonlyArray<unknown> =>
  Array.isArray(payload["claims"]) ? payload["claims"] : []

/** Channels in one page of `watched`. */
export const watchedMax = 500
/** Groups that one turn records claims of. */
const groupsMax = 100
/** Receivers in one answer of `unpaid`. */
const unpaidMax = 20
const submitsMax = 100
/** Pause after a failed settle. */
const settlePauseSeconds = 600

export class Claims extends Context.Service<
  Claims,
  {
    /** In turn of the sellers; of each those with a started withdrawal first. */
    readonly due: (due: Due) => Sql<ReadonlyArray<Group>>
    /** Records a claim of at most `claimsMax` channels of a group; the number of channels, 0 when none is left. */
    readonly record: (due: Due, group: Group, claimsMax: number) => Sql<number>
    /** Claims to submit, round-robin over the sellers: each seller's oldest claim first, then the next of each. */
    readonly open: (network: string) => Sql<ReadonlyArray<OpenClaim>>
    readonly settled: (claim: OpenClaim, transaction: string) => Sql<void>
    /** Frees its channels: to be claimed one by one where there were several, later where there was one. */
    readonly failed: (claim: OpenClaim, reason: string) => Sql<void>
    /** Records it again as two claims of half its channels each: it does not fit one transaction. */
    readonly halved: (claim: OpenClaim, reason: string) => Sql<void>
    /** Notes that the claim is about to be submitted. */
    readonly attempted: (claim: OpenClaim) => Sql<void>
    /** Channels that are watched for withdrawals: at most `watchedMax` by seller and id, after `after`. */
    readonly watched: (network: string, after: Pick<Watched, "principal" | "channelId">) => Sql<ReadonlyArray<Watched>>
    /** Stores the ledger's state of a channel, and the charged amount that its payer has withdrawn. */
    readonly seen: (
      network: string,
      of: Pick<Watched, "principal" | "channelId">,
      state: KnownChannel["state"]
    ) => Sql<void>
    readonly lost: (network: string) => Sql<ReadonlyArray<Lost>>
    /** At most `unpaidMax`. */
    readonly unpaid: (network: string) => Sql<ReadonlyArray<Unpaid>>
    readonly withdrawals: (network: string) => Sql<Withdrawals>
    readonly forget: (keepMillis: number) => Sql<number>
  }
>()("tollkeeper/batch-store/Claims") {
  static readonly layer = Layer.effect(
    Claims,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      return Claims.of({
        ...makeRecording(sql),
        ...makeEnding(sql),
        open: (network) =>
          sql<OpenClaim>`select id, principal, network, kind, receiver, token, payload, attempts from batch_store_claims
            where state = 'open' and network = ${network} and begun_at <= clock_timestamp()
            order by row_number() over (partition by principal order by id), id limit ${submitsMax}`,
        watched: (network, after) =>
          sql<Watched>`select principal, channel_id as "channelId", config as "channelConfig",
              signed_max::text as "maxClaimableAmount", signature, charged::text as charged,
              withdraw_requested_at::float8 as "withdrawRequestedAt", refund_nonce::text as "refundNonce",
              lost::text as lost
            from batch_store_channels where network = ${network} and charged > total_claimed
              and (principal, channel_id) > (${after.principal}, ${after.channelId})
            order by principal, channel_id limit ${watchedMax}`,
        seen: (network, { channelId, principal }, { balance, refundNonce, totalClaimed, withdrawRequestedAt }) =>
          Effect.asVoid(sql`update batch_store_channels set withdraw_requested_at = ${withdrawRequestedAt},
              balance = ${String(balance)}::numeric, refund_nonce = ${String(refundNonce)}::numeric,
              total_claimed = greatest(total_claimed, ${String(totalClaimed)}::numeric),
              lost = greatest(charged - ${String(balance)}::numeric, 0),
              lost_at = case when charged > ${String(balance)}::numeric then coalesce(lost_at, clock_timestamp()) end
            where principal = ${principal} and network = ${network} and channel_id = ${channelId}
              and refund_nonce <= ${String(refundNonce)}::numeric`),
        lost: (network) =>
          sql<Lost>`select token, count(*)::int as channels, sum(lost)::text as amount,
              bool_or(lost_at > clock_timestamp() - interval '1 day') as "isRecent"
            from batch_store_channels where network = ${network} and lost > 0 group by token order by token`,
        // An open settle has the reason of the failed settle before it.
        unpaid: (network) =>
          sql<Unpaid>`select principal, receiver, token, min(reason) as reason from batch_store_claims
            where state = 'open' and network = ${network} and kind = 'settle' and reason is not null
            group by principal, receiver, token order by min(id) limit ${unpaidMax}`,
        withdrawals: (network) =>
          Effect.map(
            sql<Withdrawals>`select count(*)::int as unanswered,
                min(withdraw_requested_at + withdraw_delay)::float8 as "firstEndsAt"
              from batch_store_channels
              where network = ${network} and withdraw_requested_at > 0 and charged > total_claimed`,
            ([row]) => row!
          ),
        forget: (keepMillis) =>
          Effect.map(
            sql`delete from batch_store_claims where state <> 'open'
              and ended_at < clock_timestamp() - ${keepMillis} * interval '1 millisecond' returning 1`,
            ({ length }) => length
          )
      })
    })
  )
}

const makeRecording = (sql: SqlClient.SqlClient): Pick<Claims["Service"], "due" | "record"> => {
  const claimable = ({ network }: Due) => sql`c.network = ${network} and c.claim is null and c.delegated
    and c.charged > c.total_claimed
    and (c.claim_after is null or c.claim_after <= clock_timestamp())`
  return {
    due: (due) =>
      sql<Group>`select c.principal, c.receiver, c.token, c.claim_alone as alone from batch_store_channels c
        left join batch_store_policies p
          on p.principal = c.principal and p.network = c.network and p.token = c.token
        where ${claimable(due)} and (c.withdraw_requested_at > 0 or c.charged - c.total_claimed >= p.claim_at
          or c.unclaimed_since <= clock_timestamp()
            - make_interval(secs => coalesce(p.claim_every_seconds, ${due.claimEverySeconds})::float8))
        group by 1, 2, 3, 4
        order by row_number() over (partition by c.principal order by bool_or(c.withdraw_requested_at > 0) desc),
          bool_or(c.withdraw_requested_at > 0) desc limit ${groupsMax}`,
    record: (due, { alone, principal, receiver, token }, claimsMax) =>
      Effect.map(
        sql`with chosen as (
            select c.principal, c.network, c.channel_id, jsonb_build_object(
              'voucher', jsonb_build_object('channel', c.config, 'maxClaimableAmount', c.signed_max::text),
              'signature', c.signature, 'totalClaimed', c.charged::text) as claim
            from batch_store_channels c where ${claimable(due)} and c.principal = ${principal}
              and c.receiver = ${receiver} and c.token = ${token} and c.claim_alone = ${alone}
            order by c.withdraw_requested_at = 0, c.channel_id limit ${alone ? 1 : claimsMax} for update skip locked),
          recorded as (
            insert into batch_store_claims (principal, network, kind, receiver, token, payload)
            select ${principal}, ${due.network}, 'claim', ${receiver}, ${token},
              jsonb_build_object('type', 'claim', 'claims', jsonb_agg(claim order by channel_id))
            from chosen having count(*) > 0 returning id)
          update batch_store_channels c set claim = recorded.id from recorded, chosen
          where c.principal = chosen.principal and c.network = chosen.network and c.channel_id = chosen.channel_id
          returning 1`,
        ({ length }) => length
      )
  }
}

/** Claimed amounts stay in the contract until they are settled. This records the settle again for a later turn. */
const settleLater = (sql: SqlClient.SqlClient, id: bigint) =>
  Effect.asVoid(sql`insert into batch_store_claims
      (principal, network, kind, receiver, token, payload, reason, begun_at)
    select principal, network, kind, receiver, token, payload, reason,
      clock_timestamp() + make_interval(secs => ${settlePauseSeconds}::float8)
    from batch_store_claims where id = ${id}`)

const makeEnding = (
  sql: SqlClient.SqlClient
): Pick<Claims["Service"], "settled" | "failed" | "halved" | "attempted"> => {
  // A database that lost its last commits can reuse ids, so the identifier also includes the claimed channels.
  const its = ({ id, payload, principal }: OpenClaim) =>
    sql`id = ${id} and state = 'open' and principal = ${principal} and payload = ${JSON.stringify(payload)}::jsonb`
  const ended = (claim: OpenClaim, state: "settled" | "failed", reason: string | null, transaction: string | null) =>
    sql`update batch_store_claims set state = ${state}, reason = ${reason}::text, transaction = ${transaction}::text,
      ended_at = clock_timestamp() where ${its(claim)} returning 1`
  return {
    settled: (claim, transaction) =>
      sql.withTransaction(
        Effect.gen(function* () {
          const { id, kind, payload } = claim
          if ((yield* ended(claim, "settled", null, transaction)).length === 0 || kind === "settle") return
          yield* sql`update batch_store_channels c set claim = null, claim_alone = false, claim_after = null,
              total_claimed = greatest(c.total_claimed, t.total),
              unclaimed_since = case when c.charged > greatest(c.total_claimed, t.total) then clock_timestamp() end
            from (select e->'voucher'->'channel' as config, (e->>'totalClaimed')::numeric as total
              from jsonb_array_elements(${JSON.stringify(payload["claims"])}::jsonb) e) t
            where c.claim = ${id} and c.config = t.config`
        })
      ),
    failed: (claim, reason) =>
      sql.withTransaction(
        Effect.gen(function* () {
          const { id, kind } = claim
          if ((yield* ended(claim, "failed", reason, null)).length === 0) return
          if (kind === "settle") return yield* settleLater(sql, id)
          const channels = yield* sql<{ isWithdrawing: boolean; waited: number }>`select
              withdraw_requested_at > 0 as "isWithdrawing",
              coalesce(extract(epoch from clock_timestamp() - unclaimed_since), 0)::float8 as waited
            from batch_store_channels where claim = ${id}`
          const [only, ...others] = channels
          const rest =
            only === undefined || others.length > 0 ? null : claimPauseSeconds(only.isWithdrawing, only.waited)
          yield* sql`update batch_store_channels c set claim = null, claim_alone = true,
              claim_after = clock_timestamp() + make_interval(secs => ${rest}::float8)
            where c.claim = ${id}`
        })
      ),
    halved: (claim, reason) =>
      sql.withTransaction(
        Effect.gen(function* () {
          const { id, network, payload, principal, receiver, token } = claim
          if ((yield* ended(claim, "failed", reason, null)).length === 0) return
          const claims = claimsOf(payload)
          const half = Math.ceil(claims.length / 2)
          for (const part of [claims.slice(0, half), claims.slice(half)]) {
            const text = JSON.stringify({ type: "claim", claims: part })
            yield* sql`with recorded as (
                insert into batch_store_claims (principal, network, kind, receiver, token, payload)
                values (${principal}, ${network}, 'claim', ${receiver}, ${token}, ${text}::jsonb)
                returning id, payload)
              update batch_store_channels c set claim = recorded.id
              from recorded, jsonb_array_elements(recorded.payload->'claims') e
              where c.claim = ${id} and c.config = e->'voucher'->'channel'`
          }
        })
      ),
    attempted: (claim) => Effect.asVoid(sql`update batch_store_claims set attempts = attempts + 1 where ${its(claim)}`)
  }
}
