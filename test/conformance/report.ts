// The report of a conformance run: one line per case as it ends, a table per part at its close, and one total over all
// parts. A case is a sentence that holds or fails; a case that throws fails, and the run continues.

export interface Part {
  /** Runs one case; it fails if it throws. Returns whether it held. */
  readonly check: (sentence: string, work: () => Promise<void> | void) => Promise<boolean>
  /** An additional value in the part's table. */
  readonly figure: (name: string, value: string) => void
}

export interface Report {
  readonly part: (title: string, work: (part: Part) => Promise<void>) => Promise<void>
  /** Prints the closing table and the last line; true when every case held. */
  readonly close: () => boolean
}

interface Row {
  readonly title: string
  passed: number
  failed: number
  seconds: number
  readonly figures: Map<string, string>
}

/** A report that writes to `print`, one line a call. */
export const makeReport = (print: (line: string) => void): Report => {
  const rows: Array<Row> = []
  return {
    part: async (title, work) => {
      const row: Row = { title, passed: 0, failed: 0, seconds: 0, figures: new Map() }
      rows.push(row)
      const started = performance.now()
      print(`\n${title}`)
      const check: Part["check"] = async (sentence, body) => {
        const from = performance.now()
        try {
          await body()
          row.passed++
          print(`  ok    ${sentence}  (${Math.round(performance.now() - from)} ms)`)
          return true
        } catch (error) {
          row.failed++
          print(`  FAIL  ${sentence}\n${indent(String(error instanceof Error ? error.message : error))}`)
          return false
        }
      }
      try {
        await work({ check, figure: (name, value) => row.figures.set(name, value) })
      } catch (error) {
        row.failed++
        print(`  FAIL  ${title} ran to its end\n${indent(String(error instanceof Error ? error.stack : error))}`)
      }
      row.seconds = (performance.now() - started) / 1000
      print(
        table([
          ["", "passed", "failed", "seconds", ...row.figures.keys()],
          [title, String(row.passed), String(row.failed), row.seconds.toFixed(1), ...row.figures.values()]
        ])
      )
    },
    close: () => {
      const passed = rows.reduce((sum, row) => sum + row.passed, 0)
      const failed = rows.reduce((sum, row) => sum + row.failed, 0)
      print("")
      print(
        table([
          ["", "passed", "failed", "seconds"],
          ...rows.map((row) => [row.title, String(row.passed), String(row.failed), row.seconds.toFixed(1)])
        ])
      )
      print(`${passed} passed, ${failed} failed`)
      return failed === 0 && passed > 0
    }
  }
}

const indent = (text: string): string =>
  text
    .split("\n")
    .slice(0, 12)
    .map((line) => `        ${line}`)
    .join("\n")

const table = (lines: ReadonlyArray<ReadonlyArray<string>>): string => {
  const widths = lines[0]!.map((_, column) => Math.max(...lines.map((line) => line[column]!.length)))
  return lines
    .map((line) =>
      line.map((cell, column) => (column === 0 ? cell.padEnd(widths[0]!) : cell.padStart(widths[column]!)))
    )
    .map((cells) => `  ${cells.join("  ")}`)
    .join("\n")
}
