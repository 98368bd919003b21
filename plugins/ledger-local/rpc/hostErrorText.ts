// The text of a failed simulation in the RPC: the error, then the event log with the newest event first. Codes and main
// messages are the network's own; how deep the log goes is this engine's.
import { EventType, ScErrorType, ScType } from "../engine/xdr/types.ts"
import { encodeStrKey } from "../engine/xdr/StrKey.ts"
import { errorCodes, errorTypes, type HostError } from "../engine/host/HostError.ts"
import { addressStrKey, type DiagnosticEvent, type ScVal, textOf } from "../engine/xdr/Xdr.ts"
import { toHex } from "../node/text.ts"

const utf8 = new TextDecoder()

/** A contract value as the host's log shows it. */
export const valueText = (value: ScVal): string => {
  switch (value.type) {
    case ScType.bool:
      return String(value.b)
    case ScType.void:
      return "Void"
    case ScType.error:
      return value.error.type === ScErrorType.contract
        ? `Error(Contract, #${value.error.contractCode})`
        : `Error(${errorTypes[value.error.type]}, ${errorCodes[value.error.code]})`
    case ScType.u32:
      return String(value.u32)
    case ScType.i32:
      return String(value.i32)
    case ScType.u64:
      return String(value.u64)
    case ScType.i64:
      return String(value.i64)
    case ScType.i128:
      return String((value.i128.hi << 64n) + value.i128.lo)
    case ScType.bytes:
      return `Bytes(${toHex(value.bytes)})`
    case ScType.string:
      return JSON.stringify(utf8.decode(value.str.bytes))
    case ScType.symbol:
      return textOf(value.sym)
    case ScType.vec:
      return `[${(value.vec ?? []).map(valueText).join(", ")}]`
    case ScType.map:
      return `{${(value.map ?? []).map(({ key, val }) => `${valueText(key)}: ${valueText(val)}`).join(", ")}}`
    case ScType.address:
      return addressStrKey(value.address)
    default:
      return `ScVal(${value.type})`
  }
}

const kinds = ["System", "Contract", "Diagnostic"] as const

const eventText = ({ event, inSuccessfulContractCall }: DiagnosticEvent, index: number): string => {
  const failed = inSuccessfulContractCall || event.type === EventType.diagnostic ? "" : "Failed "
  const suffix = failed === "" ? "" : " (not emitted)"
  const contract = event.contractId === null ? "" : ` contract:${encodeStrKey("contract", event.contractId)},`
  const { topics, data } = event.body.v0
  const head = `   ${index}: [${failed}${kinds[event.type]} Event${suffix}]${contract}`
  return `${head} topics:[${topics.map(valueText).join(", ")}], data:${valueText(data)}`
}

export const hostErrorText = (error: HostError, log: ReadonlyArray<DiagnosticEvent>): string =>
  `HostError: ${error.label}\n\nEvent log (newest first):\n${[...log].reverse().map(eventText).join("\n")}\n`
