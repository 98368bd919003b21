// Operator access to deliveries through the database: receivers' status, and replay of events. A running facilitator
// sends the due events within a second.
import { Effect } from "effect"
import { SettlementEvents } from "../../kernel/settlement/operators/SettlementEvents.ts"
import { Config, receiverNamed } from "./Config.ts"
import { Deliveries } from "./Deliveries.ts"

/** Events made due per statement. */
const pageMax = 500

/** Every receiver with deliveries, pending or past. */
export const receiverStatuses = Effect.flatMap(Deliveries, (deliveries) => deliveries.receiverStatuses)

/** Enables a receiver that its 410 had disabled; returns whether it was disabled. */
export const enable = Effect.fn("Webhooks.enable")(function* (name: string) {
  yield* receiverNamed((yield* Config).receivers, name)
  return yield* (yield* Deliveries).enable(name)
})

/** Makes a receiver's events since a time due again, optionally of one settlement; returns the number of events. */
export const replay = Effect.fn("Webhooks.replay")(function* (
  name: string,
  what: { readonly since: Date; readonly settlement: string | undefined }
) {
  const { receivers } = yield* Config
  const receiver = yield* receiverNamed(receivers, name)
  const events = yield* SettlementEvents
  const deliveries = yield* Deliveries
  // An operator's replay does not wait for a pause that the receiver asked for.
  yield* deliveries.resume(name)
  const whose = receiver.principal === undefined ? {} : { principal: receiver.principal }
  let cursor = yield* events.before(whose, what.since)
  let count = 0
  while (true) {
    const page = yield* events.after(whose, cursor, pageMax)
    const replayable = page.events.filter(
      ({ settlement }) => what.settlement === undefined || settlement.id === what.settlement
    )
    count += yield* deliveries.replay(name, replayable)
    if (page.isEnd) return count
    cursor = page.next
  }
})
