// The events that one contract published from a ledger on, page after page. Only a complete answer counts: it has every
// event of every ledger up to its newest ledger, or the reading fails. A node with a later history, or a node that is
// behind the requested ledger, refuses by itself.
import { xdr } from "@stellar/stellar-sdk/base"
import { Effect, type Schema } from "effect"
import { type ContractEvent, publishedEvent } from "../stellar/TransferEvents.ts"
import type { Value } from "../stellar/Value.ts"
import { decodeWith } from "./ledgerEntries.ts"
import { type EventsAnswer, LedgerUnavailable } from "./LedgerRpc.ts"
import { GetEvents } from "./LedgerWire.ts"

/** Events of one page, and pages of one reading. */
const pageMax = 1_000
const pagesMax = 10
/** Maximum number of ledgers that a node scans at a time; a longer reading would end before the newest one. */
const ledgersMax = 10_000

type Ask = <A>(method: string, params: unknown, answer: Schema.Codec<A, any>) => Effect.Effect<A, LedgerUnavailable>
type Item = NonNullable<(typeof GetEvents.Type)["events"]>[number]

const contradiction = (message: string) => new LedgerUnavailable({ operation: "getEvents", message })

const eventOf = ({ contractId, topic, value }: Item): ContractEvent | undefined => {
  const data = decodeWith(xdr.ScVal.schema, value)
  const topics = topic.map((one) => decodeWith(xdr.ScVal.schema, one))
  return data === undefined || topics.includes(undefined)
    ? undefined
    : publishedEvent(contractId, topics as ReadonlyArray<Value>, data)
}

/** `ask` calls an endpoint that answers. */
export const readContractEvents = (ask: Ask) =>
  Effect.fnUntraced(function* (
    contract: string,
    fromLedger: number
  ): Effect.fn.Return<EventsAnswer, LedgerUnavailable> {
    const events: Array<EventsAnswer["events"][number]> = []
    const filters = [{ type: "contract", contractIds: [contract] }]
    let cursor: string | undefined
    let latestLedger = 0
    for (let page = 0; page < pagesMax; page++) {
      const where =
        cursor === undefined
          ? { startLedger: fromLedger, pagination: { limit: pageMax } }
          : { pagination: { cursor, limit: pageMax } }
      const answer: typeof GetEvents.Type = yield* ask("getEvents", { filters, ...where }, GetEvents)
      // Beyond the first page's newest ledger, the events of a later page may be incomplete.
      latestLedger = page === 0 ? answer.latestLedger : Math.min(latestLedger, answer.latestLedger)
      if (latestLedger - fromLedger >= ledgersMax) return yield* contradiction("more ledgers than one reading covers")
      for (const one of answer.events ?? []) {
        if (one.contractId !== contract || one.ledger < fromLedger)
          return yield* contradiction("an event that was not asked for")
        const event = eventOf(one)
        if (event === undefined) return yield* contradiction("an event that is not XDR")
        events.push({ ledger: one.ledger, event })
      }
      if ((answer.events ?? []).length < pageMax) return { latestLedger, events }
      if (answer.cursor === undefined) return yield* contradiction("a full page without a cursor")
      cursor = answer.cursor
    }
    return yield* contradiction("more events than one reading covers")
  })
