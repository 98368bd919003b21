// What an operator's monitoring reads: Prometheus text of every metric of the process at /metrics. Counters and
// histograms live where things happen; what is a state (channels, the ledger's age) is read here when somebody asks.
// With operator keys the route needs one; without, it is served to this machine alone (decisions 2). No address, hash
// or text of a caller is ever a label.
import { Effect, Metric, Option } from "effect"
import { HttpRouter, HttpServerResponse } from "effect/http"
import { PrometheusMetrics } from "effect/observability"
import { Callers } from "../http/Callers.ts"
import { json } from "../http/Guard.ts"
import { LedgerClock } from "../ledger/LedgerClock.ts"
import { ChannelPool } from "../settlement/channels/ChannelPool.ts"
import { Sponsor } from "../settlement/Sponsor.ts"
import { spendable } from "../settlement/sponsorFault.ts"
import { Settlements } from "../settlement/Settlements.ts"

const channelsReady = Metric.gauge("tollkeeper_channels_ready", {
  description: "Channel accounts that exist and may be leased."
})
const channelsFree = Metric.gauge("tollkeeper_channels_free", {
  description: "Channel accounts that nobody holds at this moment."
})
const settlementsOpen = Metric.gauge("tollkeeper_settlements_open", {
  description: "Settlements whose end the ledger has not told yet."
})
const ledgerSequence = Metric.gauge("tollkeeper_ledger_sequence", { description: "Newest ledger seen." })
const ledgerKnown = Metric.gauge("tollkeeper_ledger_available", {
  description: "1 while the ledger's newest reading is fresh enough to be relied on, else 0."
})

const ledgerAge = Metric.gauge("tollkeeper_ledger_age_seconds", {
  description: "Seconds since the ledger last advanced, as far as is known here."
})
const clockSkew = Metric.gauge("tollkeeper_ledger_clock_skew_seconds", {
  description: "How far this machine's clock is ahead of the ledger's: the least over ten new ledgers."
})
const inclusionFee = Metric.gauge("tollkeeper_ledger_inclusion_fee_stroops", {
  description: "What the network asks for inclusion, stroops."
})
const sponsorBalance = Metric.gauge("tollkeeper_sponsor_balance_stroops", {
  description: "Balance of the sponsor's account, stroops; 0 while it is not on the ledger."
})
const sponsorSpendable = Metric.gauge("tollkeeper_sponsor_spendable_stroops", {
  description: "What of it is left above its reserve and what open settlements may cost, stroops."
})
const channelsUsable = Metric.gauge("tollkeeper_channels_usable", {
  description: "Channels that may be leased and whose accounts are on the ledger."
})
const oldestOpen = Metric.gauge("tollkeeper_settlements_oldest_open_seconds", {
  description: "Age of the oldest settlement whose end the ledger has not told yet; 0 when there is none."
})

/** What is known of the ledger's time; nothing is asked. */
const readLedger = Effect.fnUntraced(function* (clock: LedgerClock["Service"]) {
  const { ageSeconds, isFresh, skewSeconds, time } = yield* clock.standing
  yield* Metric.update(ledgerKnown, isFresh ? 1 : 0)
  yield* Metric.update(inclusionFee, Number((yield* clock.fees).asked))
  if (skewSeconds !== undefined) yield* Metric.update(clockSkew, skewSeconds)
  if (time === undefined) return
  yield* Metric.update(ledgerSequence, time.sequence)
  yield* Metric.update(ledgerAge, ageSeconds)
})

/** What was last read of the sponsor; nothing is asked. */
const readSponsor = Effect.fnUntraced(function* (sponsor: Sponsor["Service"]) {
  const standing = Option.getOrUndefined(yield* sponsor.standing)
  if (standing === undefined) return
  yield* Metric.update(sponsorBalance, Number(standing.account?.balanceStroops ?? 0n))
  yield* Metric.update(sponsorSpendable, Number(spendable(standing)))
  yield* Metric.update(channelsUsable, standing.channelsUsable)
  yield* Metric.update(oldestOpen, standing.oldestOpenSeconds ?? 0)
})

export const routes = HttpRouter.use((router) =>
  Effect.gen(function* () {
    const callers = yield* Callers
    const channels = yield* ChannelPool
    const settlements = yield* Settlements
    const clock = yield* LedgerClock
    const sponsor = yield* Sponsor
    const refresh = Effect.gen(function* () {
      const { free, ready } = yield* channels.counts
      yield* Metric.update(channelsReady, ready)
      yield* Metric.update(channelsFree, free)
      yield* Metric.update(settlementsOpen, yield* settlements.openCount)
    }).pipe(
      Effect.timeout("2 seconds"),
      Effect.catch((error) => Effect.logDebug("state was not read for metrics", error))
    )
    yield* router.add("GET", "/metrics", (request) =>
      Effect.gen(function* () {
        if (!callers.mayOperate(request))
          return json({ error: "unauthorized" }, { status: 401, headers: { "www-authenticate": "Bearer" } })
        yield* Effect.all([refresh, readLedger(clock), readSponsor(sponsor)], { concurrency: 2 })
        return HttpServerResponse.text(yield* PrometheusMetrics.format(), {
          contentType: "text/plain; version=0.0.4; charset=utf-8",
          headers: { "cache-control": "no-store" }
        })
      })
    )
  })
)
