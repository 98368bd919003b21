// Runs all parts of a plan even if some fail, prints the time and figures of each, and ends with the line `N passed, N
// failed` over all of them; the exit status is 1 if anything failed. Arguments after the plan keep only the parts with
// one of them in their names: `npm test -- deno`. Failures are listed again at the end, by name, and appended to the
// file in `TOLLKEEPER_TEST_FAILURES`, for a caller that only sees the last lines of several runs.
import { appendFileSync } from "node:fs"
import { join } from "node:path"
import process from "node:process"
import { install, root } from "../../runtime/bootstrap.mjs"
import { denoProgram } from "../support/denoProgram.ts"
import { systemBinaries } from "../support/postgres.ts"
import type { Part } from "./Part.ts"
import { type PlanName, type Step, stepsOf } from "./parts.ts"
import { type Output, type Result, runPart } from "./runPart.ts"

const plans: ReadonlyArray<string> = ["check", "daily", "full", "sample"] satisfies ReadonlyArray<PlanName>
const [plan = "daily", ...words] = process.argv.slice(2)
if (!plans.includes(plan)) {
  console.error(`no plan ${plan}; there are ${plans.join(", ")}`)
  process.exit(2)
}

if (plan !== "check" && systemBinaries() === undefined && !process.env["TOLLKEEPER_TEST_DATABASE_URL"]) {
  install(join(root, "test", "tools", "postgres"), "a PostgreSQL server for the tests")
}

const isAsked = ({ name }: Part): boolean =>
  words.length === 0 || words.some((word) => name.toLowerCase().includes(word.toLowerCase()))
const steps = stepsOf(plan as PlanName, denoProgram).map((lanes) =>
  lanes.map((parts) => parts.filter(isAsked)).filter((parts) => parts.length > 0)
)

const runLane = async (parts: ReadonlyArray<Part>, output: Output): Promise<ReadonlyArray<Result>> => {
  const results: Array<Result> = []
  for (const part of parts) {
    if (output === "passed") console.log(`\n── ${part.name}`)
    results.push(await runPart(part, output))
  }
  return results
}
// At most one lane prints while it runs, otherwise a line's part would be unclear.
const runStep = async (lanes: Step): Promise<ReadonlyArray<Result>> =>
  (await Promise.all(lanes.map((parts, lane) => runLane(parts, lane === 0 ? "passed" : "held")))).flat()
const results: Array<Result> = []
for (const lanes of steps) results.push(...(await runStep(lanes)))

console.log("\npart                                          seconds   passed   failed  skipped")
for (const { counts, part, seconds } of results) {
  const figures = [seconds.toFixed(1), counts.passed, counts.failed, counts.skipped]
  console.log(part.name.padEnd(44) + figures.map((figure) => String(figure).padStart(9)).join(""))
}
for (const { counts, failures, part } of results) {
  if (counts.failed === 0) continue
  const lines = failures.length === 0 ? [""] : failures.map((failure) => `: ${failure}`)
  const reported = lines.map((line) => `failed in ${part.name}${line}`).join("\n")
  console.log(`\n${reported}`)
  const file = process.env["TOLLKEEPER_TEST_FAILURES"]
  if (file !== undefined) appendFileSync(file, `${reported}\n`)
}

const sum = (key: "passed" | "failed") => results.reduce((total, { counts }) => total + counts[key], 0)
console.log(`\n${sum("passed")} passed, ${sum("failed")} failed`)
process.exitCode = sum("failed") > 0 || results.length === 0 ? 1 : 0
