// What an operator does to deliveries, over the database alone: see how receivers stand, and have events told again. A
// facilitator that runs sends what became due within a second.
import { Effect, Schema } from "effect"
import { SettlementEvents } from "../../kernel/settlement/SettlementEvents.ts"
import { Config } from "./Config.ts"
import { Deliveries } from "./Deliveries.ts"

/** Events made due in one statement. */
const pageMax = 500

/** No receiver of that name is in the settings. */
export class NoSuchReceiver extends Schema.TaggedError<NoSuchReceiver>()("NoSuchReceiver", {
  message: Schema.String
}) {}

/** Every receiver that is owed or was told something. */
export const standings = Effect.flatMap(Deliveries, (deliveries) => deliveries.standings)

/** Tells a receiver again what happened since a time, of one settlement when it is given; how many events. */
export const replay = Effect.fn("Webhooks.replay")(function* (
  name: string,
  what: { readonly since: Date; readonly settlement: string | undefined }
) {
  const { receivers } = yield* Config
  const receiver = receivers.find((one) => one.name === name)
  if (receiver === undefined)
    return yield* new NoSuchReceiver({ message: `no receiver of the settings is named ${name}` })
  const events = yield* SettlementEvents
  const deliveries = yield* Deliveries
  const whose = receiver.principal === undefined ? {} : { principal: receiver.principal }
  let position = yield* events.before(whose, what.since)
  let count = 0
  while (true) {
    const page = yield* events.after(whose, position, pageMax)
    const asked = page.filter(({ settlement }) => what.settlement === undefined || settlement.id === what.settlement)
    count += yield* deliveries.replay(name, asked)
    if (page.length < pageMax) return count
    position = page.at(-1)!.position
  }
})
