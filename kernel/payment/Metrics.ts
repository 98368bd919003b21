// What an operator's monitoring reads: Prometheus text of every metric of the process at /metrics. Counters and
// histograms live where things happen; what is a state (channels, the ledger's age) is read here when somebody asks.
// With operator keys the route wants one; without, it is served to this machine alone (decisions 2). No address, hash
// or text of a caller is ever a label.
import { Effect, Metric } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { PrometheusMetrics } from "effect/observability"
import { Callers } from "../http/Callers.ts"
import { json } from "../http/Guard.ts"
import { Keys } from "../http/Keys.ts"
import { LedgerClock } from "../ledger/LedgerClock.ts"
import { ChannelPool } from "../settlement/channels/ChannelPool.ts"
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

export const routes = HttpRouter.use((router) =>
  Effect.gen(function* () {
    const callers = yield* Callers
    const keys = yield* Keys
    const channels = yield* ChannelPool
    const settlements = yield* Settlements
    const clock = yield* LedgerClock
    const mayRead = (request: HttpServerRequest.HttpServerRequest) =>
      keys.operatorKeyed() ? callers.isOperator(request) : callers.isLocal(request)
    const refresh = Effect.gen(function* () {
      const { free, ready } = yield* channels.counts
      yield* Metric.update(channelsReady, ready)
      yield* Metric.update(channelsFree, free)
      yield* Metric.update(settlementsOpen, yield* settlements.openCount)
    }).pipe(
      Effect.timeout("2 seconds"),
      Effect.catch((error) => Effect.logDebug("state was not read for metrics", error))
    )
    const ledger = Effect.matchEffect(clock.now, {
      onFailure: () => Metric.update(ledgerKnown, 0),
      onSuccess: ({ sequence }) =>
        Effect.andThen(Metric.update(ledgerKnown, 1), Metric.update(ledgerSequence, sequence))
    })
    yield* router.add("GET", "/metrics", (request) =>
      Effect.gen(function* () {
        if (!mayRead(request))
          return json({ error: "unauthorized" }, { status: 401, headers: { "www-authenticate": "Bearer" } })
        yield* Effect.all([refresh, ledger], { concurrency: 2 })
        return HttpServerResponse.text(yield* PrometheusMetrics.format(), {
          contentType: "text/plain; version=0.0.4; charset=utf-8",
          headers: { "cache-control": "no-store" }
        })
      })
    )
  })
)
