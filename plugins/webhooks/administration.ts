// What an operator does to deliveries, over the database alone: see how receivers stand, and have events told again. A
// facilitator that runs sends what became due within a second.
import { Effect } from "effect"
import { SettlementEvents } from "../../kernel/settlement/operators/SettlementEvents.ts"
import { Config, receiverNamed } from "./Config.ts"
import { Deliveries } from "./Deliveries.ts"

/** Events made due in one statement. */
const pageMax = 500

/** Every receiver that is owed or was told something. */
export const receiverStatuses = Effect.flatMap(Deliveries, (deliveries) => deliveries.receiverStatuses)

/** Tells a receiver again what happened since a time, of one settlement when it is given; how many events. */
export const replay = Effect.fn("Webhooks.replay")(function* (
  name: string,
  what: { readonly since: Date; readonly settlement: string | undefined }
) {
  const { receivers } = yield* Config
  const receiver = yield* receiverNamed(receivers, name)
  const events = yield* SettlementEvents
  const deliveries = yield* Deliveries
  const whose = receiver.principal === undefined ? {} : { principal: receiver.principal }
  let cursor = yield* events.before(whose, what.since)
  let count = 0
  while (true) {
    const page = yield* events.after(whose, cursor, pageMax)
    const asked = page.events.filter(
      ({ settlement }) => what.settlement === undefined || settlement.id === what.settlement
    )
    count += yield* deliveries.replay(name, asked)
    if (page.isEnd) return count
    cursor = page.next
  }
})
