// The error of the contract host: a type, a code, and the message and arguments that the network puts into its
// diagnostic events. It is thrown inside the engine, caught at the edge of a host function call and returned as a
// value; it never leaves `invokeHostFunction` as an exception. `Unsupported` marks features that this engine does not
// implement. It is never reported as a failure of the transaction itself, so that an unknown outcome is not mistaken
// for a refusal.
import type { ScError, ScVal } from "../xdr/Xdr.ts"

/** `SCErrorType`, in wire order. */
export const errorTypes = [
  "Contract",
  "WasmVm",
  "Context",
  "Storage",
  "Object",
  "Crypto",
  "Events",
  "Budget",
  "Value",
  "Auth"
] as const
export type HostErrorType = (typeof errorTypes)[number]

/** `SCErrorCode`, in wire order. */
export const errorCodes = [
  "ArithDomain",
  "IndexBounds",
  "InvalidInput",
  "MissingValue",
  "ExistingValue",
  "ExceededLimit",
  "InvalidAction",
  "InternalError",
  "UnexpectedType",
  "UnexpectedSize"
] as const
export type HostErrorCode = (typeof errorCodes)[number]

/** An error's data in addition to its message: contract values, in the order of the network's text. */
type ErrorArguments = ReadonlyArray<ScVal>

export class HostError extends Error {
  readonly errorType: HostErrorType
  /** A contract's own number when the type is Contract, otherwise one of `errorCodes`. */
  readonly code: HostErrorCode | number
  readonly args: ErrorArguments
  /** False if the network's log omits the error; its message is then only for our developers. */
  readonly isReported: boolean

  private constructor(
    errorType: HostErrorType,
    code: HostErrorCode | number,
    message: string,
    args: ErrorArguments,
    isNotified = true
  ) {
    super(message)
    this.errorType = errorType
    this.code = code
    this.args = args
    this.isReported = isNotified
  }

  static of(
    errorType: Exclude<HostErrorType, "Contract">,
    code: HostErrorCode,
    message: string,
    args: ErrorArguments = []
  ): HostError {
    return new HostError(errorType, code, message, args)
  }

  /** An error that the network does not report where it arises, such as a value of the wrong type. */
  static silent(errorType: Exclude<HostErrorType, "Contract">, code: HostErrorCode, message: string): HostError {
    return new HostError(errorType, code, message, [], false)
  }

  /** The same error with another message, which is reported. */
  saying(message: string, args: ErrorArguments = []): HostError {
    return new HostError(this.errorType, this.code, message, args)
  }

  /** A contract error, such as those of the Stellar Asset Contract. */
  static contract(code: number, message: string, args: ErrorArguments = []): HostError {
    return new HostError("Contract", code, message, args)
  }

  /** The wire form, as in an error value or an error event's topic. */
  get scError(): ScError {
    if (this.errorType === "Contract") return { type: 0, contractCode: typeof this.code === "number" ? this.code : 0 }
    return { type: errorTypes.indexOf(this.errorType), code: errorCodes.indexOf(this.code as HostErrorCode) } as ScError
  }

  /** As the RPC writes it: `Error(Contract, #10)`, `Error(Auth, InvalidAction)`. */
  get label(): string {
    return `Error(${this.errorType}, ${typeof this.code === "number" ? `#${this.code}` : this.code})`
  }

  is(errorType: HostErrorType, code: HostErrorCode | number): boolean {
    return this.errorType === errorType && this.code === code
  }
}

/**
 * A feature that this engine does not implement (a host function, a contract executable). Carries the feature's name.
 */
export class Unsupported extends Error {
  readonly what: string
  constructor(what: string) {
    super(`the embedded ledger does not support ${what}`)
    this.what = what
  }
}
