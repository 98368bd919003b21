// `/healthz` reports the state of discovery, payments and networks; it is 200 while the process lives. `/readyz` is for
// a load balancer: 503 as long as the facilitator's discovery does not answer (S185, S186). Neither needs a key, and
// neither asks the facilitator more than once a second.
import { Effect } from "effect"
import type { HttpRouter } from "effect/http"
import { json } from "../../../kernel/http/httpMiddleware.ts"
import { type Handler, mountRoutes, route } from "../../../kernel/http/Route.ts"
import { Config } from "../Config.ts"
import { DiscoveryClient } from "../discovery/DiscoveryClient.ts"
import { spelled } from "../contract.ts"

export const addHealthRoutes = Effect.gen(function* () {
  const discovery = yield* DiscoveryClient
  const config = yield* Config
  const payments = config.signer.mode === "none" ? "disabled" : "ready"
  // In the spelling of the public API.
  const networks = config.networks.map(yield* spelled)
  const probe = (path: HttpRouter.PathInput, answer: Handler) =>
    route(
      {
        method: "GET",
        path,
        exposure: "guarded",
        isProbe: true,
        callers: "public",
        cost: { cpuMillis: 5, bytesOut: 4_096 }
      },
      answer
    )
  yield* mountRoutes([
    probe(
      "/healthz",
      Effect.map(discovery.ready, ({ ready }) =>
        json({ status: "ok", discovery: ready ? "ready" : "unavailable", payments, networks })
      )
    ),
    probe(
      "/readyz",
      Effect.map(discovery.ready, ({ detail, ready }) =>
        json(ready ? { ready } : { ready, detail: detail ?? "" }, { status: ready ? 200 : 503 })
      )
    )
  ])
})
