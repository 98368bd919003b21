// An estimate of the instructions the network would meter, from calibrated constants: a base per kind of call and a
// cost per account authentication and signature. The anchors are metered transactions of the test network and of
// stellar-core's streams, where 64 of 100 contract calls are estimated to a tenth and 87 to a quarter, uploads to a
// twentieth. A simulation pads the estimate as the RPC does (4 %, at least 50,000). It is a price; the limit is the
// fuel that contract wasm runs on, which is generous and only there to stop what would never end.
import { HostError } from "./HostError.ts"

/** Account authentication of one address entry with its nonce, without the signature check itself. */
const ADDRESS_AUTH = 126_364
const SIGNATURE = 400_000
const WASM_CALL = 250_000
/** Checking and parsing a contract's code, and what each of its bytes adds. */
const UPLOAD = 1_055_000
const UPLOAD_BYTE = 826

const SAC: Readonly<Record<string, number>> = {
  transfer: 200_000,
  transfer_from: 240_000,
  mint: 200_000,
  burn: 165_000,
  burn_from: 205_000,
  clawback: 200_000,
  approve: 190_000,
  set_authorized: 190_000,
  set_admin: 170_000,
  trust: 200_000
}
const SAC_READ = 110_000

/** Fuel of one host function call: what the network allows a transaction, at four metered instructions each. */
const FUEL = 100_000_000
/** The metered cost of one unit of fuel. */
const FUEL_INSTRUCTIONS = 4
/** What the host does for the contracts of one call, in units of a few nanoseconds. */
const WORK = 100_000_000
const MEMORY_BYTES = 41_943_040
/** Linear memory of all contracts that are running at the same time. */
const LINEAR_BYTES_MAX = 268_435_456

export class InstructionMeter {
  #total = 0
  /** Fuel left to all contracts of this call. */
  fuel = FUEL
  #work = WORK
  /** Bytes of values that contracts of this call may still make: the network's memory limit of a transaction. */
  memoryBytes = MEMORY_BYTES

  #linearBytes = 0

  /** Takes from what the host may still do for contracts; it has no price, and only ends what would take too long. */
  payWork(units: number): void {
    this.#work -= units
    if (this.#work < 0) throw HostError.of("Budget", "ExceededLimit", "instruction limit exceeded")
  }

  /** Counts linear memory of contracts that are running, one within the other. */
  holdMemory(bytes: number): void {
    this.#linearBytes += bytes
    if (bytes > 0 && this.#linearBytes > LINEAR_BYTES_MAX)
      throw HostError.of("Budget", "ExceededLimit", "memory limit exceeded")
  }

  get total(): number {
    return this.#total + (FUEL - this.fuel) * FUEL_INSTRUCTIONS
  }

  add(instructions: number): void {
    this.#total += instructions
  }

  sacCall(fn: string): void {
    this.#total += SAC[fn] ?? SAC_READ
  }

  wasmCall(): void {
    this.#total += WASM_CALL
  }

  addressAuth(): void {
    this.#total += ADDRESS_AUTH
  }

  upload(bytes: number): void {
    this.#total += UPLOAD + UPLOAD_BYTE * bytes
  }

  signature(): void {
    this.#total += SIGNATURE
  }
}
