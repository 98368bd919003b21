// An operator's actions: a listing is removed, quarantined or restored, with the operator's name and reason on record.
// A removed listing stays removed until it is restored, even if it is paid for (S317).
import { Clock, Effect, Option } from "effect"
import { SqlClient } from "effect/sql"
import { inTransaction } from "../../../kernel/database/Database.ts"
import type { Facts } from "../../../kernel/facts/Facts.ts"
import type { Crypto } from "../../../kernel/platform/Crypto.ts"
import type { ResourceState, ResourceType } from "../contract.ts"
import { cleanLine } from "../declaration/cleanText.ts"
import { spellResourceUrl } from "../declaration/resourceUrl.ts"
import { identityKey } from "../store/ResourceWire.ts"
import { lockResource, moveState } from "../store/Resources.ts"

export const operatorMoves = ["remove", "quarantine", "restore"] as const

export interface MoveRequest {
  readonly type: ResourceType
  readonly url: string
  /** Empty for HTTP. */
  readonly toolName: string
  readonly move: (typeof operatorMoves)[number]
  /** The operator's name: the label of its key, or `cli`. */
  readonly by: string
  /** For other operators; never public. */
  readonly note: string
}

const moves: Readonly<Record<MoveRequest["move"], readonly [move: string, to: ResourceState]>> = {
  remove: ["removed", "removed"],
  quarantine: ["quarantined", "quarantined"],
  restore: ["restored", "active"]
}

interface Moved {
  readonly resource: string
  readonly from: ResourceState
  readonly to: ResourceState
}

/** None if the listing does not exist. An action that would not change the state does nothing. */
export const moveResource = Effect.fn("Catalog.move")(function* (
  request: MoveRequest,
  facts: Facts["Service"],
  crypto: Crypto["Service"]
) {
  const sql = yield* SqlClient.SqlClient
  const spelled = spellResourceUrl(request.type, request.url)
  if (spelled === undefined) return Option.none<Moved>()
  const now = new Date(yield* Clock.currentTimeMillis)
  const key = identityKey(crypto, { type: request.type, resource: spelled.resource, toolName: request.toolName })
  return yield* inTransaction(
    Effect.gen(function* () {
      const row = yield* lockResource(sql, { key })
      if (row === undefined) return Option.none<Moved>()
      const [move, to] = moves[request.move]
      if (row.state !== to || row.state_reason !== (to === "active" ? null : "operator")) {
        yield* moveState(sql, facts, row.id, now, {
          by: `operator:${request.by}`,
          move,
          from: row.state,
          to,
          reason: "operator",
          detail: cleanLine(request.note, 500)
        })
      }
      return Option.some<Moved>({ resource: row.resource, from: row.state, to })
    })
  )
})
