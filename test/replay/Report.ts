// Counts the results of a replay, per family: executed and identical, executed and different, and not executed with the
// reason. Every transaction of every stream is in exactly one of these, so none is skipped silently. Also reports the
// accuracy of metering, per family and per host function.
import { paddedInstructions } from "../../plugins/ledger-local/rpc/simulationCost.ts"

export type Verdict =
  | { readonly kind: "identical"; readonly feeCompared: boolean }
  | { readonly kind: "different"; readonly what: string }
  | { readonly kind: "unsupported"; readonly reason: string }

interface Row {
  streams: number
  identical: number
  fees: number
  different: number
  unsupported: number
}

/** Sorts after every family. */
const TOTAL = "~ all"

const newRow = (): Row => ({ streams: 0, identical: 0, fees: 0, different: 0, unsupported: 0 })

/** How close the metered instructions of calls that succeeded come to the real node's. */
interface Metering {
  calls: number
  close: number
  near: number
  least: number
  most: number
}

const CLOSE = 0.02
const NEAR = 0.1

const count = (rows: Map<string, Metering>, name: string, error: number): void => {
  const row = rows.get(name) ?? { calls: 0, close: 0, near: 0, least: error, most: error }
  row.calls++
  if (Math.abs(error) <= CLOSE) row.close++
  if (Math.abs(error) <= NEAR) row.near++
  row.least = Math.min(row.least, error)
  row.most = Math.max(row.most, error)
  rows.set(name, row)
}

const percent = (share: number): string => `${(100 * share).toFixed(1)} %`

const printTable = (title: string, rows: ReadonlyMap<string, Metering>, write: (line: string) => void): void => {
  write(`\n${title.padEnd(58)}${"calls".padStart(8)}${"in 2 %".padStart(10)}${"in 10 %".padStart(10)}   error`)
  for (const [name, { calls, close, near, least, most }] of [...rows].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const shares = `${percent(close / calls).padStart(10)}${percent(near / calls).padStart(10)}`
    write(
      `${name.slice(0, 58).padEnd(58)}${String(calls).padStart(8)}${shares}   ${percent(least)} to ${percent(most)}`
    )
  }
}

export class Report {
  readonly #metering = new Map<string, Metering>()
  /** By host function, over the calls that used it. */
  readonly #byHostFunction = new Map<string, Metering>()
  readonly #rows = new Map<string, Row>()
  readonly #reasons = new Map<string, number>()
  readonly #differences: Array<string> = []
  readonly total = newRow()

  #row(family: string): Row {
    let row = this.#rows.get(family)
    if (row === undefined) this.#rows.set(family, (row = newRow()))
    return row
  }

  stream(family: string): void {
    this.#row(family).streams++
    this.total.streams++
  }

  add(family: string, where: string, verdict: Verdict): void {
    for (const row of [this.#row(family), this.total]) {
      row[verdict.kind]++
      if (verdict.kind === "identical" && verdict.feeCompared) row.fees++
    }
    if (verdict.kind === "different") this.#differences.push(`${where}: ${verdict.what}`)
    if (verdict.kind === "unsupported") this.#reasons.set(verdict.reason, (this.#reasons.get(verdict.reason) ?? 0) + 1)
  }

  /** Ledgers with their own facts compared: hashes, evictions, the size of the state. */
  readonly ledgers = { checked: 0, different: 0 }

  /** Adds the differences of a ledger as a whole. */
  addLedger(where: string, differences: ReadonlyArray<string>): void {
    this.ledgers.checked++
    if (differences.length > 0) this.ledgers.different++
    for (const what of differences) this.#differences.push(`${where}: ${what}`)
  }

  /** Adds the instructions of one call, metered by us and by the real node. */
  meter(group: string, own: number, real: number, hostCalls: Iterable<string> = []): void {
    const error = own / real - 1
    if (paddedInstructions(own, 0) < real) {
      this.tooLow.push(`${group}: ${own} instead of ${real}`)
      this.#differences.push(
        `${group}: a simulation would declare ${paddedInstructions(own, 0)} of ${real} instructions`
      )
    }
    for (const name of [group, TOTAL]) count(this.#metering, name, error)
    for (const name of hostCalls) count(this.#byHostFunction, name, error)
  }

  /** Executed transactions, and those of them with identical diagnostic events. */
  readonly diagnostics = { reported: 0, identical: 0 }
  /** The others, each with the first differing event. */
  readonly differing: Array<string> = []

  /** Adds the comparison of a transaction's diagnostic events: the first differing one, or undefined. */
  compare(where: string, otherWords: string | undefined): void {
    this.diagnostics.reported++
    if (otherWords === undefined) this.diagnostics.identical++
    else this.differing.push(`${where}: ${otherWords}`)
  }

  /** Calls for which a simulation would have declared less than the real node used. */
  readonly tooLow: Array<string> = []

  /** Share of the metered calls within 2 %. */
  get meteredClosely(): number {
    const { close, calls } = this.#metering.get(TOTAL) ?? { close: 0, calls: 1 }
    return close / calls
  }

  /** The tables of metered instructions compared with the real node's: by family, and by host function. */
  printMetering(write: (line: string) => void, nameOf: (hostFunction: string) => string = (name) => name): void {
    printTable("instructions", this.#metering, write)
    const named = new Map([...this.#byHostFunction].map(([id, row]) => [nameOf(id), row]))
    if (named.size > 0) printTable("instructions of calls that use the host function", named, write)
    const far = [...named.values()].filter(({ calls, close }) => close / calls < 0.95).length
    if (named.size > 0)
      write(`\n${named.size} host functions metered, ${named.size - far} of them within 2 % in 95 of 100 calls or more`)
  }

  get differences(): ReadonlyArray<string> {
    return this.#differences
  }

  /** The table, the reasons and the totals, which are the last line. */
  print(write: (line: string) => void, differencesMax = 40): void {
    const columns = (name: string, values: ReadonlyArray<number | string>): string =>
      name.slice(0, 58).padEnd(58) + values.map((value) => String(value).padStart(12)).join("")
    write(columns("family", ["streams", "executed", "identical", "fees", "different", "unsupported"]))
    const line = (name: string, row: Row): string =>
      columns(name, [
        row.streams,
        row.identical + row.different,
        row.identical,
        row.fees,
        row.different,
        row.unsupported
      ])
    for (const [family, row] of [...this.#rows].sort(([a], [b]) => (a < b ? -1 : 1))) write(line(family, row))
    if (this.#reasons.size > 0) write("\nnot executed, by reason")
    for (const [reason, count] of [...this.#reasons].sort(([, a], [, b]) => b - a))
      write(`${String(count).padStart(8)}  ${reason}`)
    if (this.#differences.length > 0) write("\ndifferent")
    for (const difference of this.#differences.slice(0, differencesMax)) write(`  ${difference}`)
    if (this.#differences.length > differencesMax) write(`  … and ${this.#differences.length - differencesMax} more`)
    const { reported, identical: same } = this.diagnostics
    write(`\ndiagnostic events: word for word in ${same} of ${reported} transactions`)
    for (const other of this.differing.slice(0, differencesMax)) write(`  ${other}`)
    const { checked, different: wrong } = this.ledgers
    write(`ledgers as a whole (hashes, evictions, size of the state): ${checked} compared, ${wrong} different`)
    const { streams, identical, different, unsupported, fees } = this.total
    const executed = identical + different
    const share = executed === 0 ? "0.00" : ((100 * identical) / executed).toFixed(2)
    write(
      `\ntotal: ${streams} streams, ${executed + unsupported} transactions, ${executed} executed, ${identical} ` +
        `identical (${share} %), ` +
        `${fees} fees compared, ${different} different, ${unsupported} unsupported`
    )
  }
}
