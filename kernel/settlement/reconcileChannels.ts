// Keeps the channels as the settings want them: as many rows as channels, each an account on the ledger with enough balance and a
// known sequence number. Missing accounts are created by the sponsor, many in one transaction; in development the sponsor
// itself is funded by a faucet first. A number that is not known any more, or that somebody else has moved on, is read again. One
// replica at a time does this, and two first boots cannot collide. Boot never waits for it: until channels are ready, settling
// is answered busy.
import { Clock, Duration, Effect } from "effect"
import { FetchHttpClient, HttpClient } from "effect/http"
import { SqlClient } from "effect/sql"
import { reconciler } from "../Actor.ts"
import { Network } from "../config/Network.ts"
import type { SponsorOperation } from "../ledger/Envelope.ts"
import { LedgerClock } from "../ledger/LedgerClock.ts"
import { type LedgerAccount, LedgerRpc } from "../ledger/LedgerRpc.ts"
import { Signer } from "../signer/Signer.ts"
import { ChannelPool } from "./ChannelPool.ts"
import { ChannelStore } from "./ChannelStore.ts"
import { Leases } from "./Leases.ts"
import { SponsorTransactions } from "./SponsorTransactions.ts"

/** Operations a transaction may hold. */
const operationsMax = 100
/** Accounts one RPC call may ask for. */
const accountsMax = 200
const leaseDuration = Duration.seconds(10)
/** What the sponsor must keep: the ledger's minimum balance and a margin for fees, stroops. */
const sponsorReserveStroops = 15_000_000n
/** Balances and numbers of all channels are compared with the ledger this often; what is missing is looked after at each ledger. */
const surveyMillis = 60_000
/** A warning that stays true is said again after this. */
const warnMillis = 60_000

interface ChannelRow {
  readonly address: string
  readonly state: "wanted" | "ready"
  readonly sequence: bigint | null
  readonly sequence_ledger: bigint
  readonly held: boolean
}

/** Starts the reconciler in the current Scope. */
export const startChannels = Effect.fnUntraced(function*() {
  const sql = yield* SqlClient.SqlClient
  const network = yield* Network
  const rpc = yield* LedgerRpc
  const clock = yield* LedgerClock
  const signer = yield* Signer
  const leases = yield* Leases
  const pool = yield* ChannelPool
  const store = yield* ChannelStore
  const sponsorTransactions = yield* SponsorTransactions
  const http = yield* HttpClient.HttpClient
  let ready = false
  let surveyedAt = -Infinity
  let warnedAt = -Infinity

  /** At most once a minute: the turn comes back each second while something is missing. */
  const warn = Effect.fnUntraced(function*(message: string, annotations: Record<string, unknown>) {
    const now = yield* Clock.currentTimeMillis
    if (now - warnedAt < warnMillis) return
    warnedAt = now
    yield* Effect.logWarning(message).pipe(Effect.annotateLogs(annotations))
  })

  /** One row a channel; channels beyond the configured number are retired when nothing holds them. */
  const wantRows = Effect.gen(function*() {
    const rows: Array<Record<string, unknown>> = signer.channels.map((address, number) => ({ address, network: network.id, sponsor: signer.sponsor, number }))
    yield* sql`insert into kernel_channels ${sql.insert(rows as any)} on conflict (address) do update set state = 'wanted', sequence = null
      where kernel_channels.state = 'retired'`
    yield* sql`update kernel_channels set state = 'retired' where network = ${network.id} and sponsor = ${signer.sponsor}
      and number >= ${signer.channels.length} and settlement is null and state <> 'retired'`
  })

  const readAccounts = Effect.fnUntraced(function*(addresses: ReadonlyArray<string>) {
    const found = new Map<string, LedgerAccount>()
    let asOf = Number.MAX_SAFE_INTEGER
    for (let at = 0; at < addresses.length; at += accountsMax) {
      const { accounts, latestLedger } = yield* rpc.accounts(addresses.slice(at, at + accountsMax))
      asOf = Math.min(asOf, latestLedger)
      for (const [address, account] of accounts) found.set(address, account)
    }
    return { found, asOf }
  })

  const fundSponsor = Effect.gen(function*() {
    if (!network.developmentAutoFund || network.friendbotUrl._tag === "None") {
      return yield* warn("the sponsor's account does not exist on the ledger; settling is busy until it is funded", { sponsor: signer.sponsor })
    }
    yield* http.get(`${network.friendbotUrl.value}?addr=${signer.sponsor}`).pipe(
      Effect.timeout("10 seconds"),
      Effect.catch((error) => Effect.logWarning("the faucet did not fund the sponsor", error._tag))
    )
  })

  /** Learns sequence numbers of channels that have none, and those that somebody else has moved on. The read is never older than the last outcome. */
  const learn = Effect.fnUntraced(function*(rows: ReadonlyArray<ChannelRow>, accounts: ReadonlyMap<string, LedgerAccount>, asOf: number) {
    for (const row of rows) {
      const account = accounts.get(row.address)
      if (account === undefined || row.held || row.sequence === account.sequence || asOf < Number(row.sequence_ledger)) continue
      if (row.sequence === null) yield* store.learn(row.address, account.sequence, asOf)
      else if (yield* store.correct(row.address, row.sequence, account.sequence, asOf)) {
        yield* Effect.logWarning("somebody else used a channel of ours; its sequence number was read again").pipe(Effect.annotateLogs({ channel: row.address }))
      }
    }
  })

  /** What the sponsor has to do: create what is missing, top up what is low. */
  const chores = (rows: ReadonlyArray<ChannelRow>, accounts: ReadonlyMap<string, LedgerAccount>): ReadonlyArray<SponsorOperation> =>
    rows.flatMap((row): ReadonlyArray<SponsorOperation> => {
      const account = accounts.get(row.address)
      const balanceMin = network.channelBalanceStroopsMin
      if (account === undefined) return [{ _tag: "Create", account: row.address, balanceStroops: balanceMin }]
      return account.balanceStroops < balanceMin / 2n
        ? [{ _tag: "Fund", account: row.address, amountStroops: balanceMin - account.balanceStroops }]
        : []
    }).slice(0, operationsMax)

  /** What the chores give away. Merging gives back. */
  const costOf = (todo: ReadonlyArray<SponsorOperation>): bigint =>
    todo.reduce((sum, one) => sum + (one._tag === "Create" ? one.balanceStroops : one._tag === "Fund" ? one.amountStroops : 0n), 0n)

  /** Whether the minute is over, or a channel waits for its number. */
  const isDue = Effect.gen(function*() {
    const now = yield* Clock.currentTimeMillis
    if (!ready || Math.abs(now - surveyedAt) >= surveyMillis) return true
    const unknown = yield* sql`select 1 from kernel_channels where network = ${network.id} and sponsor = ${signer.sponsor}
      and state <> 'retired' and sequence is null and settlement is null limit 1`
    return unknown.length > 0
  })

  const turn = Effect.gen(function*() {
    if (!(yield* leases.hold("channels", leaseDuration)) || !(yield* isDue)) return
    yield* wantRows
    if (!(yield* sponsorTransactions.settleOpen)) return
    const rows = yield* sql<ChannelRow>`select address, state, sequence, sequence_ledger,
      settlement is not null as held from kernel_channels
      where network = ${network.id} and sponsor = ${signer.sponsor} and state <> 'retired' order by number`
    const { asOf, found } = yield* readAccounts([signer.sponsor, ...rows.map(({ address }) => address)])
    const sponsor = found.get(signer.sponsor)
    if (sponsor === undefined) return yield* fundSponsor
    yield* learn(rows, found, asOf)
    yield* pool.freed
    const todo = chores(rows, found)
    ready = todo.length === 0
    surveyedAt = yield* Clock.currentTimeMillis
    if (todo.length === 0) return
    if (sponsor.balanceStroops < costOf(todo) + sponsorReserveStroops) {
      return yield* warn("the sponsor cannot pay for its channels; what exists is used", { sponsor: signer.sponsor, missing: todo.length })
    }
    yield* sponsorTransactions.submit("channels", todo)
  })

  // Woken by each ledger, and by the second while something is missing.
  const channels = yield* reconciler({
    id: "channels",
    every: Effect.sync(() => ready ? Duration.minutes(1) : Duration.seconds(1)),
    turn: Effect.provideService(turn, HttpClient.HttpClient, http)
  })
  yield* clock.subscribe(channels.wake)
  return channels
}, Effect.provide(FetchHttpClient.layer))
