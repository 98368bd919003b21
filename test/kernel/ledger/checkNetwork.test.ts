// The endpoints as readiness shows them: asked until all are right, warned about once, and never a reason to be
// unready.
import { it } from "@effect/vitest"
import { Duration, Effect, Layer } from "effect"
import { Health } from "../../../kernel/health/Health.ts"
import { startNetworkCheck } from "../../../kernel/ledger/checkNetwork.ts"
import type { HttpCalls } from "../../../kernel/platform/HttpCalls.ts"
import { Supervisor } from "../../../kernel/actor/Supervisor.ts"
import * as NodeHttpCalls from "../../../runtime/platform/nodeHttpCalls.ts"
import { startScriptedRpc, testPassphrase } from "../../support/scriptedRpc.ts"
import { eventually } from "../../support/eventually.ts"

it.live(
  "checks endpoints until each is on the right network [S73]",
  () =>
    Effect.gen(function* () {
      const right = yield* startScriptedRpc()
      const wrong = yield* startScriptedRpc({ getNetwork: { result: { passphrase: "another", protocolVersion: 23 } } })
      const health = yield* Health
      yield* startNetworkCheck({
        urls: [right.url, wrong.url],
        passphrase: testPassphrase,
        timeout: Duration.seconds(2)
      })
      const ledger = Effect.map(health.reports(true), (reports) => reports["ledger"])
      const until = (expected: string) => eventually(Effect.map(ledger, JSON.stringify), (seen) => seen === expected)
      yield* until('{"state":"degraded","detail":"endpoint 2: wrong network"}')
      wrong.script["getNetwork"] = { result: { passphrase: testPassphrase, protocolVersion: 23 } }
      yield* until('{"state":"ready"}')
    }).pipe(
      Effect.scoped,
      Effect.provide(
        Layer.mergeAll(Health.layer, Supervisor.layer, NodeHttpCalls.layer) as Layer.Layer<
          Health | Supervisor | HttpCalls
        >
      )
    ),
  240_000
)
