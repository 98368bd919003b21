// `tollkeeper webhooks`: status of webhook receivers, and replay of events. It only needs the database. The running
// facilitator, or the next one, sends the due events. The running one also loads new secrets.
import { Clock, Context, Effect, Layer, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import type { SqlClient } from "effect/sql"
import { linesOf, requireAll } from "../../kernel/accounts/KeyRevisions.ts"
import { CurrentPlugin } from "../../kernel/contract/Contract.ts"
import { SettlementEvents } from "../../kernel/settlement/operators/SettlementEvents.ts"
import { administration, SigningSecrets } from "../../plugins/webhooks/plugin.ts"
import { rereadSecrets } from "../rereadSecrets.ts"
import { StateRefused } from "../state.ts"
import {
  answer,
  jsonFlag,
  noted,
  type CommandTarget,
  placeFlags,
  databaseStatus,
  tablesOf,
  byPerson,
  reasonFlag,
  whyFlag,
  Within
} from "./CommandTarget.ts"

const tablesAt = (place: CommandTarget) =>
  administration.layer.pipe(
    Layer.provide(Layer.succeed(CurrentPlugin, "webhooks")),
    Layer.provideMerge(databaseStatus(SettlementEvents.layer.pipe(Layer.provideMerge(tablesOf(place, "webhooks")))))
  )

const list = Command.make("list", { ...placeFlags(), json: jsonFlag }, ({ json, ...place }) =>
  Effect.gen(function* () {
    const all = yield* administration.receiverStatuses
    const lines = all.map(
      ({ delivered, disabled_at, due, given_up, last_answer, oldest_due, receiver, resting_until }) =>
        [
          receiver,
          `${due} due${oldest_due === null ? "" : ` since ${oldest_due.toISOString()}`}`,
          `${delivered} delivered`,
          `${given_up} given up`,
          ...(last_answer === null ? [] : [`last answer ${last_answer}`]),
          ...(disabled_at === null
            ? []
            : [`DISABLED since ${disabled_at.toISOString()}: it answered 410 (\`webhooks enable ${receiver}\`)`]),
          ...(resting_until === null
            ? []
            : [`asked for a pause until ${resting_until.toISOString()}; a replay ends it`])
        ].join("  ")
    )
    yield* answer(json, all, all.length === 0 ? ["nothing was sent to any receiver yet"] : lines)
  }).pipe(Effect.provide(tablesAt(place)))
).pipe(Command.withDescription("Status of receivers: events due, delivered, given up"))

const receiverArgument = Argument.String("receiver").pipe(
  Argument.withDescription("Its name in webhooks.receivers, or its key")
)

const replay = Command.make(
  "replay",
  {
    ...placeFlags(),
    json: jsonFlag,
    receiver: receiverArgument,
    hours: Flag.Int("hours").pipe(Flag.withDescription("How far back"), Flag.withDefault(24)),
    reason: whyFlag,
    settlement: Flag.String("settlement").pipe(Flag.withDescription("The id of one settlement"), Flag.optional)
  },
  ({ hours, json, reason, receiver, settlement, ...place }) =>
    Effect.gen(function* () {
      const since = new Date((yield* Clock.currentTimeMillis) - hours * 3_600_000)
      const count = yield* noted({ action: "replay", subject: `webhooks ${receiver}`, reason })(
        administration.replay(receiver, { since, settlement: Option.getOrUndefined(settlement) }),
        (count) => ({ after: `${count} due again` })
      )
      yield* answer(json, { receiver, count }, [
        `${count} event${count === 1 ? " is" : "s are"} due to ${receiver} again`
      ])
    }).pipe(Effect.provide(tablesAt(place)))
).pipe(Command.withDescription("Send a receiver its events again, also within a pause that it asked for"))

const enable = Command.make(
  "enable",
  { ...placeFlags(), json: jsonFlag, reason: whyFlag, receiver: receiverArgument },
  ({ json, reason, receiver, ...place }) =>
    Effect.gen(function* () {
      const wasDisabled = yield* noted({ action: "enable", subject: `webhooks ${receiver}`, reason })(
        administration.enable(receiver),
        (wasDisabled) => ({ before: wasDisabled ? "disabled" : "enabled", after: "enabled" })
      )
      yield* answer(json, { receiver, wasDisabled }, [
        wasDisabled ? `${receiver} gets its due events again, within a second` : `${receiver} was not disabled`
      ])
    }).pipe(Effect.provide(tablesAt(place)))
).pipe(Command.withDescription("Re-enable a receiver that was disabled because it answered 410"))

const immediateFlag = Flag.Boolean("at-once").pipe(
  Flag.withDescription("Rotate although no previous secret is left: messages are refused until the receiver has it"),
  Flag.withDefault(false)
)

const rotate = Command.make(
  "rotate",
  { ...placeFlags(), json: jsonFlag, reason: reasonFlag, isImmediate: immediateFlag, receiver: receiverArgument },
  Effect.fn(function* ({ isImmediate, json, reason, receiver, ...place }) {
    const within = yield* Within
    const secrets = Option.flatMap(Option.fromUndefinedOr(within), ({ services }) =>
      Context.getOption(services, SigningSecrets)
    )
    if (Option.isNone(secrets))
      return yield* new StateRefused({
        message: `no facilitator with webhooks runs over ${place.state}; name another folder with --state DIR`
      })
    const rotated = yield* noted({ action: "rotate", subject: `webhooks ${receiver}`, reason })(
      secrets.value.rotate(receiver, isImmediate),
      ({ added, gone, signing }) => ({ after: `${signing} sign, ${added} new, ${gone} gone` })
    ).pipe(Effect.provide(within!.services as Context.Context<SqlClient.SqlClient>))
    const { added, gone, signing } = rotated
    const next =
      signing > 1
        ? "move the receiver to the new one, then take the old one out and rotate again"
        : "messages carry this one signature"
    const signs = signing === 1 ? "1 secret signs" : `${signing} secrets sign`
    const replicas = yield* rereadSecrets(
      within!.services,
      { part: "webhooks", name: receiver, withoutOverlap: isImmediate },
      { ...(yield* byPerson), reason }
    )
    yield* answer(json, { receiver, ...rotated, replicas }, [
      `${signs} messages to ${receiver}: ${added} new, ${gone} gone; ${next}`,
      ...linesOf(replicas.slice(1))
    ])
    yield* requireAll(replicas)
  })
).pipe(Command.withDescription("Rotate to the secrets in a receiver's source, without a restart"))

export const webhooks = Command.make("webhooks").pipe(
  Command.withDescription("Webhook receivers: status, enabling, replay and secret rotation"),
  Command.withSubcommands([list, enable, replay, rotate])
)
