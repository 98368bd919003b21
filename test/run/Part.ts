// A part of a test run: one program with its time limit, and the way to read its figures. A program without figures
// counts as one test. A program that should report tests and reports none has failed, even with exit status 0.
import { readFileSync } from "node:fs"

export interface Counts {
  readonly passed: number
  readonly failed: number
  readonly skipped: number
}

/**
 * The source of a part's figures: only its exit status, the JSON report of vitest, or a last line `N passed, N failed`.
 */
export type Figures = "status" | "vitest" | "last-line"

export interface Part {
  readonly name: string
  readonly command: string
  readonly args: ReadonlyArray<string>
  readonly env?: Readonly<Record<string, string>>
  readonly figures: Figures
  /** After this many minutes the part is stopped and has failed. */
  readonly minutesMax: number
  /** If few of its cases fail on a shared machine, the part runs again as a whole; vitest runs failed files again. */
  readonly again?: true
}

export interface Ended {
  /** Exit status; null after a signal. */
  readonly status: number | null
  /** The last line of its output, without colors. */
  readonly lastLine: string
  /** The file for vitest's report. */
  readonly reportFile: string
}

interface VitestReport {
  readonly numPassedTests: number
  readonly numFailedTests: number
  readonly numPendingTests: number
  readonly numTodoTests: number
  readonly testResults: ReadonlyArray<{
    /** The file, absolute. */
    readonly name?: string
    readonly message?: string
    readonly status: string
    readonly assertionResults: ReadonlyArray<{
      readonly status: string
      readonly fullName?: string
      readonly failureMessages?: ReadonlyArray<string>
    }>
  }>
}

/** A failed exit status without a failed test counts as one more failure. */
const honest = (counts: Counts, status: number | null): Counts =>
  status === 0 || counts.failed > 0 ? counts : { ...counts, failed: 1 }

// eslint-disable-next-line no-control-regex
export const colours = /\u001b\[[0-9;]*m/g

/** At most two lines of a test's message, so that a long difference does not hide the next name. */
const saidBy = (message: string | undefined): string =>
  (message ?? "").replace(colours, "").trim().split("\n").slice(0, 2).join(" ").slice(0, 300)

/** The test files of a vitest report that failed, relative to the root; empty without a report. */
export const failedFilesOf = (reportFile: string, root: string): ReadonlyArray<string> => {
  try {
    const { testResults } = JSON.parse(readFileSync(reportFile, "utf8")) as VitestReport
    return testResults.flatMap(({ name, status }) =>
      status === "failed" && name !== undefined ? [name.replace(`${root}/`, "")] : []
    )
  } catch {
    return []
  }
}

/** Each failed test of a vitest report, with its file and the beginning of its message; empty without a report. */
export const failuresOf = (reportFile: string, root: string): ReadonlyArray<string> => {
  try {
    const { testResults } = JSON.parse(readFileSync(reportFile, "utf8")) as VitestReport
    return testResults.flatMap(({ assertionResults, message, name, status }) => {
      const file = (name ?? "").replace(`${root}/`, "")
      const failed = assertionResults.filter((one) => one.status === "failed")
      if (failed.length === 0) return status === "failed" ? [`${file}: ${saidBy(message)}`] : []
      return failed.map((one) => `${file} > ${one.fullName ?? ""}: ${saidBy(one.failureMessages?.[0])}`)
    })
  } catch {
    return []
  }
}

/**
 * The failures of a program without a report: lines that begin with `FAILED`, `FAIL` or `FAILS`, with up to sixty lines
 * after each, until the next such line or a line that begins with `ok`. Each is shortened to one line, with its
 * beginning and end.
 */
export const errorsOf = (output: string): ReadonlyArray<string> =>
  (output.replace(colours, "").match(/^ *FAIL(?:ED|S)?\b.*(?:\n(?!(?: *FAIL|ok )).*){0,60}/gm) ?? []).map((error) => {
    const line = error.trim().replace(/\s*\n\s*/g, " | ")
    return line.length <= 800 ? line : `${line.slice(0, 300)} … ${line.slice(-500)}`
  })

const vitestCounts = (file: string): Counts => {
  const report = JSON.parse(readFileSync(file, "utf8")) as VitestReport
  const broken = report.testResults.filter(
    (result) => result.status === "failed" && result.assertionResults.every(({ status }) => status !== "failed")
  )
  return {
    passed: report.numPassedTests,
    failed: report.numFailedTests + broken.length,
    skipped: report.numPendingTests + report.numTodoTests
  }
}

const lastLine = /^(\d+) passed, (\d+) failed/

/** The figures of a part that has ended. */
export const countsOf = (figures: Figures, ended: Ended): Counts => {
  const one = { passed: ended.status === 0 ? 1 : 0, failed: 0, skipped: 0 }
  if (figures === "status") return honest(one, ended.status)
  if (figures === "vitest") {
    try {
      return honest(vitestCounts(ended.reportFile), ended.status)
    } catch {
      return { passed: 0, failed: 1, skipped: 0 }
    }
  }
  const [, passed, failed] = lastLine.exec(ended.lastLine) ?? []
  if (passed === undefined || failed === undefined) return { passed: 0, failed: 1, skipped: 0 }
  return honest({ passed: Number(passed), failed: Number(failed), skipped: 0 }, ended.status)
}
