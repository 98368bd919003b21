// GET /settlements: a caller's own settlements, by identifier or by hash. A database error is answered 503, never “not
// found”: a client that reads “not found” may pay again.
import { Effect, Option } from "effect"
import type { HttpServerRequest } from "effect/http"
import { WireVocabulary } from "../../config/WireVocabulary.ts"
import { json, temporarilyUnavailable } from "../../http/httpMiddleware.ts"
import type { Principal } from "../../http/Authentication.ts"
import { Facilitator } from "../Facilitator.ts"
import { encodeSettlementState } from "./settlementState.ts"

/** The one criterion of a lookup; undefined unless exactly one was sent, well formed. */
const readQuery = (url: string): { readonly identifier: string } | { readonly hash: string } | undefined => {
  const params = new URL(url, "http://localhost").searchParams
  const identifier = params.get("identifier")
  const hash = params.get("hash")
  if (identifier !== null && hash !== null) return undefined
  if (identifier !== null) return /^[A-Za-z0-9_-]{16,128}$/.test(identifier) ? { identifier } : undefined
  return hash !== null && /^[0-9a-f]{64}$/.test(hash) ? { hash } : undefined
}

export const lookupSettlements = Effect.gen(function* () {
  const facilitator = yield* Facilitator
  const words = yield* WireVocabulary
  return Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest, principal: Principal) {
    const query = readQuery(request.url)
    if (query === undefined) {
      return json(
        { error: "invalid_request", details: ["one of identifier and hash (64 hex) is required"] },
        { status: 400 }
      )
    }
    const found = yield* facilitator.lookup(principal, query)
    if (Option.isNone(found)) return temporarilyUnavailable
    const records = found.value
    const now = yield* Effect.clockWith((clock) => clock.currentTimeMillis)
    return records.length === 0
      ? json({ error: "not_found" }, { status: 404 })
      : json({ items: records.map((record) => encodeSettlementState(record, words.dialects[0], now)) })
  })
})
