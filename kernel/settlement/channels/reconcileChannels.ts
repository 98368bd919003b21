// Keeps as many channels as are wanted: rows, each an account on the ledger with enough balance and a known sequence
// number. Missing accounts are created by the sponsor, many in one transaction; in development the sponsor itself is
// funded by a faucet first. Those beyond the wanted number are lent no more and, once nothing holds them, merged back
// into the sponsor. A number that is not known any more, or that somebody else has moved on, is read again. One replica
// at a time does this, and two first boots cannot collide. Boot never waits for it: until channels are ready, settling
// is answered busy.
import { Clock, Duration, Effect } from "effect"
import { FetchHttpClient, HttpClient } from "effect/http"
import { SqlClient } from "effect/sql"
import { reconciler } from "../../Actor.ts"
import { Network } from "../../config/Network.ts"
import type { SponsorOperation } from "../../ledger/Envelope.ts"
import { LedgerClock } from "../../ledger/LedgerClock.ts"
import { type LedgerAccount, LedgerRpc } from "../../ledger/LedgerRpc.ts"
import { Signer } from "../../signer/Signer.ts"
import { ChannelCount } from "./ChannelCount.ts"
import { ChannelPool } from "./ChannelPool.ts"
import { ChannelStore } from "./ChannelStore.ts"
import { Leases } from "../Leases.ts"
import { SponsorTransactions } from "./SponsorTransactions.ts"

/** Operations a transaction may hold. */
const operationsMax = 100
/** Of them merges, each signed by its account too: a transaction has twenty signatures at most. */
const mergesMax = 19
/** Accounts one RPC call may ask for. */
const accountsMax = 200
const leaseDuration = Duration.seconds(10)
/** What the sponsor must keep: the ledger's minimum balance and a margin for fees, stroops. */
const sponsorReserveStroops = 15_000_000n
/**
 * Balances and numbers of all channels are compared with the ledger this often; what is missing is looked after at each
 * ledger.
 */
const surveyMillis = 60_000
/** A warning that stays true is said again after this. */
const warnMillis = 60_000

interface ChannelRow {
  readonly address: string
  readonly state: "wanted" | "ready" | "retiring" | "merging"
  readonly sequence: bigint | null
  readonly sequence_ledger: bigint
  /** Held by a settlement or leased. */
  readonly held: boolean
  readonly leased: boolean
}

/** Starts the reconciler in the current Scope. */
export const startChannels = Effect.fnUntraced(function* () {
  const sql = yield* SqlClient.SqlClient
  const network = yield* Network
  const rpc = yield* LedgerRpc
  const clock = yield* LedgerClock
  const signer = yield* Signer
  const leases = yield* Leases
  const count = yield* ChannelCount
  const pool = yield* ChannelPool
  const store = yield* ChannelStore
  const sponsorTransactions = yield* SponsorTransactions
  const http = yield* HttpClient.HttpClient
  let ready = false
  let wantedBefore = 0
  let surveyedAt = -Infinity
  let warnedAt = -Infinity

  /** At most once a minute: the turn comes back each second while something is missing. */
  const warn = Effect.fnUntraced(function* (message: string, annotations: Record<string, unknown>) {
    const now = yield* Clock.currentTimeMillis
    if (now - warnedAt < warnMillis) return
    warnedAt = now
    yield* Effect.logWarning(message).pipe(Effect.annotateLogs(annotations))
  })

  /**
   * One row a wanted channel; those beyond are lent no more, and those wanted again before they were merged are lent
   * on.
   */
  const wantRows = Effect.fnUntraced(function* (wanted: number) {
    const rows: Array<Record<string, unknown>> = signer.channels
      .slice(0, wanted)
      .map((address, number) => ({ address, network: network.id, sponsor: signer.sponsor, number }))
    yield* sql`insert into kernel_channels ${sql.insert(rows as any)} on conflict (address) do update set state = 'wanted', sequence = null
      where kernel_channels.state = 'retired'`
    yield* sql`update kernel_channels set state = 'ready' where network = ${network.id} and sponsor = ${signer.sponsor} and number < ${wanted} and state = 'retiring'`
    yield* sql`update kernel_channels set state = 'retiring' where network = ${network.id} and sponsor = ${signer.sponsor}
      and number >= ${wanted} and state in ('wanted', 'ready')`
    wantedBefore = wanted
  })

  const readAccounts = Effect.fnUntraced(function* (addresses: ReadonlyArray<string>) {
    const found = new Map<string, LedgerAccount>()
    let asOf = Number.MAX_SAFE_INTEGER
    for (let at = 0; at < addresses.length; at += accountsMax) {
      const { accounts, latestLedger } = yield* rpc.accounts(addresses.slice(at, at + accountsMax))
      asOf = Math.min(asOf, latestLedger)
      for (const [address, account] of accounts) found.set(address, account)
    }
    return { found, asOf }
  })

  const fundSponsor = Effect.gen(function* () {
    if (!network.developmentAutoFund || network.friendbotUrl._tag === "None") {
      return yield* warn("the sponsor's account does not exist on the ledger; settling is busy until it is funded", {
        sponsor: signer.sponsor
      })
    }
    yield* http.get(`${network.friendbotUrl.value}?addr=${signer.sponsor}`).pipe(
      Effect.timeout("10 seconds"),
      Effect.catch((error) => Effect.logWarning("the faucet did not fund the sponsor", error._tag))
    )
  })

  /**
   * Learns sequence numbers of channels that have none, and those that somebody else has moved on. The read is never
   * older than the last outcome.
   */
  const learn = Effect.fnUntraced(function* (
    rows: ReadonlyArray<ChannelRow>,
    accounts: ReadonlyMap<string, LedgerAccount>,
    asOf: number
  ) {
    for (const row of rows) {
      const account = accounts.get(row.address)
      if (account === undefined || row.held || row.sequence === account.sequence || asOf < Number(row.sequence_ledger))
        continue
      if (row.sequence === null) yield* store.learn(row.address, account.sequence, asOf)
      else if (yield* store.correct(row.address, row.sequence, account.sequence, asOf)) {
        yield* Effect.logWarning("somebody else used a channel of ours; its sequence number was read again").pipe(
          Effect.annotateLogs({ channel: row.address })
        )
      }
    }
  })

  /** No sponsor transaction is open: what was merged is gone, and a merge that did not land is tried again. */
  const endMerges = Effect.fnUntraced(function* (
    rows: ReadonlyArray<ChannelRow>,
    accounts: ReadonlyMap<string, LedgerAccount>
  ) {
    for (const { address, held, leased, state } of rows) {
      const isGone = !accounts.has(address)
      if (state === "merging" || (isGone && !held && !leased)) {
        yield* sql`update kernel_channels set state = ${isGone ? "retired" : "retiring"} where address = ${address} and state = ${state} and settlement is null`
      }
    }
  })

  /** What the sponsor has to do: create what is missing, top up what is low; else take back what is wanted no more. */
  const chores = (
    kept: ReadonlyArray<ChannelRow>,
    leaving: ReadonlyArray<ChannelRow>,
    accounts: ReadonlyMap<string, LedgerAccount>,
    asOf: number
  ): ReadonlyArray<SponsorOperation> => {
    const upkeep = kept.flatMap((row): ReadonlyArray<SponsorOperation> => {
      const account = accounts.get(row.address)
      const balanceMin = network.channelBalanceStroopsMin
      if (account === undefined) return [{ _tag: "Create", account: row.address, balanceStroops: balanceMin }]
      return account.balanceStroops < balanceMin / 2n
        ? [{ _tag: "Fund", account: row.address, amountStroops: balanceMin - account.balanceStroops }]
        : []
    })
    if (upkeep.length > 0) return upkeep.slice(0, operationsMax)
    // Before the bound of what it was last used for, a transaction of the channel could still land.
    const idle = leaving.filter(
      (row) => !row.held && !row.leased && accounts.has(row.address) && asOf >= Number(row.sequence_ledger)
    )
    return idle.slice(0, mergesMax).map(({ address }) => ({ _tag: "Merge", account: address, into: signer.sponsor }))
  }

  /** What the chores give away. Merging gives back. */
  const costOf = (todo: ReadonlyArray<SponsorOperation>): bigint =>
    todo.reduce(
      (sum, one) => sum + (one._tag === "Create" ? one.balanceStroops : one._tag === "Fund" ? one.amountStroops : 0n),
      0n
    )

  /** Whether the minute is over, another number is wanted, or a channel waits for something. */
  const isDue = Effect.fnUntraced(function* (wanted: number) {
    const now = yield* Clock.currentTimeMillis
    if (!ready || wanted !== wantedBefore || Math.abs(now - surveyedAt) >= surveyMillis) return true
    const waiting =
      yield* sql`select 1 from kernel_channels where network = ${network.id} and sponsor = ${signer.sponsor}
      and state <> 'retired' and settlement is null
      and (sequence is null or (state in ('retiring', 'merging') and (leased_until is null or leased_until < clock_timestamp()))) limit 1`
    return waiting.length > 0
  })

  const turn = Effect.gen(function* () {
    const wanted = yield* count.read
    if (!(yield* leases.hold("channels", leaseDuration)) || !(yield* isDue(wanted))) return
    if (!(yield* sponsorTransactions.settleOpen)) return
    yield* wantRows(wanted)
    const rows =
      yield* sql<ChannelRow>`select address, state, sequence, sequence_ledger, settlement is not null as held,
      coalesce(leased_until > clock_timestamp(), false) as leased from kernel_channels
      where network = ${network.id} and sponsor = ${signer.sponsor} and state <> 'retired' order by number`
    const kept = rows.filter(({ state }) => state === "wanted" || state === "ready")
    const leaving = rows.filter(({ state }) => state === "retiring" || state === "merging")
    const { asOf, found } = yield* readAccounts([signer.sponsor, ...rows.map(({ address }) => address)])
    // A node that has not seen our last transaction would have it done again.
    const [last] = yield* sql<{
      ledger: bigint | null
    }>`select max(ledger) as ledger from kernel_sponsor_transactions where network = ${network.id} and sponsor = ${signer.sponsor}`
    if (asOf < Number(last?.ledger ?? 0n)) return
    const sponsor = found.get(signer.sponsor)
    if (sponsor === undefined) return yield* fundSponsor
    yield* learn(kept, found, asOf)
    yield* pool.freed
    yield* endMerges(leaving, found)
    const todo = chores(kept, leaving, found, asOf)
    // One that was wanted again while it was merged has no account yet.
    ready = todo.length === 0 && kept.length === wanted
    surveyedAt = yield* Clock.currentTimeMillis
    if (todo.length === 0) return
    if (sponsor.balanceStroops < costOf(todo) + sponsorReserveStroops) {
      return yield* warn("the sponsor cannot pay for its channels; what exists is used", {
        sponsor: signer.sponsor,
        missing: todo.length
      })
    }
    yield* sponsorTransactions.submit(todo[0]?._tag === "Merge" ? "retire" : "channels", todo)
  })

  // Woken by each ledger, and by the second while something is missing.
  const channels = yield* reconciler({
    id: "channels",
    every: Effect.sync(() => (ready ? Duration.minutes(1) : Duration.seconds(1))),
    turn: Effect.provideService(turn, HttpClient.HttpClient, http)
  })
  yield* clock.subscribe(channels.wake)
  return channels
}, Effect.provide(FetchHttpClient.layer))
