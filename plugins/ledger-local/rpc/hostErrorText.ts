// The text in which the RPC tells a failed simulation: the error, then the event log with the newest event first. Codes
// and main messages are the network's own; how deep the log goes is this engine's.
import { StrKey } from "@stellar/stellar-sdk/base"
import { errorCodes, errorTypes, type HostError } from "../engine/host/HostError.ts"
import { addressStrKey, type DiagnosticEvent, type ScVal, textOf } from "../engine/xdr/Xdr.ts"
import { toHex } from "../node/text.ts"

const utf8 = new TextDecoder()

/** A contract value as the host's log shows it. */
export const valueText = (value: ScVal): string => {
  switch (value.type) {
    case 0:
      return String(value.b)
    case 1:
      return "Void"
    case 2:
      return value.error.type === 0
        ? `Error(Contract, #${value.error.contractCode})`
        : `Error(${errorTypes[value.error.type]}, ${errorCodes[value.error.code]})`
    case 3:
      return String(value.u32)
    case 4:
      return String(value.i32)
    case 5:
      return String(value.u64)
    case 6:
      return String(value.i64)
    case 10:
      return String((value.i128.hi << 64n) + value.i128.lo)
    case 13:
      return `Bytes(${toHex(value.bytes)})`
    case 14:
      return JSON.stringify(utf8.decode(value.str.bytes))
    case 15:
      return textOf(value.sym)
    case 16:
      return `[${(value.vec ?? []).map(valueText).join(", ")}]`
    case 17:
      return `{${(value.map ?? []).map(({ key, val }) => `${valueText(key)}: ${valueText(val)}`).join(", ")}}`
    case 18:
      return addressStrKey(value.address)
    default:
      return `ScVal(${value.type})`
  }
}

const kinds = ["System", "Contract", "Diagnostic"] as const

const eventText = ({ event, inSuccessfulContractCall }: DiagnosticEvent, index: number): string => {
  const failed = inSuccessfulContractCall || event.type === 2 ? "" : "Failed "
  const suffix = failed === "" ? "" : " (not emitted)"
  const contract = event.contractId === null ? "" : ` contract:${StrKey.encodeContract(event.contractId)},`
  const { topics, data } = event.body.v0
  return `   ${index}: [${failed}${kinds[event.type]} Event${suffix}]${contract} topics:[${topics.map(valueText).join(", ")}], data:${valueText(data)}`
}

/** The `error` of a simulation. */
export const hostErrorText = (error: HostError, log: ReadonlyArray<DiagnosticEvent>): string =>
  `HostError: ${error.label}\n\nEvent log (newest first):\n${[...log].reverse().map(eventText).join("\n")}\n`
