// The events of one host function call in order: contract events and the diagnostics between them. When a frame fails
// its events stay in the log, marked as not emitted, because that is how the network shows them.
import type { HostError } from "./HostError.ts"
import { bytes, str, sym, vec, VOID } from "../xdr/ScVal.ts"
import type { ContractEvent, DiagnosticEvent, ScVal } from "../xdr/Xdr.ts"

const SYSTEM = 0
const CONTRACT = 1
const DIAGNOSTIC = 2

interface Entry {
  readonly event: ContractEvent
  failed: boolean
}

const eventOf = (
  contractId: Uint8Array | null,
  type: 0 | 1 | 2,
  topics: ReadonlyArray<ScVal>,
  data: ScVal
): ContractEvent => ({
  ext: { v: 0 },
  contractId,
  type,
  body: { v: 0, v0: { topics: topics as ScVal[], data } }
})

const oneOrVec = (args: ReadonlyArray<ScVal>): ScVal => (args.length > 1 ? vec(args) : (args[0] ?? VOID))

export class EventLog {
  readonly #entries: Array<Entry> = []
  readonly #logged = new WeakSet<HostError>()
  #isWithheld = false

  get length(): number {
    return this.#entries.length
  }

  contract(contractId: Uint8Array, topics: ReadonlyArray<ScVal>, data: ScVal): void {
    this.#entries.push({ event: eventOf(contractId, CONTRACT, topics, data), failed: false })
  }

  /** An event of the host itself about a contract, such as new code. */
  system(contractId: Uint8Array, topics: ReadonlyArray<ScVal>, data: ScVal): void {
    this.#entries.push({ event: eventOf(contractId, SYSTEM, topics, data), failed: false })
  }

  #diagnostic(contractId: Uint8Array | null, topics: ReadonlyArray<ScVal>, data: ScVal): void {
    this.#entries.push({ event: eventOf(contractId, DIAGNOSTIC, topics, data), failed: false })
  }

  called(caller: Uint8Array | null, callee: Uint8Array, fn: string, args: ReadonlyArray<ScVal>): void {
    this.#diagnostic(caller, [sym("fn_call"), bytes(callee), sym(fn)], oneOrVec(args))
  }

  returned(callee: Uint8Array, fn: string, value: ScVal): void {
    this.#diagnostic(callee, [sym("fn_return"), sym(fn)], value)
  }

  /** A contract's own debug message. */
  message(contractId: Uint8Array | null, text: ScVal, args: ReadonlyArray<ScVal>): void {
    this.#diagnostic(contractId, [sym("log")], args.length === 0 ? text : vec([text, ...args]))
  }

  /** Logs the error in the frame that raised it, if the network reports it; outer frames do not repeat it. */
  failed(contractId: Uint8Array | null, error: HostError): void {
    if (this.#logged.has(error)) return
    this.#logged.add(error)
    if (!error.isReported) return
    const data = error.args.length === 0 ? str(error.message) : vec([str(error.message), ...error.args])
    this.#diagnostic(contractId, [sym("error"), { type: 2, error: error.scError }], data)
  }

  /** Marks everything from `length` on as belonging to a failed call. */
  rollback(length: number): void {
    for (let i = length; i < this.#entries.length; i++) this.#entries[i]!.failed = true
  }

  get emitted(): ReadonlyArray<ContractEvent> {
    return this.#entries.filter(({ event, failed }) => !failed && event.type !== DIAGNOSTIC).map(({ event }) => event)
  }

  /** Withholds the log: the network cannot encode it, because a value in it is nested too deeply. */
  withhold(): void {
    this.#isWithheld = true
  }

  get all(): ReadonlyArray<DiagnosticEvent> {
    if (this.#isWithheld) return []
    return this.#entries.map(({ event, failed }) => ({ inSuccessfulContractCall: !failed, event }))
  }
}
