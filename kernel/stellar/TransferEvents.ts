// Token movements decoded from contract events, in the forms of the token standard: `transfer`, and the issuer's `mint`
// and `burn`. Data is an i128 or a map that carries `amount`. An event in any other form is not a movement. An event
// that claims to be a transfer and cannot be decoded is reported as such, never skipped silently.
import { xdr } from "@stellar/stellar-sdk/base"
import { contractIdOf, contractTextOf } from "./Address.ts"
import { eventKind, metaKind } from "./kinds.ts"
import { readXdr } from "./readXdr.ts"
import { addressOf, fieldsOf, i128Of, symbolOf, type Value } from "./Value.ts"

/** A token movement of a contract event. `mint` and `burn` events are transfers from or to the issuer. */
export interface TransferEvent {
  /** Address of the token contract that emitted it, C… */
  readonly contract: string
  /** G… or C… */
  readonly from: string
  readonly to: string
  readonly amount: bigint
}

export type ContractEvent = xdr.ContractEventWire

/** The kinds of a contract event. `Unreadable`: claims to move tokens, in an unknown form. */
export type ReadEvent =
  | {
      readonly _tag: "Moved"
      readonly transfer: TransferEvent
      readonly kind: "transfer" | "mint" | "burn" | "clawback"
    }
  | { readonly _tag: "Other"; readonly contract: string | undefined }
  | { readonly _tag: "Unreadable"; readonly contract: string | undefined }

const amountOf = (data: Value): bigint | undefined => {
  const fields = fieldsOf(data)
  return fields === undefined ? i128Of(data) : i128Of(fields.get("amount"))
}

/** Whether a contract published it, rather than the host itself. */
export const isPublished = (event: ContractEvent): boolean => event.type === eventKind.contract

/** An event of a contract from its parts, in the form of a node's answer. */
export const publishedEvent = (contractId: string, topics: ReadonlyArray<Value>, data: Value): ContractEvent => ({
  ext: { v: 0 },
  contractId: contractIdOf(contractId),
  type: eventKind.contract,
  body: { v: 0, v0: { topics: [...topics], data } }
})

/** The events of the successful calls in a simulation, in order; throws on bytes that are not events. */
export const eventsOfCalls = (eventsXdr: ReadonlyArray<Uint8Array>): ReadonlyArray<ContractEvent> =>
  eventsXdr.flatMap((bytes) => {
    const { event, inSuccessfulContractCall } = readXdr(xdr.DiagnosticEvent.schema, bytes)
    return inSuccessfulContractCall ? [event] : []
  })

/** The contract events of a transaction's operations, in order; undefined if we cannot read the kind of its meta. */
export const contractEventsIn = (
  meta: xdr.TransactionMetaWire | undefined
): ReadonlyArray<ContractEvent> | undefined => {
  switch (meta?.v) {
    case metaKind.v4:
      return meta.v4.operations.flatMap((operation) => operation.events)
    case metaKind.v3:
      return meta.v3.sorobanMeta?.events ?? []
    default:
      return undefined
  }
}

/** The changes of entries by a transaction's operations, in order; undefined if we cannot read the kind of its meta. */
export const entryChangesIn = (
  meta: xdr.TransactionMetaWire | undefined
): ReadonlyArray<xdr.LedgerEntryChangeWire> | undefined => {
  switch (meta?.v) {
    case metaKind.v4:
      return meta.v4.operations.flatMap(({ changes }) => changes)
    case metaKind.v3:
      return meta.v3.operations.flatMap(({ changes }) => changes)
    default:
      return undefined
  }
}

/** Reads one event. `issuer` of a mint or burn is left empty, because the event does not contain it. */
export const readEvent = (event: ContractEvent): ReadEvent => {
  const contract = event.contractId === null ? undefined : contractTextOf(event.contractId as Uint8Array)
  const { data, topics } = event.body.v0
  const kind = isPublished(event) ? symbolOf(topics[0]) : undefined
  if (kind !== "transfer" && kind !== "mint" && kind !== "burn" && kind !== "clawback")
    return { _tag: "Other", contract }
  const first = addressOf(topics[1])
  const second = addressOf(topics[2])
  const amount = amountOf(data)
  if (contract === undefined || amount === undefined || first === undefined) return { _tag: "Unreadable", contract }
  switch (kind) {
    case "transfer":
      return second === undefined
        ? { _tag: "Unreadable", contract }
        : { _tag: "Moved", kind, transfer: { contract, from: first, to: second, amount } }
    case "mint":
      return { _tag: "Moved", kind, transfer: { contract, from: "", to: first, amount } }
    default:
      return { _tag: "Moved", kind, transfer: { contract, from: first, to: "", amount } }
  }
}
