// `tollkeeper webhooks`: how receivers of webhooks stand, and events told again, over the database alone. A facilitator
// that runs, or the next one, sends what became due.
import { Clock, Effect, Layer, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import * as Migrations from "../../kernel/database/Migrations.ts"
import { CurrentPlugin } from "../../kernel/Plugin.ts"
import { SettlementEvents } from "../../kernel/settlement/SettlementEvents.ts"
import { administration } from "../../plugins/webhooks/plugin.ts"
import { answer, jsonFlag, kernelTables, type Place, placeFlags, standing } from "./place.ts"

const tablesAt = (place: Place) =>
  administration.layer.pipe(
    Layer.provide(Layer.succeed(CurrentPlugin, "webhooks")),
    Layer.provideMerge(
      standing(
        SettlementEvents.layer.pipe(
          Layer.provideMerge(Layer.effectDiscard(Migrations.run("webhooks"))),
          Layer.provideMerge(kernelTables(place))
        )
      )
    )
  )

const list = Command.make("list", { ...placeFlags(), json: jsonFlag }, ({ json, ...place }) =>
  Effect.gen(function* () {
    const all = yield* administration.standings
    const lines = all.map(({ delivered, due, given_up, last_answer, oldest_due, receiver }) =>
      [
        receiver,
        `${due} due${oldest_due === null ? "" : ` since ${oldest_due.toISOString()}`}`,
        `${delivered} delivered`,
        `${given_up} given up`,
        ...(last_answer === null ? [] : [`last answer ${last_answer}`])
      ].join("  ")
    )
    yield* answer(json, all, all.length === 0 ? ["no receiver was told anything yet"] : lines)
  }).pipe(Effect.provide(tablesAt(place)))
).pipe(Command.withDescription("How receivers stand: events due, delivered, given up"))

const replay = Command.make(
  "replay",
  {
    ...placeFlags(),
    json: jsonFlag,
    receiver: Argument.String("receiver").pipe(Argument.withDescription("Its name in webhooks.receivers, or its key")),
    hours: Flag.Int("hours").pipe(Flag.withDescription("How far back"), Flag.withDefault(24)),
    settlement: Flag.String("settlement").pipe(Flag.withDescription("The id of one settlement"), Flag.optional)
  },
  ({ hours, json, receiver, settlement, ...place }) =>
    Effect.gen(function* () {
      const since = new Date((yield* Clock.currentTimeMillis) - hours * 3_600_000)
      const count = yield* administration.replay(receiver, { since, settlement: Option.getOrUndefined(settlement) })
      yield* answer(json, { receiver, count }, [
        `${count} event${count === 1 ? " is" : "s are"} told to ${receiver} again`
      ])
    }).pipe(Effect.provide(tablesAt(place)))
).pipe(Command.withDescription("Tell a receiver again what happened"))

export const webhooks = Command.make("webhooks").pipe(
  Command.withDescription("Messages to sellers about their settlements"),
  Command.withSubcommands([list, replay])
)
