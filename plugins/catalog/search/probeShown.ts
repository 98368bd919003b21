// Requests probes of the resources that searches show, so that a seller that has ended ranks below live ones minutes
// after it was first shown. Searches never wait for it. The probes are free ones, which delay no probe that a seller's
// own payment requested, and few: those that were probed the longest ago come first.
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { reconciler } from "../../../kernel/actor/Actor.ts"
import { inStatement } from "../../../kernel/database/Database.ts"
import { trustedMillis } from "../../../kernel/time/trustedTime.ts"
import { Config } from "../Config.ts"
import { Search } from "../contract.ts"
import { Changes } from "../store/Changes.ts"
import { requestProbesAmong } from "../store/Resources.ts"

const waitingMax = 1_000
const perTurnMax = 30
const every = "1 minute"
/** A resource that was probed within this time is not probed for being shown. */
const againMillis = 300_000

export const startShownProbes = Effect.gen(function* () {
  const config = yield* Config
  if (!config.probeOrigins) return
  const sql = yield* SqlClient.SqlClient
  const search = yield* Search
  const { asked } = yield* Changes
  const waiting = new Set<bigint>()
  const turn = Effect.gen(function* () {
    if (waiting.size === 0) return
    const now = new Date(yield* trustedMillis)
    const shown = { ids: [...waiting], max: perTurnMax, since: new Date(now.getTime() - againMillis) }
    const requested = yield* inStatement(requestProbesAmong(sql, shown, config, now))
    waiting.clear()
    if (requested > 0) yield* asked
  })
  yield* reconciler({ id: "probes-of-shown", every, turn })
  yield* search.observe(({ ids }) =>
    Effect.sync(() => {
      for (const id of ids) if (waiting.size < waitingMax) waiting.add(id)
    })
  )
})
