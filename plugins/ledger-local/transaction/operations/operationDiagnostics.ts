// A node's diagnostics about a failed contract operation, in addition to the contracts' diagnostics: the exceeded limit
// or insufficient fee, the archived entry, and the failure of the host function. In a failed operation no event counts
// as one of a successful call.
import { errorCodes, errorTypes, type HostErrorCode, type HostErrorType } from "../../engine/host/HostError.ts"
import { EntryType, EventType } from "../../engine/xdr/types.ts"
import { bytes, str, sym, u64, vec, VOID } from "../../engine/xdr/ScVal.ts"
import type { DiagnosticEvent, LedgerKey, ScError, ScVal } from "../../engine/xdr/Xdr.ts"
import type { RefundableFee } from "../RefundableFee.ts"

const diagnostic = (topics: ReadonlyArray<ScVal>, data: ScVal): DiagnosticEvent => ({
  inSuccessfulContractCall: false,
  event: {
    ext: { v: 0 },
    contractId: null,
    type: EventType.diagnostic,
    body: { v: 0, v0: { topics: [...topics], data } }
  }
})

const errorVal = (error: ScError): ScVal => ({ type: 2, error })

const hostError = (type: Exclude<HostErrorType, "Contract">, code: HostErrorCode): ScError =>
  ({ type: errorTypes.indexOf(type), code: errorCodes.indexOf(code) }) as ScError

const explained = (error: ScError, message: string, args: ReadonlyArray<ScVal>): DiagnosticEvent =>
  diagnostic([sym("error"), errorVal(error)], vec([str(message), ...args]))

/** A declared limit, or a fee, and by how much it was exceeded. */
export const exceeded = (message: string, used: bigint, declared: bigint): DiagnosticEvent =>
  explained(hostError("Budget", "ExceededLimit"), message, [u64(used), u64(declared)])

/** Pays rent and events out of the refundable fee; returns the diagnostic when it does not suffice, or undefined. */
export const unpaid = (
  refundable: RefundableFee,
  rentStroops: bigint,
  eventsStroops: bigint
): DiagnosticEvent | undefined => {
  if (refundable.consume(rentStroops, eventsStroops)) return undefined
  const offered = "refundable resource fee was not sufficient to cover the"
  const { maximumStroops, rentStroops: rent } = refundable
  return rent > maximumStroops
    ? exceeded(`${offered} ledger storage rent: {} > {}`, rent, maximumStroops)
    : exceeded(
        `${offered} events fee after paying for ledger storage rent: {} > {}`,
        eventsStroops,
        maximumStroops - rent
      )
}

/** An archived entry that the transaction would read and does not restore. */
export const archivedAccess = (key: LedgerKey): DiagnosticEvent => {
  const [what, args] =
    key.type === EntryType.contractData
      ? ["data", [{ type: 18 as const, address: key.contractData.contract }, key.contractData.key]]
      : ["code", key.type === EntryType.contractCode ? [bytes(key.contractCode.hash)] : []]
  return explained(
    hostError("Value", "InvalidInput"),
    `trying to access an archived contract ${what} entry`,
    args as ScVal[]
  )
}

export const hostFunctionFailed = (error: ScError): DiagnosticEvent =>
  diagnostic([sym("host_fn_failed"), errorVal(error)], VOID)

/** The events of a failed operation, and the node's additional ones. */
export const ofFailure = (
  events: ReadonlyArray<DiagnosticEvent>,
  ...added: ReadonlyArray<DiagnosticEvent>
): ReadonlyArray<DiagnosticEvent> => [
  ...events.map(({ event }) => ({ inSuccessfulContractCall: false, event })),
  ...added
]
