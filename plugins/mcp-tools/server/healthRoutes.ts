// `/healthz` says what works: discovery, payments, networks; it is 200 while the process lives. `/readyz` is for a load
// balancer: 503 as long as the facilitator's discovery does not answer (S185, S186). Neither needs a key, and neither
// asks the facilitator more than once a second.
import { Effect } from "effect"
import { HttpRouter } from "effect/http"
import { json } from "../../../kernel/http/Guard.ts"
import type { DiscoveryClient } from "../discovery/DiscoveryClient.ts"

export interface HealthParts {
  readonly discovery: DiscoveryClient
  readonly payments: "ready" | "disabled"
  /** Spelled as the house speaks outwards. */
  readonly networks: ReadonlyArray<string>
}

export const addHealthRoutes = Effect.fnUntraced(function* ({ discovery, networks, payments }: HealthParts) {
  const router = yield* HttpRouter.HttpRouter
  yield* router.add(
    "GET",
    "/healthz",
    Effect.map(discovery.ready, ({ ready }) =>
      json({ status: "ok", discovery: ready ? "ready" : "unavailable", payments, networks })
    )
  )
  yield* router.add(
    "GET",
    "/readyz",
    Effect.map(discovery.ready, ({ detail, ready }) =>
      json(ready ? { ready } : { ready, detail: detail ?? "" }, { status: ready ? 200 : 503 })
    )
  )
})
