// Checks at startup that each configured endpoint serves the right network. An endpoint that serves another network, or
// does not answer, is reported by a warning and in the readiness body; we poll until all are right. Outside pubnet the
// process starts anyway. Such an endpoint is not used, so settling is busy until one is right (rules 2, S73).
import { Duration, Effect } from "effect"
import { reconciler } from "../actor/Actor.ts"
import { Health, type HealthReport } from "../health/Health.ts"
import { checkEndpoints, type LedgerRpcOptions } from "./makeLedgerRpc.ts"

type EndpointState = { readonly endpoint: number; readonly state: string }

/**
 * The problem, its consequence, the remedy; an endpoint is identified by position, since its address may hold a key.
 */
const sentenceOf = (wrong: ReadonlyArray<EndpointState>, all: number): string => {
  const which = wrong.map(({ endpoint, state }) => `endpoint ${endpoint + 1} of ${all} is ${state}`).join(", ")
  const follows = wrong.length === all ? "settle is busy until one is usable" : "the others are used"
  const isWrong = wrong.some(({ state }) => state !== "unreachable")
  const remedy = isWrong
    ? "set rpc_urls to endpoints of the network that is served"
    : "check the address and the network route, or set other endpoints"
  return `ledger RPC: ${which}; ${follows}; ${remedy} (networks.<id>.rpc_urls)`
}

export const startNetworkCheck = Effect.fnUntraced(function* (options: LedgerRpcOptions) {
  const health = yield* Health
  let report: HealthReport = { state: "degraded", detail: "the ledger's endpoints are being checked" }
  yield* health.register(
    "ledger",
    Effect.sync(() => report)
  )
  const turn = Effect.gen(function* () {
    if (report.state === "ready") return
    const checked = yield* checkEndpoints(options)
    const wrong = checked.filter(({ state }) => state !== "right")
    if (wrong.length === 0) {
      report = { state: "ready" }
      return
    }
    const detail = wrong.map(({ endpoint, state }) => `endpoint ${endpoint + 1}: ${state}`).join(", ")
    if (report.detail !== detail)
      yield* Effect.logWarning(sentenceOf(wrong, checked.length)).pipe(Effect.annotateLogs({ detail }))
    report = { state: "degraded", detail }
  })
  yield* reconciler({
    id: "network-check",
    every: Effect.sync(() => (report.state === "ready" ? Duration.hours(1) : Duration.seconds(2))),
    turn
  })
})
