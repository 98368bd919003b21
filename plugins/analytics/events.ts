// GET /analytics/v1/events: settlements as they happen, all or only those of the caller's key, as server-sent events
// that a client resumes by `Last-Event-ID`. An event contains the list view of the settlement at the time of sending;
// addresses are redacted as everywhere in analytics.
import { Effect, Option } from "effect"
import type { HttpServerRequest } from "effect/http"
import { WireVocabulary } from "../../kernel/config/WireVocabulary.ts"
import { encodeReason } from "../../kernel/Dialect.ts"
import { Authentication } from "../../kernel/http/Authentication.ts"
import { unauthorized } from "../../kernel/http/httpMiddleware.ts"
import { addRoutes, route } from "../../kernel/http/Route.ts"
import { answerStream, cursorOf, refusedCursor } from "../../kernel/payment/http/EventRoutes.ts"
import { EventStreams } from "../../kernel/payment/http/EventStreams.ts"
import type { SettlementEvent } from "../../kernel/settlement/operators/SettlementEvents.ts"
import * as routes from "./description.ts"
import { Amounts } from "./reports/Amounts.ts"
import { Redaction } from "./reports/Redaction.ts"
import type { SettlementUpdates } from "./reports/ReportWire.ts"
import { Spelling } from "./reports/Spelling.ts"

export const addEventsRoute = Effect.gen(function* () {
  const callers = yield* Authentication
  const streams = yield* EventStreams
  const amounts = yield* Amounts
  const { show } = yield* Redaction
  const { network } = yield* Spelling
  const [dialect] = (yield* WireVocabulary).dialects

  const newsOf = ({ at, settlement }: SettlementEvent): typeof SettlementUpdates.Type => ({
    id: settlement.id,
    at: at.toISOString(),
    state: settlement.state,
    network: network(settlement.network),
    scheme: settlement.scheme,
    ...amounts.name(settlement.asset),
    payer: show(settlement.payer),
    pay_to: show(settlement.payTo),
    amount: Option.getOrElse(settlement.amountTransferred, () => settlement.amount).toString(),
    transaction_hash: Option.getOrElse(settlement.transaction, () => settlement.innerHash),
    recorded_at: settlement.recordedAt.toISOString(),
    resolved_at: Option.getOrNull(Option.map(settlement.resolvedAt, (time) => time.toISOString())),
    ledger: Option.getOrNull(settlement.ledger),
    fee_stroops: Option.getOrNull(Option.map(settlement.feeChargedStroops, String)),
    error_reason: Option.getOrNull(Option.map(settlement.reason, (word) => encodeReason(word, dialect)))
  })

  const follow = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest) {
    const reader = callers.reader(request)
    if (Option.isNone(reader)) return unauthorized
    const { only, source } = reader.value
    const cursor = cursorOf(request)
    if (Option.isNone(cursor)) return refusedCursor
    // A stream of all settlements ends when its key is restricted to its own payments.
    const isListed = () => Option.exists(callers.reader(request), (now) => now.only === only)
    const whose = only === undefined ? {} : { principal: only }
    const follower = { whose, source: `events ${source}`, isListed, dataOf: newsOf }
    return yield* answerStream(streams, follower, cursor.value)
  })
  yield* addRoutes(routes.group, [route(routes.events, follow)])
})
