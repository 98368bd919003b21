// Token movements as contract events tell them, in the forms of the token standard: `transfer`, and the issuer's `mint`
// and `burn`. Data is an i128 or a map that carries `amount`. An event in any other form is not a movement for us; one
// that calls itself a transfer and cannot be read is reported as such, never skipped silently.
import { StrKey, xdr } from "@stellar/stellar-sdk/base"

/** A token movement as a contract event tells it. `mint` and `burn` events are transfers from or to the issuer. */
export interface TransferEvent {
  /** Address of the token contract that emitted it, C… */
  readonly contract: string
  /** G… or C… */
  readonly from: string
  readonly to: string
  readonly amount: bigint
}

export type ContractEvent = xdr.ContractEventWire

/** What one contract event is. `Unreadable`: claims to move tokens, in a form we do not know. */
export type ReadEvent =
  | {
      readonly _tag: "Moved"
      readonly transfer: TransferEvent
      readonly kind: "transfer" | "mint" | "burn" | "clawback"
    }
  | { readonly _tag: "Other"; readonly contract: string | undefined }
  | { readonly _tag: "Unreadable"; readonly contract: string | undefined }

const text = new TextDecoder()

const symbolOf = (value: xdr.ScValWire | undefined): string | undefined => {
  if (value === undefined || value.type !== 15) return undefined
  const raw = value.sym as unknown
  return typeof raw === "string"
    ? raw
    : text.decode((raw as { readonly bytes?: Uint8Array }).bytes ?? (raw as Uint8Array))
}

/** An address as text; None for kinds that hold no balance. */
export const addressText = (address: xdr.ScAddressWire): string | undefined => {
  switch (address.type) {
    case 0:
      return StrKey.encodeEd25519PublicKey((address.accountId as { readonly ed25519: Uint8Array }).ed25519)
    case 1:
      return StrKey.encodeContract(address.contractId as Uint8Array)
    default:
      return undefined
  }
}

const addressOf = (value: xdr.ScValWire | undefined): string | undefined =>
  value !== undefined && value.type === 18 ? addressText(value.address) : undefined

const i128Of = (value: xdr.ScValWire | undefined): bigint | undefined =>
  value !== undefined && value.type === 10
    ? (BigInt(value.i128.hi) << 64n) + BigInt.asUintN(64, BigInt(value.i128.lo))
    : undefined

const amountOf = (data: xdr.ScValWire): bigint | undefined =>
  data.type === 17 ? i128Of(data.map?.find(({ key }) => symbolOf(key) === "amount")?.val) : i128Of(data)

/** The muxed id of the destination, when the event's data names one. */
export const hasMuxedDestination = (event: ContractEvent): boolean => {
  const { data } = event.body.v0
  return data.type === 17 && data.map?.some(({ key }) => symbolOf(key) === "to_muxed_id") === true
}

/** Reads one event. `issuer` of a mint or burn is left empty: the event does not name it. */
export const readEvent = (event: ContractEvent): ReadEvent => {
  const contract = event.contractId === null ? undefined : StrKey.encodeContract(event.contractId as Uint8Array)
  const { data, topics } = event.body.v0
  const kind = event.type === 1 ? symbolOf(topics[0]) : undefined
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
