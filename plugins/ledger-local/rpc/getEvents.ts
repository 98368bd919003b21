// getEvents: contract events of a range of ledgers, by contract and by topic. Five filters, each with five contracts
// and five topic patterns of up to four segments; `*` matches any one segment, a trailing `**` any number more. Fee
// events sort before and after all transactions of their ledger.
import { EventType } from "../engine/xdr/types.ts"
import { decodeStrKey, encodeStrKey } from "../engine/xdr/StrKey.ts"
import { codec, type ContractEvent } from "../engine/xdr/Xdr.ts"
import type { LedgerRecord } from "../node/History.ts"
import { fromBase64, toBase64 } from "../node/text.ts"
import { codecs, type TransactionMeta } from "../transaction/Wire.ts"
import { checkFormat, count, list, object, page, type Params, paramsOf, text } from "./params.ts"
import { invalidParams, invalidRequest } from "./RpcError.ts"
import { ledgerOf, toid, TRANSACTION_MAX } from "./getTransaction.ts"
import { rangeFields, type View } from "./View.ts"

const EVENTS_DEFAULT = 100
const EVENTS_MAX = 10_000
const SCAN_LEDGERS_MAX = 10_000
const FILTERS_MAX = 5
const CONTRACTS_MAX = 5
const TOPICS_MAX = 5
const SEGMENTS_MAX = 4

interface Filter {
  readonly types: ReadonlySet<number>
  readonly contracts: ReadonlySet<string>
  readonly topics: ReadonlyArray<ReadonlyArray<string>>
}

interface LedgerEvent {
  readonly event: ContractEvent
  readonly order: bigint
  readonly index: number
  readonly operation: number
  readonly transaction: number
  readonly hash: string
  readonly succeeded: boolean
}

const eventTypes = new Map([
  ["system", 0],
  ["contract", 1]
])

const readTopic = (value: unknown, index: number): ReadonlyArray<string> => {
  if (!Array.isArray(value) || !value.every((segment) => typeof segment === "string"))
    throw invalidParams(`invalid parameters: topic ${index} is a list of texts`)
  const problem = (message: string) => invalidParams(`topic ${index} invalid: ${message}`)
  if (value.length === 0) throw problem("topic must have at least one segment")
  const fixed = value.at(-1) === "**" ? value.slice(0, -1) : value
  if (fixed.length > SEGMENTS_MAX) throw problem(`topic cannot have more than ${SEGMENTS_MAX} segments`)
  for (const [i, segment] of fixed.entries()) {
    if (segment === "*") continue
    try {
      codec.ScVal.decode(fromBase64(segment)!)
    } catch {
      throw problem(
        `segment ${i} invalid: ${segment === "**" ? "wildcard '**' is only allowed at the end" : "invalid xdr"}`
      )
    }
  }
  return value
}

const readFilter = (value: unknown, index: number): Filter => {
  const filter = paramsOf(value)
  const problem = (message: string) => invalidParams(`filter ${index} invalid: ${message}`)
  const types = text(filter, "type")
    .split(",")
    .filter((type) => type !== "")
  if (!types.every((type) => eventTypes.has(type)))
    throw problem("filter type invalid: if set, type must be either 'system' or 'contract'")
  const contracts = list(filter, "contractIds")
  if (contracts.length > CONTRACTS_MAX) throw problem(`maximum ${CONTRACTS_MAX} contract IDs per filter`)
  for (const [i, contract] of contracts.entries()) {
    if (typeof contract !== "string" || decodeStrKey("contract", contract) === undefined)
      throw problem(`contract ID ${i} invalid`)
  }
  const topics = list(filter, "topics")
  if (topics.length > TOPICS_MAX) throw problem(`maximum ${TOPICS_MAX} topics per filter`)
  return {
    types: new Set(types.map((type) => eventTypes.get(type)!)),
    contracts: new Set(contracts as ReadonlyArray<string>),
    topics: topics.map(readTopic)
  }
}

const matchesTopic = (pattern: ReadonlyArray<string>, topics: ReadonlyArray<string>): boolean => {
  const open = pattern.at(-1) === "**"
  const fixed = open ? pattern.slice(0, -1) : pattern
  if (open ? topics.length < fixed.length : topics.length !== fixed.length) return false
  return fixed.every((segment, i) => segment === "*" || segment === topics[i])
}

const matches = (filter: Filter, event: ContractEvent, topics: ReadonlyArray<string>): boolean => {
  if (filter.types.size > 0 && !filter.types.has(event.type)) return false
  if (
    filter.contracts.size > 0 &&
    (event.contractId === null || !filter.contracts.has(encodeStrKey("contract", event.contractId)))
  )
    return false
  return filter.topics.length === 0 || filter.topics.some((pattern) => matchesTopic(pattern, topics))
}

const eventsOf = (record: LedgerRecord): ReadonlyArray<LedgerEvent> => {
  const before: Array<LedgerEvent> = []
  const during: Array<LedgerEvent> = []
  const after: Array<LedgerEvent> = []
  for (const transaction of record.transactions) {
    const meta: TransactionMeta = codecs.TransactionMeta.decode(transaction.meta)
    if (meta.v !== 4) continue
    const origin = {
      transaction: transaction.order,
      hash: transaction.hash,
      succeeded: transaction.succeeded,
      operation: 0
    }
    for (const { stage, event } of meta.v4.events) {
      const into = stage === 0 ? before : after
      into.push({
        ...origin,
        event,
        index: into.length,
        order: toid(record.sequence, stage === 0 ? 0 : TRANSACTION_MAX, 0)
      })
    }
    for (const [operation, { events }] of meta.v4.operations.entries()) {
      for (const [index, event] of events.entries()) {
        during.push({ ...origin, event, index, operation, order: toid(record.sequence, transaction.order, operation) })
      }
    }
  }
  return [...before, ...during, ...after]
}

const idOf = ({ order, index }: LedgerEvent): string =>
  `${order.toString().padStart(19, "0")}-${index.toString().padStart(10, "0")}`

const item = (record: LedgerRecord, ledgerEvent: LedgerEvent, topics: ReadonlyArray<string>) => {
  const { event } = ledgerEvent
  return {
    type: event.type === EventType.system ? "system" : "contract",
    ledger: record.sequence,
    ledgerClosedAt: new Date(Number(record.closeTime) * 1_000).toISOString().replace(".000Z", "Z"),
    contractId: event.contractId === null ? "" : encodeStrKey("contract", event.contractId),
    id: idOf(ledgerEvent),
    operationIndex: ledgerEvent.operation,
    transactionIndex: ledgerEvent.transaction,
    inSuccessfulContractCall: ledgerEvent.succeeded,
    txHash: ledgerEvent.hash,
    topic: topics,
    value: toBase64(codec.ScVal.encode(event.body.v0.data))
  }
}

interface Range {
  readonly start: number
  /** Exclusive. */
  readonly end: number
  readonly afterId: string
}

const readRange = ({ ledger, latest }: View, params: Params, cursor: string): Range => {
  const startLedger = count(params, "startLedger")
  const endLedger = count(params, "endLedger")
  const oldest = ledger.history.oldest.sequence
  if (cursor !== "" && (startLedger !== 0 || endLedger !== 0))
    throw invalidParams("ledger ranges and cursor cannot both be set")
  if (cursor !== "" && !/^[0-9]{1,19}-[0-9]{1,10}$/.test(cursor)) throw invalidParams(`invalid event id ${cursor}`)
  if (cursor === "" && startLedger === 0) throw invalidParams("startLedger must be positive")
  if (endLedger !== 0 && endLedger <= startLedger) throw invalidParams("endLedger must be after startLedger")
  const start = cursor === "" ? startLedger : ledgerOf(BigInt(cursor.split("-")[0]!))
  if (start < oldest || start > latest.sequence) {
    throw invalidRequest(`startLedger must be within the ledger range: ${oldest} - ${latest.sequence}`)
  }
  const scanEnd = Math.min(start + SCAN_LEDGERS_MAX, latest.sequence + 1)
  const [order, index] = cursor === "" ? ["", ""] : cursor.split("-")
  return {
    start,
    end: endLedger === 0 ? scanEnd : Math.min(endLedger, scanEnd),
    afterId: cursor === "" ? "" : `${order!.padStart(19, "0")}-${index!.padStart(10, "0")}`
  }
}

export const getEvents = (view: View, params: Params) => {
  checkFormat(params)
  const values = list(params, "filters")
  if (values.length > FILTERS_MAX) throw invalidParams(`maximum ${FILTERS_MAX} filters per request`)
  const filters = values.map((value, i) => readFilter(value, i + 1))
  object(params, "pagination")
  const { cursor, limit } = page(params, EVENTS_DEFAULT, EVENTS_MAX)
  const { start, end, afterId } = readRange(view, params, cursor)
  const events: Array<ReturnType<typeof item>> = []
  let isFull = false
  for (const record of view.ledger.history.from(start)) {
    if (record.sequence >= end || isFull) break
    for (const ledgerEvent of eventsOf(record)) {
      if (afterId !== "" && idOf(ledgerEvent) <= afterId) continue
      const topics = ledgerEvent.event.body.v0.topics.map((topic) => toBase64(codec.ScVal.encode(topic)))
      if (filters.length > 0 && !filters.some((filter) => matches(filter, ledgerEvent.event, topics))) continue
      events.push(item(record, ledgerEvent, topics))
      if (events.length < limit) continue
      isFull = true
      break
    }
  }
  const last = isFull ? events.at(-1)!.id : `${(toid(end, 0, 0) - 1n).toString().padStart(19, "0")}-4294967295`
  return { events, cursor: last, ...rangeFields(view) }
}
