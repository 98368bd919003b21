// The instructions that the network would meter for a host function call. If the network's cost parameters price a
// quantity that we can compute (fuel, bytes, signatures, modules), we compute the price from them.
// `instructionPrices.ts` prices the sum of hundreds of small copies and comparisons. The limit is the transaction's
// declared instructions. Exceeding it is the budget's error, for wasm too: a contract gets the rest of it as fuel. In
// addition, and without a price, the meter bounds the host's work and the contracts' memory, so that no call takes too
// long.
import type { CpuCost, CpuCosts } from "../state/cpuCosts.ts"
import { HostError } from "./HostError.ts"

/** The network's limit for a transaction. */
const INSTRUCTIONS_MAX = 400_000_000
/** Maximum work of the host for the contracts of one call, in units of a few nanoseconds. */
const WORK_MAX = 100_000_000
const MEMORY_BYTES = 41_943_040
/** Linear memory of all contracts that are running at the same time. */
const LINEAR_BYTES_MAX = 268_435_456

/** The network's log omits the budget's error. */
const exceeded = (what: string): HostError => HostError.silent("Budget", "ExceededLimit", `${what} limit exceeded`)

export const costOf = ({ constant, linear128 }: CpuCost, size: number): number =>
  constant + Math.floor((linear128 * size) / 128)

export class InstructionMeter {
  readonly costs: CpuCosts
  readonly #instructionsMax: number
  #instructions = 0
  #work: number
  #linearBytes = 0
  readonly #memoryBytesMax: number
  /** Bytes of values and of linear memory that contracts of this call may still make. */
  #memoryBytes: number

  /** `instructionsMax` is the call's limit, `memoryBytesMax` the network's memory limit of a transaction. */
  constructor(costs: CpuCosts, instructionsMax = INSTRUCTIONS_MAX, memoryBytesMax = MEMORY_BYTES) {
    this.costs = costs
    this.#memoryBytes = memoryBytesMax
    this.#memoryBytesMax = memoryBytesMax
    this.#instructionsMax = Math.min(INSTRUCTIONS_MAX, instructionsMax)
    // Far more than these instructions buy on the network, because units are rough.
    this.#work = Math.min(WORK_MAX, instructionsMax)
  }

  get instructions(): number {
    return Math.ceil(this.#instructions)
  }

  /** Bytes of values and of linear memory so far; more than the limit when that ended the call. */
  get memoryBytes(): number {
    return this.#memoryBytesMax - this.#memoryBytes
  }

  /** True when the call ended because its contracts made too much. */
  get isOutOfMemory(): boolean {
    return this.#memoryBytes < 0
  }

  /** Wasm ran out of fuel: the call has used more than it may. */
  exhaust(): void {
    this.#instructions = Math.max(this.#instructions, this.#instructionsMax + 1)
  }

  /** Fuel that is left to wasm. */
  get fuel(): number {
    return Math.max(0, Math.floor((this.#instructionsMax - this.#instructions) / this.costs.wasmInsnExec.constant))
  }

  burn(fuel: number): void {
    this.spend(fuel * this.costs.wasmInsnExec.constant)
  }

  spend(instructions: number): void {
    this.#instructions += instructions
    if (this.#instructions > this.#instructionsMax) throw exceeded("instruction")
  }

  /** The network's charge for one cost type with the given size. */
  charge(cost: CpuCost, size = 0): void {
    this.spend(costOf(cost, size))
  }

  chargeEach(cost: CpuCost, times: number, size = 0): number {
    const instructions = times * costOf(cost, size)
    this.spend(instructions)
    return instructions
  }

  /** A new list of `bytes` bytes of items, behind a head of `headBytes`. */
  chargeList(headBytes: number, bytes: number): void {
    this.charge(this.costs.memCpy, headBytes)
    this.charge(this.costs.memAlloc, bytes)
    this.charge(this.costs.memCpy, bytes)
  }

  /**
   * Deducts from the host's remaining work for contracts; it has no price, and only ends calls that would take too
   * long.
   */
  payWork(units: number): void {
    this.#work -= units
    if (this.#work < 0) throw exceeded("instruction")
  }

  /** Linear memory that a contract begins with; the network gives nothing back of it while the transaction lasts. */
  growMemory(bytes: number): void {
    if (bytes === 0) return
    this.takeMemory(bytes)
    this.charge(this.costs.memAlloc, bytes)
  }

  /** Deducts from the bytes that the contracts of the transaction may use for objects and memory together. */
  takeMemory(bytes: number): void {
    this.#memoryBytes -= bytes
    if (this.#memoryBytes < 0) throw exceeded("memory")
  }

  /** Counts linear memory of contracts that are running, one within the other. */
  holdMemory(bytes: number): void {
    this.#linearBytes += bytes
    if (bytes > 0 && this.#linearBytes > LINEAR_BYTES_MAX) throw exceeded("memory")
  }
}
