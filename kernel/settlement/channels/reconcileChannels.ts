// Keeps the required number of channels: rows, each an account on the ledger with enough balance and a known sequence
// number. The sponsor creates missing accounts, many in one transaction; in development a faucet first funds the
// sponsor itself. Channels beyond the required number are no longer leased and, once no settlement holds them, merged
// back into the sponsor. An unknown number, or a number that another signer has advanced, is read again. Among the
// replicas with the same settings and keys, one at a time does this. Other replicas maintain their own channels. The
// sponsor's transactions run one at a time for all replicas, so they do not collide. Boot never waits for it: until
// channels are ready, settling is answered busy.
import { Duration, Effect } from "effect"
import { FetchHttpClient, HttpClient } from "effect/http"
import { reconciler } from "../../actor/Actor.ts"
import { Network } from "../../config/Network.ts"
import { Lane } from "../../database/Connections.ts"
import { monotonicMillis } from "../../time/monotonicMillis.ts"
import { LedgerClock } from "../../ledger/LedgerClock.ts"
import { LedgerRpc } from "../../ledger/LedgerRpc.ts"
import type { LedgerAccount } from "../../stellar/LedgerEntry.ts"
import { withinLedgerBound } from "../../ledger/withinLedgerBound.ts"
import { Signer } from "../../signer/Signer.ts"
import { Leases } from "../Leases.ts"
import { ChannelCount } from "./ChannelCount.ts"
import { ChannelPool } from "./ChannelPool.ts"
import { type ChannelRow, ChannelRows, planned } from "./ChannelRows.ts"
import { ChannelStore } from "./ChannelStore.ts"
import { planMaintenance, costOf, type MaintenanceSnapshot } from "./planMaintenance.ts"
import { handleNetworkReset } from "./handleNetworkReset.ts"
import { SponsorTransactions } from "../sponsor/SponsorTransactions.ts"

// Asks the faucet of a development network to fund the sponsor. We ignore its answer: the next poll of the ledger shows
// whether the account exists, and we ask again until it does. It never fails, and its timeout bounds the delay of the
// channels.

/** Longest wait for an answer; a friendbot answers after one or two ledger closes. */
export const faucetTimeout = Duration.seconds(10)

/** Asks the faucet at `url` (a friendbot's: `?addr=G…`) for a new account. */
export const askFaucet = Effect.fnUntraced(function* (url: string, address: string) {
  const http = yield* HttpClient.HttpClient
  yield* http.get(`${url}?addr=${address}`).pipe(
    Effect.timeout(faucetTimeout),
    Effect.catch((error) => Effect.logWarning("the faucet did not fund the sponsor", error._tag))
  )
})

/** Maximum accounts of one RPC call. */
const accountsMax = 200
const leaseDuration = Duration.seconds(10)
/** The sponsor's reserve: the ledger's minimum balance and a margin for fees, stroops. */
const sponsorReserveStroops = 15_000_000n
/**
 * Interval after which the first turn compares balances and numbers of all channels with the ledger. It means once a
 * minute, since turns are ten seconds apart and the sixth comes some milliseconds before the minute has passed. Missing
 * channels are handled at each ledger.
 */
const surveyMillis = 55_000
/** Maximum delay before we notice another required number of channels, from another replica or the command line. */
const restMax = Duration.seconds(10)
/** Repeat interval of a lasting warning. */
const warnMillis = 60_000

/** State kept from one turn to the next. */
interface Memory {
  /** Nothing was missing at the last survey. */
  ready: boolean
  requiredBefore: number
  /** The keys and settings of the last survey; they differ after a rotation. */
  settingsBefore: string
  surveyedAt: number
  warnedAt: number
  /** The highest ledger of any turn. */
  ledgerMost: number
  /** Time of the last comparison with the recorded network history. */
  comparedAt: number
}

/** At most once a minute, since the turn runs each second while something is missing. */
const warn = Effect.fnUntraced(function* (memory: Memory, message: string, annotations: Record<string, unknown>) {
  const now = yield* monotonicMillis
  if (now - memory.warnedAt < warnMillis) return
  memory.warnedAt = now
  yield* Effect.logWarning(message).pipe(Effect.annotateLogs(annotations))
})

const readAccounts = Effect.fnUntraced(function* (addresses: ReadonlyArray<string>) {
  const rpc = yield* LedgerRpc
  const clock = yield* LedgerClock
  const accounts = new Map<string, LedgerAccount>()
  let asOf = Number.MAX_SAFE_INTEGER
  for (let at = 0; at < addresses.length; at += accountsMax) {
    const answer = yield* rpc.accounts(addresses.slice(at, at + accountsMax))
    asOf = Math.min(asOf, yield* withinLedgerBound(clock, answer.latestLedger))
    for (const [address, account] of answer.accounts) accounts.set(address, account)
  }
  return { accounts, asOf }
})

const fundSponsor = Effect.fnUntraced(function* (memory: Memory) {
  const network = yield* Network
  const { sponsor } = yield* Signer
  if (!network.developmentAutoFund || network.friendbotUrl._tag === "None") {
    return yield* warn(
      memory,
      `the sponsor's account does not exist on the ledger; settling is busy until XLM is sent to ${sponsor}`,
      { sponsor }
    )
  }
  yield* askFaucet(network.friendbotUrl.value, sponsor)
})

/**
 * Reads sequence numbers of channels that lack one, and of channels that another signer has advanced. The read is never
 * older than the last outcome.
 */
const learnNumbers = Effect.fnUntraced(function* ({ accounts, asOf, kept }: MaintenanceSnapshot) {
  const store = yield* ChannelStore
  for (const { address, held, leased, sequence, sequence_ledger } of kept) {
    const account = accounts.get(address)
    if (account === undefined || held || leased) continue
    if (sequence === account.sequence || asOf < Number(sequence_ledger)) continue
    if (sequence === null) yield* store.learn(address, account.sequence, asOf)
    else if (yield* store.correct(address, sequence, account.sequence, asOf)) {
      yield* Effect.logWarning(
        "another signer used a channel of this service; its sequence number was read again"
      ).pipe(Effect.annotateLogs({ channel: address }))
    }
  }
  yield* (yield* ChannelPool).freed
})

/**
 * Called when no sponsor transaction is open: a merged account has been removed by now, and a merge that did not land
 * is tried again.
 */
const endMerges = Effect.fnUntraced(function* ({ accounts, leaving }: MaintenanceSnapshot) {
  const rows = yield* ChannelRows
  for (const row of leaving) {
    const isGone = !accounts.has(row.address)
    if (row.state === "merging" || (isGone && !row.held && !row.leased)) yield* rows.endMerge(row, isGone)
  }
})

/**
 * A reset network has lower numbers than before; each turn polls until the reset is certain. Each turn also polls
 * before the channels are ready: the state that a process finds at start may be from before a reset.
 */
const mayBeReset = Effect.fnUntraced(function* (memory: Memory) {
  const { sequence } = yield* (yield* LedgerClock).now
  memory.ledgerMost = Math.max(memory.ledgerMost, sequence)
  return !memory.ready || sequence < memory.ledgerMost
})

/** Whether the interval has passed, another number is required, or a channel waits. */
const isDue = (memory: Memory, required: number, isWaiting: boolean) =>
  Effect.map(
    monotonicMillis,
    (now) => isWaiting || !memory.ready || required !== memory.requiredBefore || now - memory.surveyedAt >= surveyMillis
  )

/** Reads all our channels and the sponsor, from the table first, so that the ledger's state is the newer one. */
const surveyChannels = Effect.gen(function* () {
  const { sponsor } = yield* Signer
  const rows: ReadonlyArray<ChannelRow> = yield* (yield* ChannelRows).owned
  const { accounts, asOf } = yield* readAccounts([sponsor, ...rows.map(({ address }) => address)])
  const isKept = ({ state }: ChannelRow) => state === planned || state === "ready"
  const survey: MaintenanceSnapshot = {
    kept: rows.filter(isKept),
    leaving: rows.filter((row) => !isKept(row)),
    accounts,
    asOf
  }
  return { survey, sponsorAccount: accounts.get(sponsor) }
})

const turn = Effect.fnUntraced(function* (memory: Memory) {
  const network = yield* Network
  const { sponsor } = yield* Signer
  const rows = yield* ChannelRows
  const transactions = yield* SponsorTransactions
  const { asked, isWaiting } = yield* rows.glance
  const required = (yield* ChannelCount).heed(asked)
  const { settingsId } = rows
  if (settingsId !== memory.settingsBefore) memory.ready = false
  memory.settingsBefore = settingsId
  if (!(yield* (yield* Leases).hold(`channels ${settingsId}`, leaseDuration))) return
  const now = yield* monotonicMillis
  const isCompareDue = now - memory.comparedAt >= surveyMillis
  if ((yield* mayBeReset(memory)) || isCompareDue) {
    if (isCompareDue) memory.comparedAt = now
    if (yield* handleNetworkReset(isCompareDue)) memory.ready = false
  }
  if (!(yield* isDue(memory, required, isWaiting))) return
  yield* rows.claim(required)
  memory.requiredBefore = required
  if (!(yield* transactions.settleOpen)) return
  const last = yield* transactions.last
  const { sponsorAccount, survey } = yield* surveyChannels
  // A node that has not seen our last transaction would make us repeat it.
  if (survey.asOf < last.ledger) return
  if (sponsorAccount === undefined) return yield* fundSponsor(memory)
  yield* learnNumbers(survey)
  yield* endMerges(survey)
  const chores = planMaintenance(survey, sponsor, network.channelBalanceStroopsMin)
  // A channel that was required again during its merge has no account yet.
  memory.ready = chores.length === 0 && survey.kept.length >= required
  memory.surveyedAt = yield* monotonicMillis
  if (chores.length === 0) return
  if (sponsorAccount.balanceStroops < costOf(chores) + sponsorReserveStroops) {
    const missing = chores.length
    return yield* warn(memory, "the sponsor cannot pay for its channels; using the existing ones", { sponsor, missing })
  }
  yield* transactions.submit(chores[0]?._tag === "Merge" ? "retire" : "channels", chores, last.hash)
})

/** Starts the reconciler in the current Scope. */
export const startChannels = Effect.fnUntraced(function* () {
  const memory: Memory = {
    ready: false,
    requiredBefore: 0,
    settingsBefore: "",
    surveyedAt: -Infinity,
    warnedAt: -Infinity,
    ledgerMost: -Infinity,
    comparedAt: -Infinity
  }
  const clock = yield* LedgerClock
  // Woken by each ledger while payments are active, and every second while something is missing.
  const channels = yield* reconciler({
    id: "channels",
    every: Effect.sync(() => (memory.ready ? restMax : Duration.seconds(1))),
    turn: Effect.provideService(turn(memory), Lane, "payments")
  })
  yield* clock.subscribe(channels.wake)
  yield* (yield* ChannelStore).onDistrusted(channels.wake)
  return channels
}, Effect.provide(FetchHttpClient.layer))
