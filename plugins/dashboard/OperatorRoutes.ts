// Operators' routes below /dashboard/v1: status, one settlement's timeline, and actions. Reading requires an operator's
// key or session. Without any operator key, it requires a request from this machine. An action always requires an
// operator's key. The audit log records it before it runs, and its outcome afterwards.
import { Effect, Option, Schema } from "effect"
import { HttpRouter, type HttpServerRequest, type HttpServerResponse } from "effect/http"
import type { SqlError } from "effect/sql"
import { Network } from "../../kernel/config/Network.ts"
import { WireVocabulary } from "../../kernel/config/WireVocabulary.ts"
import { parseJson } from "../../kernel/http/BoundedJson.ts"
import { Authentication } from "../../kernel/http/Authentication.ts"
import { asksForCsv, listed } from "../../kernel/http/csv.ts"
import { json, operatorRequired, temporarilyUnavailable } from "../../kernel/http/httpMiddleware.ts"
import { Keys } from "../../kernel/http/Keys.ts"
import { queryOf, readQuery } from "../../kernel/http/readQuery.ts"
import { viaOf } from "../../kernel/http/Sessions.ts"
import { readBody } from "../../kernel/http/readBody.ts"
import { addRoutes, route } from "../../kernel/http/Route.ts"
import { PluginStates } from "../../kernel/plugin/PluginStates.ts"
import { ChannelActions } from "../../kernel/settlement/channels/ChannelActions.ts"
import { KeyRotation, type KeyAccounts } from "../../kernel/settlement/channels/KeyRotation.ts"
import { labelIssue, LiveLimits } from "../../kernel/settlement/operators/LiveLimits.ts"
import { OperatorAuditLog } from "../../kernel/settlement/operators/OperatorAuditLog.ts"
import { OperatorActions } from "../../kernel/settlement/operators/OperatorActions.ts"
import { OperatorReports } from "../../kernel/settlement/operators/OperatorReports.ts"
import * as routes from "./description.ts"
import { OperatorAction, type OperatorActionsPage, type Rotations } from "./OperatorWire.ts"
import { readStatus, reportHistory } from "./status.ts"

type Request = HttpServerRequest.HttpServerRequest
type Response = HttpServerResponse.HttpServerResponse

const bodyBytesMax = 4_096
/** Lists of the status that its CSV contains, one row per entry. */
const statusLists = ["in_flight", "without_end", "channels", "plugins", "actors"]
const movesMax = 100
const noteMax = 500
/** Maximum number of actions in a CSV. `before` pages to the rest. */
const exportedMax = 10_000

const notFound = json({ error: "not_found" }, { status: 404 })
const refused = (message: string, status = 400) => json({ error: "move_refused", message }, { status })

const wrongMove =
  "expected give-up with a settlement, limit with a name and value, resize-channels with a count, or rotate with " +
  "what and a plan; and a note"
const decodeMove = Schema.decodeUnknownOption(OperatorAction)

const signersText = ({ channels, sponsor }: KeyAccounts): string =>
  `sponsor ${sponsor}, channels from ${channels[0] ?? "none"}`

/** A refused action, with its reason as a sentence. */
class NotDone extends Schema.TaggedError<NotDone>()("NotDone", { message: Schema.String }) {}

const carry = Effect.gen(function* () {
  const channels = yield* ChannelActions
  const network = yield* Network
  const moves = yield* OperatorActions
  const limits = yield* LiveLimits
  const keys = yield* Keys
  const rotation = yield* KeyRotation
  const said = ({ message }: { readonly message: string }) => Effect.fail(new NotDone({ message }))
  return (move: typeof OperatorAction.Type): Effect.Effect<Change, NotDone | SqlError.SqlError> => {
    switch (move.move) {
      case "limit": {
        const change = { ...move, value: move.value === null ? undefined : BigInt(move.value) }
        const message = labelIssue(keys, change)
        return message === undefined
          ? limits.set(change).pipe(Effect.catchTag("LimitRefused", said))
          : said({ message })
      }
      case "give-up":
        return moves.giveUp(move.settlement, move.note).pipe(
          Effect.catchTag("ActionRefused", said),
          Effect.map(({ state }) => ({ before: "open", after: state }))
        )
      case "resize-channels":
        return move.count < 1 || move.count > network.channelCountMax
          ? said({ message: `the count must be from 1 to ${network.channelCountMax} channels` })
          : Effect.map(channels.resize(move.count), (before) => ({
              before: String(before ?? network.channelCount),
              after: String(move.count)
            }))
      case "rotate":
        return Effect.gen(function* () {
          const { before } = yield* rotation.plan(move.what)
          return { before: signersText(before), after: signersText(yield* rotation.rotate(move.what, move.plan)) }
        }).pipe(Effect.catchTags({ RotationRefused: said, VaultRefused: said, LedgerUnavailable: said }))
    }
  }
})

/** An action's subject in the audit log. */
const subjectOf = (move: typeof OperatorAction.Type): string => {
  switch (move.move) {
    case "limit":
      return move.key === undefined ? move.name : `${move.name} of key:${move.key}`
    case "give-up":
      return move.settlement
    case "resize-channels":
      return String(move.count)
    case "rotate":
      return move.what
  }
}

const toSigners = ({ channels, formerSponsors, sponsor }: KeyAccounts) => ({
  sponsor,
  former_sponsors: formerSponsors,
  channels
})

/** Reads the current effects of each rotation. The response reports a source that cannot be read. */
const readRotations = Effect.gen(function* () {
  const rotation = yield* KeyRotation
  const planOf = (what: "sponsor" | "channels") =>
    Effect.map(rotation.plan(what), ({ before, fault: error, id, next }) => ({
      what,
      plan: id,
      now: toSigners(before),
      next: toSigners(next),
      refused: error ?? null
    }))
  return Effect.map(Effect.all([planOf("sponsor"), planOf("channels")]), (items): typeof Rotations.Type => ({ items }))
})

/** The change that an action made, for the audit log. */
type Change = { readonly before?: string | undefined; readonly after: string }

const addMoves = Effect.gen(function* () {
  const log = yield* OperatorAuditLog
  const callers = yield* Authentication
  const keys = yield* Keys
  const run = yield* carry

  const move = Effect.fnUntraced(function* (request: Request) {
    if (!keys.operatorKeyed()) return refused("no operator key is configured; use the command line", 403)
    const by = callers.operator(request)
    if (Option.isNone(by)) return operatorRequired
    const body = yield* Effect.option(Effect.flatMap(readBody(request, bodyBytesMax), parseJson))
    const asked = Option.flatMap(body, decodeMove)
    if (Option.isNone(asked)) return refused(wrongMove)
    const { note } = asked.value
    if (note.trim() === "" || note.length > noteMax) return refused(`a note of 1 to ${noteMax} characters is required`)
    const entry = {
      person: by.value,
      via: viaOf(request),
      action: asked.value.move,
      subject: subjectOf(asked.value),
      reason: note
    }
    return yield* log
      .record(entry, run(asked.value), (change) => change)
      .pipe(
        Effect.as(json({ done: true })),
        Effect.catchTag("NotDone", ({ message }) => Effect.succeed(refused(message, 409)))
      )
  })

  const list = Effect.fnUntraced(function* (request: Request) {
    const query = readQuery(routes.moves.query, queryOf(request))
    const before = query.given("before")
    if (query.issues.length > 0) return refused(query.issues.join("; "))
    const rows = yield* log.list({
      before: before === undefined ? undefined : BigInt(before),
      limit: asksForCsv(request) ? exportedMax : movesMax
    })
    const items = rows.map(({ action, at, id, person, reason, ...row }) => ({
      ...row,
      id: id.toString(),
      at: at.toISOString(),
      by: person,
      move: action,
      note: reason
    }))
    return listed(request, { items } satisfies typeof OperatorActionsPage.Type)
  })

  yield* addRoutes(routes.group, [
    route(routes.move, (request) => answered(move(request))),
    route(routes.moves, (request) =>
      callers.mayOperate(request) ? answered(list(request)) : Effect.succeed(operatorRequired)
    )
  ])
})

const answered = <E>(answer: Effect.Effect<Response, E>): Effect.Effect<Response> =>
  Effect.catch(answer, (error) =>
    Effect.as(Effect.logError("the operator's pages could not ask the database", error), temporarilyUnavailable)
  )

export const addOperatorRoutes = Effect.gen(function* () {
  const callers = yield* Authentication
  const reports = yield* OperatorReports
  const network = yield* Network
  const [dialect] = (yield* WireVocabulary).dialects
  const plugins = yield* PluginStates
  const status = yield* readStatus
  const asOperator = (request: Request, answer: () => Effect.Effect<Response, unknown>) =>
    callers.mayOperate(request) ? answered(Effect.suspend(answer)) : Effect.succeed(operatorRequired)

  const life = Effect.fnUntraced(function* (id: string) {
    if (!/^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$|^[0-9a-f]{64}$/i.test(id)) return notFound
    const isEmbedded = plugins.all().some((one) => one.id === "ledger-local")
    return Option.match(yield* reports.life(id), {
      onNone: () => notFound,
      onSome: (life) => json(reportHistory(life, { assets: network.assets, dialect, isEmbedded }))
    })
  })
  const rotations = yield* readRotations
  const rotated = Effect.matchEffect(rotations, {
    onFailure: ({ message }) => Effect.succeed(json({ error: "rotation_unknown", message }, { status: 409 })),
    onSuccess: (body) => Effect.succeed(json(body))
  })
  yield* addRoutes(routes.group, [
    route(routes.standing, (request) =>
      asOperator(request, () => Effect.map(status, (body) => listed(request, body, statusLists)))
    ),
    route(routes.rotations, (request) => asOperator(request, () => rotated)),
    route(routes.life, (request) =>
      Effect.flatMap(HttpRouter.params, ({ id = "" }) => asOperator(request, () => life(id)))
    )
  ])
  yield* addMoves
})
