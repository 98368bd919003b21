// One contract frame's virtual machine as the host functions see it: its values, its linear memory and its fuel. Every
// access to memory is checked against its current size, and every host function pays for the bytes or values it moves,
// so that a module cannot make the host work for nothing.
import { AddressType, ScType } from "../xdr/types.ts"
import type { ContractHost } from "../host/HostTypes.ts"
import { HostError } from "../host/HostError.ts"
import { readAddress, readBytes, readMap, readVec } from "../xdr/ScVal.ts"
import { deepSize, isTooDeep, tooDeep } from "../xdr/deepSize.ts"
import { latin1, type ScAddress, type ScMapEntry, type ScVal } from "../xdr/Xdr.ts"
import type { CpuCostName } from "../state/cpuCosts.ts"
import { SMALL_SYMBOL_MAX } from "../xdr/valueSizes.ts"
import { isObjectWord, Tag, Values } from "./Values.ts"

/** No value may be larger than this when written out; the network's limits of entries and events are far below. */
const VALUE_BYTES_MAX = 1_048_576
const EMPTY = new ArrayBuffer(0)
/** The network's sizes of the head of a list and of an object. */
const LIST_BYTES = 24
const OBJECT_BYTES = 64
/** Instructions of the network for one unit of work, as a power of two. */
const WORK_SHIFT = 2

export class Vm {
  readonly host: ContractHost
  readonly values: Values
  readonly #fuel: WebAssembly.Global
  readonly #memory: WebAssembly.Memory | undefined
  /** Fuel with which the contract began to run, or ran on. */
  #given = 0

  /** `memoryBytes` is the memory's initial size, which has been paid. */
  constructor(host: ContractHost, fuel: WebAssembly.Global, memory: WebAssembly.Memory | undefined, memoryBytes = 0) {
    this.#paid = memoryBytes
    this.host = host
    this.values = new Values(host.meter)
    this.#fuel = fuel
    this.#memory = memory
  }

  /** True when the contract ran out of fuel. */
  get isEmpty(): boolean {
    return (this.#fuel.value as number) < 0
  }

  /** Resumes the contract with the rest of the budget as fuel. */
  resume(): void {
    this.#given = this.host.meter.fuel
    this.#fuel.value = this.#given
  }

  /** The contract is paused: the fuel it used is taken from the budget. */
  pause(): void {
    const used = this.#given - (this.#fuel.value as number)
    this.#given -= used
    this.host.meter.burn(used)
  }

  /** Deducts from the host's remaining work for the contracts of this call; see `hostCallWork.ts`. */
  payWork(units: number): void {
    this.host.meter.payWork(units)
  }

  /** The network's charge for a step; also charges work in proportion. */
  charge(name: CpuCostName, size = 0): void {
    this.chargeEach(name, 1, size)
  }

  chargeEach(name: CpuCostName, times: number, size = 0): void {
    const instructions = this.host.meter.chargeEach(this.host.meter.costs[name], times, size)
    this.payWork(instructions >> WORK_SHIFT)
  }

  /** A new list or a new string of `bytes` bytes, and `more` for its head. */
  chargeCopied(bytes: number, more = 0): void {
    this.charge("memCpy", LIST_BYTES + more)
    this.charge("memAlloc", bytes)
    this.charge("memCpy", bytes)
  }

  /** A new object of the host; an object that is passed to the contract is visited again. */
  chargeObject(): void {
    this.charge("memAlloc", OBJECT_BYTES)
  }

  /** A symbol that the host compares with a constant text. */
  chargeCompared(symbol: string, text: string): void {
    if (symbol.length > SMALL_SYMBOL_MAX) this.charge("visitObject")
    this.charge("memCmp", Math.min(symbol.length, text.length))
  }

  isObject(word: bigint): boolean {
    return isObjectWord(word)
  }

  /** The value of an argument; checking an object's type has a price. */
  checked(word: bigint): ScVal {
    if (this.isObject(word)) this.charge("visitObject")
    return this.values.value(word)
  }

  /** Bytes of the linear memory that are counted among those of all running contracts. */
  #held = 0

  /** Bytes of it that are paid. */
  #paid: number

  /** Counts the growth of the memory. Growing has already taken fuel, so this only takes bytes. */
  #hold(): void {
    const bytes = this.#memory?.buffer.byteLength ?? 0
    const grown = bytes - this.#held
    this.#held = bytes
    this.host.meter.takeMemory(bytes - this.#paid)
    this.#paid = bytes
    this.host.meter.holdMemory(grown)
  }

  /** Runs when the contract has ended: counts the growth of its memory. */
  settle(): void {
    this.host.meter.takeMemory((this.#memory?.buffer.byteLength ?? 0) - this.#paid)
  }

  release(): void {
    this.host.meter.holdMemory(-this.#held)
    this.#held = 0
  }

  /** Runs a function that may run other contracts; their memory is added to this one's. */
  nested<A>(run: () => A): A {
    this.#hold()
    return run()
  }

  #buffer(from: number, length: number): ArrayBufferLike {
    const buffer = this.#memory?.buffer ?? EMPTY
    if (from + length > buffer.byteLength)
      throw HostError.of("WasmVm", "IndexBounds", "out-of-bounds linear memory access")
    this.payWork(length >> 3)
    return buffer
  }

  read(from: number, length: number): Uint8Array {
    return new Uint8Array(this.#buffer(from, length), from, length).slice()
  }

  write(from: number, bytes: Uint8Array): void {
    new Uint8Array(this.#buffer(from, bytes.length), from, bytes.length).set(bytes)
  }

  readText(from: number, length: number): string {
    return latin1(this.read(from, length))
  }

  readValues(from: number, count: number): Array<ScVal> {
    const view = new DataView(this.#buffer(from, count * 8))
    return Array.from({ length: count }, (_, i) => this.values.value(view.getBigInt64(from + 8 * i, true)))
  }

  writeValues(from: number, values: ReadonlyArray<ScVal>): void {
    const words = values.map((value) => this.values.word(value))
    const view = new DataView(this.#buffer(from, words.length * 8))
    words.forEach((word, i) => view.setBigInt64(from + 8 * i, word, true))
  }

  /** Texts named by pairs of position and length. */
  readTexts(from: number, count: number): Array<string> {
    const view = new DataView(this.#buffer(from, count * 8))
    return Array.from({ length: count }, (_, i) =>
      this.readText(view.getUint32(from + 8 * i, true), view.getUint32(from + 8 * i + 4, true))
    )
  }

  u32(word: bigint): number {
    const bits = BigInt.asUintN(64, word)
    if (Number(bits & 0xffn) !== Tag.u32) throw HostError.of("Value", "UnexpectedType", "value is not a u32")
    return Number(bits >> 32n)
  }

  value(word: bigint): ScVal {
    return this.values.value(word)
  }

  /** A value that will be written out or compared as a whole, so that its full size and depth count. */
  whole(word: bigint): ScVal {
    return this.measured(this.values.value(word))
  }

  measured(value: ScVal): ScVal {
    if (value.type !== ScType.vec && value.type !== ScType.map) return value
    const { bytes } = deepSize(value)
    if (isTooDeep(value)) throw tooDeep()
    if (bytes > VALUE_BYTES_MAX) throw HostError.of("Budget", "ExceededLimit", "value is too large")
    this.payWork(bytes >> 3)
    return value
  }

  /** A vector; the caller will write its items out. */
  wholes(word: bigint): ReadonlyArray<ScVal> {
    const items = this.vec(word)
    for (const item of items) this.measured(item)
    return items
  }

  vec(word: bigint): ReadonlyArray<ScVal> {
    const items = readVec(this.value(word))
    this.payWork(items.length)
    return items
  }

  map(word: bigint): ReadonlyArray<ScMapEntry> {
    const entries = readMap(this.value(word))
    this.payWork(entries.length * 2)
    return entries
  }

  /** A map; the caller will compare its keys. */
  keyed(word: bigint): ReadonlyArray<ScMapEntry> {
    const entries = this.map(word)
    for (const { key } of entries) this.measured(key)
    return entries
  }

  bytes(word: bigint): Uint8Array {
    const bytes = readBytes(this.value(word))
    this.payWork(bytes.length >> 3)
    return bytes
  }

  sized(word: bigint, length: number): Uint8Array {
    const bytes = this.bytes(word)
    if (bytes.length !== length) throw HostError.of("Object", "UnexpectedSize", `expected ${length} bytes`)
    return bytes
  }

  text(word: bigint, type: 14 | 15): Uint8Array {
    const value = this.value(word)
    if (value.type !== type)
      throw HostError.of("Value", "UnexpectedType", type === 14 ? "value is not a string" : "value is not a symbol")
    return value.type === ScType.string
      ? value.str.bytes
      : value.type === ScType.symbol
        ? value.sym.bytes
        : new Uint8Array()
  }

  address(word: bigint): ScAddress {
    return readAddress(this.value(word))
  }

  contract(word: bigint): Uint8Array {
    const address = this.address(word)
    if (address.type !== AddressType.contract)
      throw HostError.of("Value", "UnexpectedType", "address is not a contract")
    return address.contractId
  }
}

/** A host function: words in, and a word, a value or nothing out. */
export type HostFunction = (vm: Vm, ...args: ReadonlyArray<bigint>) => bigint | ScVal | void
export type HostFunctions = Readonly<Record<string, HostFunction>>
