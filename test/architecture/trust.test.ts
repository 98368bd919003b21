// The form of `kernel/decisions/trust.md`: every row is complete, and every test in it exists.
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { expect, it } from "vitest"

const root = join(import.meta.dirname, "../..")
const columns = ["decision", "input", "controlled by", "cost to forge", "confirmed by", "residual risk", "test"]

const rows = readFileSync(join(root, "kernel/decisions/trust.md"), "utf8")
  .split("\n")
  .filter((line) => line.startsWith("|") && !/^\|[-|]+\|$/.test(line))
  .map((line) =>
    line
      .slice(1, -1)
      .split(/(?<!\\)\|/)
      .map((cell) => cell.trim())
  )
const decisions = rows.filter(([decision]) => decision !== "decision")

it("every row has all columns", () => {
  for (const header of rows.filter(([decision]) => decision === "decision")) expect(header).toEqual(columns)
  expect(decisions.length).toBeGreaterThan(25)
  expect(decisions.filter((row) => row.length !== columns.length || row.includes(""))).toEqual([])
})

it("every decision is a question that appears once", () => {
  const questions = decisions.map(([decision]) => decision)
  expect(questions.filter((question) => !question?.endsWith("?"))).toEqual([])
  expect(new Set(questions).size).toBe(questions.length)
})

it("every test that a row names exists", () => {
  const missing = decisions.filter(([, , , , , , test = ""]) => {
    const paths = [...test.matchAll(/`(test\/[^`]+)`/g)].map(([, path]) => path!)
    return test !== "open" && (paths.length === 0 || paths.some((path) => !existsSync(join(root, path))))
  })
  expect(missing.map(([decision, , , , , , test]) => `${decision} ${test}`)).toEqual([])
})
