// GET /settlements: a caller's own settlements, by identifier or by hash. An open settlement past its caller's
// deadline is `unknown`; `settled` is `success`; `failed` and `expired` are `failed` (rules 3). A database error is
// answered 503, never “not found”: a client that reads “not found” may pay again.
import { Effect, Option } from "effect"
import type { HttpServerRequest } from "effect/http"
import { WireVocabulary } from "../../config/WireVocabulary.ts"
import { type Dialect, encodeNetwork, encodeReason } from "../../Dialect.ts"
import { json, temporarilyUnavailable } from "../../http/httpMiddleware.ts"
import type { Principal } from "../../http/Authentication.ts"
import { spentIn } from "../../settlement/state/outcomes.ts"
import { isOpen } from "../../settlement/state/Settlement.ts"
import type { SettlementRecord } from "../../settlement/store/Settlements.ts"
import { Facilitator } from "../Facilitator.ts"
import type { SettlementBody } from "../wire/BodyWire.ts"

/** A state's name for callers and analytics. */
export const statusOf = (
  record: Pick<SettlementRecord, "state" | "deadlineAt">,
  nowMillis: number
): "pending" | "unknown" | "success" | "failed" => {
  if (record.state === "settled") return "success"
  if (record.state === "failed" || record.state === "expired") return "failed"
  return isOpen(record.state) && record.deadlineAt.getTime() > nowMillis ? "pending" : "unknown"
}

const whyFailed = (errorMessage: string) => {
  const spentBy = spentIn(errorMessage)
  return { errorMessage, ...(spentBy === undefined ? {} : { spentBy }) }
}

export const encodeSettlementState = (
  record: SettlementRecord,
  dialect: Dialect,
  nowMillis: number
): typeof SettlementBody.Type => ({
  id: record.id,
  status: statusOf(record, nowMillis),
  network: encodeNetwork(record.network, dialect),
  scheme: record.scheme,
  asset: record.asset,
  amount: record.amount.toString(),
  payer: record.payer,
  payTo: record.payTo,
  transaction: Option.getOrElse(record.transaction, () => record.innerHash),
  ...Option.match(record.identifier, { onNone: () => ({}), onSome: (paymentIdentifier) => ({ paymentIdentifier }) }),
  recordedAt: record.recordedAt.toISOString(),
  ...Option.match(record.resolvedAt, { onNone: () => ({}), onSome: (at) => ({ resolvedAt: at.toISOString() }) }),
  ...Option.match(record.ledger, { onNone: () => ({}), onSome: (ledger) => ({ ledger }) }),
  ...(record.confirmations === undefined ? {} : { confirmations: record.confirmations }),
  ...Option.match(record.feeChargedStroops, { onNone: () => ({}), onSome: (fee) => ({ feeStroops: fee.toString() }) }),
  ...(record.isWatched === true ? { authorizationLivesUntilLedger: record.authorizationExpiresLedger } : {}),
  ...Option.match(record.reason, {
    onNone: () => ({}),
    onSome: (reason) => ({
      errorReason: encodeReason(reason, dialect),
      ...Option.match(record.reasonMessage, { onNone: () => ({}), onSome: whyFailed })
    })
  })
})

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
