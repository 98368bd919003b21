// Channels of sellers, in SQL. Each decision (reserve, charge, release) is one statement over one row, so it is atomic
// over the replicas of a facilitator and the instances of a seller; a second statement only reads why nothing changed.
// A request is identified by its payment identifier: repeated, it gets the same answer and changes nothing. A
// reservation that expired stays valid until another request takes the channel.
import { Context, Effect, Layer } from "effect"
import { max as larger } from "effect/BigInt"
import { SqlClient, type SqlError, type Statement } from "effect/sql"
import type { ChannelRecord, LedgerState, Reserve, Charge } from "./ChannelWire.ts"

type Sql<A> = Effect.Effect<A, SqlError.SqlError>

/** Whose channel on which network. */
export interface Place {
  readonly principal: string
  readonly network: string
}

interface ReserveOptions {
  readonly ttlSeconds: number
  /** Rows of the principal, beyond which a channel without a record is not taken. */
  readonly channelsMax: number
}

export interface Reserved {
  readonly status: "reserved" | "charged" | "busy" | "stale" | "full"
  /** Undefined for a channel without a record if the voucher is below the claimed amount, or there are too many. */
  readonly channel: ChannelRecord | undefined
}

export interface Charged {
  readonly status: "charged" | "missing" | "busy" | "exceeded"
  readonly channel: ChannelRecord | undefined
}

interface Policy {
  readonly claimEverySeconds: number
  readonly claimAt: string | undefined
}

interface HeldRefund {
  readonly channelId: string
  readonly payment: string
  /** The charged amount, from the buyer's voucher. */
  readonly charged: string
  readonly amount: bigint
  /** The last close time at which it is valid, Unix seconds. */
  readonly expiresAt: number
}

/** Tokens for which one principal has a policy. */
const policiesMax = 64

export const pageMax = 200

export class StoredChannels extends Context.Service<
  StoredChannels,
  {
    /** Of a channel that has the store's key as its authorizer. */
    readonly reserve: (place: Place, asked: Reserve, options: ReserveOptions) => Sql<Reserved>
    readonly charge: (place: Place, asked: Charge) => Sql<Charged>
    /**
     * Records a refund of at most the uncharged amount before it is signed. Returns the record, or undefined if the
     * request does not hold the channel, asks for more than is left, or another refund is pending.
     */
    readonly holdRefund: (place: Place, asked: HeldRefund) => Sql<ChannelRecord | undefined>
    /** Whether the request had the channel. */
    readonly release: (place: Place, channelId: string, payment: string) => Sql<boolean>
    /** Stores the ledger's state and releases the request's reservation. Returns undefined for an unknown channel. */
    readonly sync: (
      place: Place,
      channelId: string,
      state: LedgerState,
      payment: string | undefined
    ) => Sql<ChannelRecord | undefined>
    readonly get: (place: Place, channelId: string) => Sql<ChannelRecord | undefined>
    /** Whether the channel's last request was charged with a voucher of this signature. */
    readonly hasCharged: (place: Place, channelId: string, signature: string) => Sql<boolean>
    /** At most `pageMax` by id, after `after`. */
    readonly list: (place: Place, after: string) => Sql<ReadonlyArray<ChannelRecord>>
    /** False when the principal has policies of too many tokens. */
    readonly setPolicy: (place: Place, token: string, policy: Policy) => Sql<boolean>
    /**
     * Deletes charges older than that, and channels that had no request since and have all charges claimed. Of each key
     * only the newest charges stay, `chargesMax` at most, and the newest of each channel. Returns the number deleted.
     */
    readonly forget: (keepMillis: number, chargesMax: number) => Sql<number>
  }
>()("tollkeeper/batch-store/StoredChannels") {
  static readonly layer = Layer.effect(
    StoredChannels,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const parts = makeParts(sql)
      const { columns, get, of } = parts
      return StoredChannels.of({
        get,
        hasCharged: (place, channelId, signature) =>
          Effect.map(
            sql`select 1 from batch_store_channels c join batch_store_charges d using (principal, network, channel_id)
              where ${of(place, channelId)} and c.signature = ${signature} and d.charged = c.charged limit 1`,
            ({ length }) => length === 1
          ),
        reserve: makeReserve(sql, parts),
        charge: makeCharge(sql, parts),
        holdRefund: (place, { amount, channelId, charged, expiresAt, payment }) =>
          Effect.map(
            sql<ChannelRecord>`update batch_store_channels c set refund_amount = ${String(amount)}::numeric,
                refund_payment = ${payment}, refund_for_nonce = c.refund_nonce, refund_expires_at = ${expiresAt}
              where ${of(place, channelId)} and pending_payment = ${payment} and c.charged = ${charged}::numeric
                and refund_amount is null and ${String(amount)}::numeric <= c.balance - c.charged
              returning ${columns}`,
            ([channel]) => channel
          ),
        sync: makeSync(sql, parts),
        release: (place, channelId, payment) =>
          Effect.map(
            sql`update batch_store_channels c set pending_payment = null, pending_max = null,
                pending_signature = null, pending_until = null
              where ${of(place, channelId)} and pending_payment = ${payment} returning 1`,
            ({ length }) => length === 1
          ),
        list: ({ network, principal }, after) =>
          sql<ChannelRecord>`select ${columns} from batch_store_channels c
            where principal = ${principal} and network = ${network} and channel_id > ${after}
            order by channel_id limit ${pageMax}`,
        setPolicy: ({ network, principal }, token, { claimAt, claimEverySeconds }) =>
          Effect.map(
            sql`insert into batch_store_policies (principal, network, token, claim_every_seconds, claim_at)
              select ${principal}, ${network}, ${token}, ${claimEverySeconds}::bigint, ${claimAt ?? null}::numeric
              where (select count(*) from batch_store_policies where principal = ${principal} and token <> ${token})
                < ${policiesMax}
              on conflict (principal, network, token) do update
              set claim_every_seconds = excluded.claim_every_seconds, claim_at = excluded.claim_at returning 1`,
            ({ length }) => length === 1
          ),
        // A buyer that returns to a deleted channel signs above the claimed amount, which equals everything that was
        // charged.
        forget: (keepMillis, chargesMax) =>
          Effect.map(
            sql`with old as (select clock_timestamp() - ${keepMillis} * interval '1 millisecond' as at),
              charges as (delete from batch_store_charges using old where charged_at < old.at returning 1),
              channels as (delete from batch_store_channels using old where requested_at < old.at
                and charged <= total_claimed and claim is null
                and (pending_until is null or pending_until < old.at) returning 1),
              ranked as (select principal, network, channel_id, payment,
                row_number() over (partition by principal order by charged_at desc) as of_key,
                row_number() over (partition by principal, network, channel_id order by charged desc) as of_channel
                from batch_store_charges),
              beyond as (delete from batch_store_charges d using ranked r
                where r.of_key > ${chargesMax} and r.of_channel > 1 and d.principal = r.principal
                and d.network = r.network and d.channel_id = r.channel_id and d.payment = r.payment returning 1)
              select 1 from charges union all select 1 from channels union all select 1 from beyond`,
            ({ length }) => length
          )
      })
    })
  )
}

interface Parts {
  /** The record as the official packages have it. */
  readonly columns: Statement.Fragment
  readonly of: (place: Place, channelId: string) => Statement.Fragment
  readonly wasCharged: (place: Place, channelId: string, payment: string) => Statement.Fragment
  /** Whether the principal has this many channels; counts no further. */
  readonly isFull: (principal: string, channelsMax: number) => Statement.Fragment
  readonly get: (place: Place, channelId: string) => Sql<ChannelRecord | undefined>
  readonly read: (
    place: Place,
    channelId: string,
    payment: string
  ) => Sql<{ readonly isCharged: boolean; readonly channel: ChannelRecord } | undefined>
  readonly isCurrent: (state: LedgerState | undefined) => Statement.Fragment
  readonly stateOf: (state: LedgerState | undefined) => Statement.Fragment
  /** Amount that a signed refund may still pay out, given that state; null if no refund is pending. */
  readonly heldAt: (state: LedgerState | undefined) => Statement.Fragment
}

/** Parts of statements that the decisions share, and the readings that explain why one changed nothing. */
const makeParts = (sql: SqlClient.SqlClient): Parts => {
  /** The record as the official packages have it. */
  const columns = sql`c.channel_id as "channelId", c.config as "channelConfig", c.charged::text as
    "chargedCumulativeAmount", c.signed_max::text as "signedMaxClaimable", c.signature, c.balance::text as balance,
    c.total_claimed::text as "totalClaimed", c.withdraw_requested_at::float8 as "withdrawRequestedAt",
    c.refund_nonce::float8 as "refundNonce",
    (extract(epoch from c.synced_at) * 1000)::float8 as "onchainSyncedAt",
    (extract(epoch from c.requested_at) * 1000)::float8 as "lastRequestTimestamp",
    case when c.pending_until > clock_timestamp() then jsonb_build_object('pendingId', c.pending_payment,
      'signedMaxClaimable', c.pending_max::text, 'expiresAt', floor(extract(epoch from c.pending_until) * 1000))
      end as "pendingRequest",
    case when c.refund_amount is not null then jsonb_build_object('pendingId', c.refund_payment,
      'amount', c.refund_amount::text, 'refundNonce', c.refund_for_nonce, 'expiresAt', c.refund_expires_at)
      end as "pendingRefund"`
  const of = ({ network, principal }: Place, channelId: string) =>
    sql`c.principal = ${principal} and c.network = ${network} and c.channel_id = ${channelId}`
  const wasCharged = ({ network, principal }: Place, channelId: string, payment: string) =>
    sql`exists (select 1 from batch_store_charges d where d.principal = ${principal} and d.network = ${network}
      and d.channel_id = ${channelId} and d.payment = ${payment})`

  const isFull: Parts["isFull"] = (principal, channelsMax) =>
    sql`(select count(*) from (select 1 from batch_store_channels where principal = ${principal}
      limit ${channelsMax}) counted) >= ${channelsMax}`

  const get = (place: Place, channelId: string) =>
    Effect.map(
      sql<ChannelRecord>`select ${columns} from batch_store_channels c where ${of(place, channelId)}`,
      ([channel]) => channel
    )

  /** Why a decision changed nothing. */
  const read = (place: Place, channelId: string, payment: string) =>
    Effect.map(
      sql<ChannelRecord & { readonly isCharged: boolean }>`select ${columns},
          ${wasCharged(place, channelId, payment)} as "isCharged"
        from batch_store_channels c where ${of(place, channelId)}`,
      ([row]) => {
        if (row === undefined) return undefined
        const { isCharged, ...channel } = row
        return { isCharged, channel }
      }
    )

  const heldAt = (state: LedgerState | undefined) =>
    state === undefined
      ? sql`c.refund_amount`
      : sql`case when ${state.refundNonce}::numeric > c.refund_for_nonce
          or ${state.asOf ?? 0}::bigint > c.refund_expires_at then null else c.refund_amount end`

  /** Whether a reading includes each refund and withdrawal of the record. Otherwise its node is behind. */
  const isCurrent = (state: LedgerState | undefined) =>
    state === undefined ? sql`true` : sql`${state.refundNonce}::numeric >= c.refund_nonce`

  /** The ledger's state, if the request carried it. The claimed total never decreases; an older state is ignored. */
  const stateOf = (state: LedgerState | undefined) => {
    if (state === undefined) return sql`synced_at = c.synced_at`
    const read = (value: Statement.Fragment, column: Statement.Fragment) =>
      sql`case when ${isCurrent(state)} then ${value} else ${column} end`
    return sql`balance = ${read(sql`${state.balance}::numeric`, sql`c.balance`)},
      total_claimed = greatest(c.total_claimed, ${state.totalClaimed}::numeric),
      withdraw_requested_at = ${read(sql`${state.withdrawRequestedAt}`, sql`c.withdraw_requested_at`)},
      refund_nonce = greatest(c.refund_nonce, ${state.refundNonce}::numeric),
      refund_amount = ${read(heldAt(state), sql`c.refund_amount`)},
      synced_at = ${read(sql`clock_timestamp()`, sql`c.synced_at`)}`
  }

  return { columns, of, wasCharged, isFull, get, read, isCurrent, stateOf, heldAt }
}

/** Channels deleted at one time to make room for new ones. */
const roomMax = 2

/**
 * Why no channel was stored; null if there is room. Of too many, it deletes some with nothing to claim, those without a
 * balance first: an unsent deposit creates one. The ledger shows everything that such a record has.
 */
const makeMakeRoom =
  (sql: SqlClient.SqlClient, { isFull, wasCharged }: Parts) =>
  (place: Place, { payment, voucher }: Reserve, { channelsMax }: ReserveOptions) =>
    Effect.map(
      sql<{ readonly status: "charged" | "full" | null }>`with why as (select
          ${wasCharged(place, voucher.channelId, payment)} as charged,
          ${isFull(place.principal, channelsMax)} as crowded),
        deleted as (delete from batch_store_channels c using (select network, channel_id from batch_store_channels, why
            where principal = ${place.principal} and crowded and not why.charged
              and batch_store_channels.charged <= total_claimed and claim is null and refund_amount is null
              and (pending_until is null or pending_until < clock_timestamp())
            order by balance > 0, requested_at limit ${roomMax} for update of batch_store_channels skip locked) idle
          where c.principal = ${place.principal} and c.network = idle.network and c.channel_id = idle.channel_id
          returning 1)
        select case when charged then 'charged' when crowded and not exists (select from deleted) then 'full' end
          as status from why`,
      ([row]) => row!.status
    )

const makeReserve = (sql: SqlClient.SqlClient, parts: Parts) => {
  const makeRoom = makeMakeRoom(sql, parts)
  const { columns, heldAt, isCurrent, isFull, of, read, stateOf, wasCharged } = parts
  const reserve = Effect.fnUntraced(function* (
    place: Place,
    asked: Reserve,
    options: ReserveOptions
  ): Effect.fn.Return<Reserved, SqlError.SqlError> {
    const { channelConfig, payment, price, state, voucher } = asked
    const { channelId, maxClaimableAmount: max, signature } = voucher
    const { receiver, token, withdrawDelay } = channelConfig
    const ledger = state ?? { balance: "0", totalClaimed: "0", withdrawRequestedAt: 0, refundNonce: 0 }
    // A claimed amount was charged, even if the record was lost or restored. A voucher whose base exceeds the record's
    // newest voucher shows that the record is outdated. The balance must cover the base without this request's deposit,
    // which may never be sent: the contract refuses a claim of more.
    const base = BigInt(max) - BigInt(price)
    const isCovered = state === undefined || base <= BigInt(state.balance)
    const implied = sql`${String(base)}::numeric`
    const balance = state === undefined ? sql`c.balance` : sql`${state.balance}::numeric`
    const isOld = sql`(${implied} > c.signed_max and ${implied} <= ${balance})`
    const charged = sql`greatest(c.charged, ${ledger.totalClaimed}::numeric, case when ${isOld} then ${implied} end)`
    const isBelowClaimed = base < BigInt(ledger.totalClaimed)
    const [reserved] = yield* sql<ChannelRecord>`insert into batch_store_channels as c (principal, network, channel_id,
        config, receiver, token, withdraw_delay, delegated, charged, signed_max, signature, balance, total_claimed,
        withdraw_requested_at, refund_nonce, synced_at, pending_payment, pending_max, pending_signature, pending_until,
        unclaimed_since)
      select ${place.principal}, ${place.network}, ${channelId}, ${JSON.stringify(channelConfig)}::jsonb, ${receiver},
        ${token}, ${withdrawDelay}, true, greatest(${max}::numeric - ${price}::numeric, 0),
        ${max}::numeric, ${signature},
        ${ledger.balance}::numeric, ${ledger.totalClaimed}::numeric, ${ledger.withdrawRequestedAt},
        ${ledger.refundNonce}::numeric, case when ${state !== undefined} then clock_timestamp() end, ${payment},
        ${max}::numeric, ${signature}, clock_timestamp() + make_interval(secs => ${options.ttlSeconds}::float8),
        case when ${implied} > ${ledger.totalClaimed}::numeric then clock_timestamp() end
      where not ${wasCharged(place, channelId, payment)} and not ${isBelowClaimed}::boolean
        and (exists (select 1 from batch_store_channels c where ${of(place, channelId)})
          or (${isCovered}::boolean and not ${isFull(place.principal, options.channelsMax)}))
      on conflict (principal, network, channel_id) do update set pending_payment = excluded.pending_payment,
        pending_max = excluded.pending_max, pending_signature = excluded.pending_signature,
        pending_until = excluded.pending_until, requested_at = clock_timestamp(),
        delegated = true, charged = ${charged},
        signed_max = case when ${isOld} then excluded.signed_max else c.signed_max end,
        signature = case when ${isOld} then excluded.signature else c.signature end,
        unclaimed_since = case when ${isOld} then coalesce(c.unclaimed_since, clock_timestamp())
          else c.unclaimed_since end, ${stateOf(state)}
      where ${charged} + ${price}::numeric = excluded.pending_max and (c.pending_payment is null
        or c.pending_payment = excluded.pending_payment or c.pending_until <= clock_timestamp())
        and ${isCurrent(state)} and (${heldAt(state)} is null or (${price}::numeric > 0
          and excluded.pending_max <= ${balance} - ${heldAt(state)}))
      returning ${columns}`
    if (reserved !== undefined) return { status: "reserved", channel: reserved }
    const found = yield* read(place, channelId, payment)
    if (found === undefined && (isBelowClaimed || !isCovered)) return { status: "stale", channel: undefined }
    if (found === undefined) {
      const status = yield* makeRoom(place, asked, options)
      if (status !== null) return { status, channel: undefined }
      // Deleted in between, or there is room now: the request may come again.
      return yield* reserve(place, asked, options)
    }
    const { channel, isCharged } = found
    if (isCharged) return { status: "charged", channel }
    const known = larger(BigInt(channel.chargedCumulativeAmount), BigInt(ledger.totalClaimed))
    const isRaised = base > BigInt(channel.signedMaxClaimable) && base <= BigInt(state?.balance ?? channel.balance)
    return { status: known === base || isRaised ? "busy" : "stale", channel }
  })
  return reserve
}

const makeCharge = (sql: SqlClient.SqlClient, { columns, of, read, stateOf, wasCharged }: Parts) => {
  const charge = Effect.fnUntraced(function* (
    place: Place,
    { amount, channelId, payment, state }: Charge
  ): Effect.fn.Return<Charged, SqlError.SqlError> {
    const [charged] = yield* sql<ChannelRecord>`with charged as (
        update batch_store_channels as c set charged = c.charged + ${amount}::numeric,
          signature = case when c.pending_max >= c.signed_max then c.pending_signature else c.signature end,
          signed_max = greatest(c.signed_max, c.pending_max), pending_payment = null, pending_max = null,
          pending_signature = null,
          pending_until = null, requested_at = clock_timestamp(), ${stateOf(state)},
          unclaimed_since = case when c.charged + ${amount}::numeric > c.total_claimed
            then coalesce(c.unclaimed_since, clock_timestamp()) end
        where ${of(place, channelId)} and c.pending_payment = ${payment}
          and c.charged + ${amount}::numeric <= c.pending_max and not ${wasCharged(place, channelId, payment)}
        returning c.*), noted as (
        insert into batch_store_charges (principal, network, channel_id, payment, amount, charged)
          select principal, network, channel_id, ${payment}, ${amount}::numeric, charged from charged)
      select ${columns} from charged c`
    if (charged !== undefined) return { status: "charged", channel: charged }
    const found = yield* read(place, channelId, payment)
    if (found === undefined) return { status: "missing", channel: undefined }
    if (found.isCharged) return { status: "charged", channel: found.channel }
    const isOwn = found.channel.pendingRequest?.pendingId === payment
    return { status: isOwn ? "exceeded" : "busy", channel: found.channel }
  })
  return charge
}

const makeSync = (sql: SqlClient.SqlClient, { columns, of, stateOf }: Parts) => {
  // After a claim the rest was read before it: a refund or withdrawal may have come between.
  const syncedOf = (state: LedgerState) =>
    state.onchainSyncedAt === undefined
      ? stateOf(state)
      : sql`total_claimed = greatest(c.total_claimed, ${state.totalClaimed}::numeric)`
  const sync = (place: Place, channelId: string, state: LedgerState, payment: string | undefined) =>
    Effect.map(
      sql<ChannelRecord>`update batch_store_channels c set ${syncedOf(state)},
          unclaimed_since = case when c.charged > ${state.totalClaimed}::numeric then c.unclaimed_since end,
          pending_until = case when c.pending_payment = ${payment ?? null}::text then null else c.pending_until end,
          pending_payment = case when c.pending_payment = ${payment ?? null}::text then null
            else c.pending_payment end
        where ${of(place, channelId)} returning ${columns}`,
      ([channel]) => channel
    )
  return sync
}
