// Keeps the channels as the settings want them: as many rows as channels, each an account on the ledger with enough balance and a
// known sequence number. Missing accounts are created by the sponsor, many in one transaction; in development the sponsor
// itself is funded by a faucet first. One replica at a time does this, and two first boots cannot collide. Boot never waits for
// it: until channels are ready, settling is answered busy.
import { Duration, Effect } from "effect"
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

interface ChannelRow {
  readonly address: string
  readonly state: "wanted" | "ready"
  readonly sequence_known: boolean
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
      yield* Effect.logWarning("the sponsor's account does not exist on the ledger; settling is busy until it is funded").pipe(
        Effect.annotateLogs({ sponsor: signer.sponsor })
      )
      return
    }
    yield* http.get(`${network.friendbotUrl.value}?addr=${signer.sponsor}`).pipe(
      Effect.timeout("10 seconds"),
      Effect.catch((error) => Effect.logWarning("the faucet did not fund the sponsor", error._tag))
    )
  })

  /** Learns sequence numbers of channels that have none and that nothing holds. The read is never older than their last outcome. */
  const learn = Effect.fnUntraced(function*(rows: ReadonlyArray<ChannelRow>, accounts: ReadonlyMap<string, LedgerAccount>, asOf: number) {
    for (const row of rows) {
      const account = accounts.get(row.address)
      if (account === undefined || row.held || row.sequence_known || asOf < Number(row.sequence_ledger)) continue
      yield* store.learn(row.address, account.sequence, asOf)
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

  const turn = Effect.gen(function*() {
    if (!(yield* leases.hold("channels", leaseDuration))) return
    yield* wantRows
    if (!(yield* sponsorTransactions.settleOpen)) return
    const rows = yield* sql<ChannelRow>`select address, state, sequence is not null as sequence_known, sequence_ledger,
      settlement is not null as held from kernel_channels
      where network = ${network.id} and sponsor = ${signer.sponsor} and state <> 'retired' order by number`
    const { asOf, found } = yield* readAccounts([signer.sponsor, ...rows.map(({ address }) => address)])
    if (!found.has(signer.sponsor)) return yield* fundSponsor
    yield* learn(rows, found, asOf)
    yield* pool.freed
    const todo = chores(rows, found)
    if (todo.length > 0) yield* sponsorTransactions.submit("channels", todo)
    ready = todo.length === 0
  })

  // Often while something is missing, woken by ledgers then; once a minute for balances afterwards.
  const channels = yield* reconciler({
    id: "channels",
    every: Effect.sync(() => ready ? Duration.minutes(1) : Duration.seconds(1)),
    turn: Effect.provideService(turn, HttpClient.HttpClient, http)
  })
  yield* clock.subscribe(Effect.suspend(() => ready ? Effect.void : channels.wake))
  return channels
}, Effect.provide(FetchHttpClient.layer))
