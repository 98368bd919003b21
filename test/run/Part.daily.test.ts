import { execFileSync } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterAll, describe, expect, it } from "vitest"
import { conformanceParts, everyDay } from "../conformance/conformanceParts.ts"
import { countsOf, failuresOf, errorsOf, type Part } from "./Part.ts"
import { stepsOf } from "./parts.ts"
import { runPart } from "./runPart.ts"

const root = fileURLToPath(new URL("../..", import.meta.url))
const folder = mkdtempSync(join(tmpdir(), "tollkeeper-part-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const report = (text: string) => {
  const reportFile = join(folder, `${Math.random()}.json`)
  writeFileSync(reportFile, text)
  return reportFile
}
const vitest = (status: number | null, reportFile: string) => countsOf("vitest", { status, lastLine: "", reportFile })
const counts = (passed: number, failed: number, testResults: ReadonlyArray<unknown> = []) =>
  report(
    JSON.stringify({ numPassedTests: passed, numFailedTests: failed, numPendingTests: 2, numTodoTests: 1, testResults })
  )

/** A part with a report written by this file in vitest's format. */
const runBy = (runner: string): Part => ({
  name: "part",
  command: process.execPath,
  args: [runner],
  figures: "vitest",
  minutesMax: 1
})

/** On continuous integration, or on a developer's machine. */
const onMachine = async (machine: "own" | "shared", part: Part) => {
  const before = process.env["CI"]
  try {
    process.env["CI"] = machine === "shared" ? "true" : ""
    return await runPart(part, "held")
  } finally {
    if (before === undefined) delete process.env["CI"]
    else process.env["CI"] = before
  }
}

describe("the figures of a part", () => {
  it("are one test for a program that only has an exit status", () => {
    const of = (status: number | null) =>
      countsOf("status", { status, lastLine: "12 passed, 0 failed", reportFile: "" })
    expect(of(0)).toEqual({ passed: 1, failed: 0, skipped: 0 })
    expect(of(1)).toEqual({ passed: 0, failed: 1, skipped: 0 })
    expect(of(null)).toEqual({ passed: 0, failed: 1, skipped: 0 })
  })

  it("are vitest's counts, and an unloadable file is a failure", () => {
    expect(vitest(0, counts(7, 0))).toEqual({ passed: 7, failed: 0, skipped: 3 })
    expect(vitest(1, counts(6, 1, [{ status: "failed", assertionResults: [{ status: "failed" }] }]))).toMatchObject({
      passed: 6,
      failed: 1
    })
    expect(vitest(1, counts(6, 0, [{ status: "failed", assertionResults: [] }]))).toMatchObject({
      passed: 6,
      failed: 1
    })
  })

  it("are never green without report or last line, or after a crash", () => {
    expect(vitest(0, join(folder, "none.json"))).toMatchObject({ passed: 0, failed: 1 })
    expect(vitest(0, report("{"))).toMatchObject({ passed: 0, failed: 1 })
    expect(vitest(1, counts(7, 0))).toMatchObject({ passed: 7, failed: 1 })
    const last = (status: number | null, lastLine: string) =>
      countsOf("last-line", { status, lastLine, reportFile: "" })
    expect(last(0, "296 passed, 0 failed")).toEqual({ passed: 296, failed: 0, skipped: 0 })
    expect(last(0, "all well")).toMatchObject({ passed: 0, failed: 1 })
    expect(last(1, "296 passed, 0 failed")).toMatchObject({ passed: 296, failed: 1 })
    expect(last(null, "")).toMatchObject({ passed: 0, failed: 1 })
  })
})

it("names failures and their beginning, unloadable files too; none without a report", () => {
  const passed = { status: "passed", fullName: "holds" }
  const failed = {
    status: "failed",
    fullName: "adds up",
    failureMessages: ["\u001b[31mexpected 1\nto be 2\nat a.ts:1"]
  }
  const testResults = [
    { name: "/tree/test/a.test.ts", status: "failed", assertionResults: [passed, failed] },
    { name: "/tree/test/b.test.ts", status: "failed", message: "no such module", assertionResults: [] },
    { name: "/tree/test/c.test.ts", status: "passed", assertionResults: [passed] }
  ]
  expect(failuresOf(report(JSON.stringify({ testResults })), "/tree")).toEqual([
    "test/a.test.ts > adds up: expected 1 to be 2",
    "test/b.test.ts: no such module"
  ])
  expect(failuresOf(join(folder, "none.json"), "/tree")).toEqual([])
})

it("lists each failure of a program without a report, beginning and end", () => {
  const output = [
    "ok    README.md: 7 of 7 blocks",
    "FAILED buyer.md:60 it does not print",
    "200 { …",
    "but",
    "x".repeat(2_000),
    "Error: too late",
    "ok    buyer.md",
    "  FAIL  it settles once",
    "        AssertionError",
    "67 passed, 2 failed"
  ].join("\n")
  const [first, second, ...rest] = errorsOf(output)
  expect(first).toMatch(/^FAILED buyer\.md:60 it does not print \| 200 \{ … \| but \| x+ … x+ \| Error: too late$/)
  expect(second).toBe("FAIL  it settles once | AssertionError | 67 passed, 2 failed")
  expect(rest).toEqual([])
  expect(errorsOf("3 passed, 0 failed")).toEqual([])
})

describe("a part", () => {
  const program = (script: string, minutesMax = 1): Part => ({
    name: "part",
    command: process.execPath,
    args: ["-e", script],
    figures: "last-line",
    minutesMax
  })

  it("is read from what it writes, colours and all", async () => {
    const { counts } = await runPart(
      program("console.log('\\u001b[32m3 passed, 1 failed\\u001b[39m'); process.exit(1)")
    )
    expect(counts).toEqual({ passed: 3, failed: 1, skipped: 0 })
  })

  it("without a report lists its lines of failures", async () => {
    const failing = program("console.log('FAILED b.md:9 no answer\\n1 passed, 1 failed'); process.exit(1)")
    expect((await runPart(failing)).failures).toEqual(["FAILED b.md:9 no answer | 1 passed, 1 failed"])
  })

  it("that takes too long is stopped and has failed", async () => {
    const { counts, failures, seconds } = await runPart(
      program("console.log('3 passed, 0 failed'); setInterval(() => {}, 1_000)", 0.01)
    )
    expect(counts.failed).toBe(1)
    expect(failures).toEqual(["it took more than 0.01 minutes and was stopped"])
    expect(seconds).toBeLessThan(20)
  })

  it("that ends leaves one beside it running", async () => {
    const short = runPart(program("console.log('1 passed, 0 failed')"), "held")
    const long = runPart(program("setTimeout(() => console.log('2 passed, 0 failed'), 1_500)"), "held")
    expect((await short).counts).toEqual({ passed: 1, failed: 0, skipped: 0 })
    expect((await long).counts).toEqual({ passed: 2, failed: 0, skipped: 0 })
  })

  it("retries only files with failures, and only on a shared machine", async () => {
    // At first it fails in two files. When only one file is run again, it fails if it is `bad`.
    const runner = join(folder, "runner.mjs")
    writeFileSync(
      runner,
      `import { writeFileSync } from "node:fs"
      const [file] = process.argv.slice(2).filter((word) => word.startsWith("--outputFile"))
      const asked = process.argv.slice(2).filter((word) => !word.startsWith("--"))
      const failed = asked.length === 0 ? ["moody", "bad"] : asked.filter((name) => name === "bad")
      const testResults = (asked.length === 0 ? ["moody", "bad", "good"] : asked).map((name) => {
        const status = failed.includes(name) ? "failed" : "passed"
        return { name, status, assertionResults: [{ status, fullName: "it", failureMessages: ["no"] }] }
      })
      writeFileSync(file.split("=")[1], JSON.stringify({ numPassedTests: testResults.length - failed.length,
        numFailedTests: failed.length, numPendingTests: 0, numTodoTests: 0, testResults }))
      process.exit(failed.length === 0 ? 0 : 1)`
    )
    const part = runBy(runner)
    expect((await onMachine("own", part)).counts).toEqual({ passed: 1, failed: 2, skipped: 0 })
    const { counts, failures } = await onMachine("shared", part)
    expect(counts).toEqual({ passed: 2, failed: 1, skipped: 0 })
    expect(failures).toEqual(["bad > it: no"])
  })

  it("retries nothing when more than eight files failed", async () => {
    const runner = join(folder, "failing.mjs")
    const runs = join(folder, "runs")
    writeFileSync(
      runner,
      `import { appendFileSync, writeFileSync } from "node:fs"
      appendFileSync(${JSON.stringify(runs)}, process.env.FAILING + " ")
      const [file] = process.argv.slice(2).filter((word) => word.startsWith("--outputFile"))
      const assertionResults = [{ status: "failed", fullName: "it", failureMessages: ["no"] }]
      const testResults = Array.from({ length: Number(process.env.FAILING) }, (_, at) =>
        ({ name: "file" + at, status: "failed", assertionResults }))
      writeFileSync(file.split("=")[1], JSON.stringify({ numPassedTests: 0, numFailedTests: testResults.length,
        numPendingTests: 0, numTodoTests: 0, testResults }))
      process.exit(1)`
    )
    for (const failing of ["8", "9"]) {
      const part = { ...runBy(runner), env: { FAILING: failing } }
      expect((await onMachine("shared", part)).counts.failed).toBe(Number(failing))
    }
    expect(readFileSync(runs, "utf8")).toBe("8 8 9 ")
  })

  it("runs a program with few failures again, if it says so", async () => {
    const runs = join(folder, "cases")
    const failing = (failed: number, again: boolean): Part => ({
      ...program(`
        const { appendFileSync, existsSync, readFileSync } = require("node:fs")
        const before = existsSync(${JSON.stringify(runs)}) ? readFileSync(${JSON.stringify(runs)}, "utf8") : ""
        appendFileSync(${JSON.stringify(runs)}, "${failed}")
        const failed = before.endsWith("${failed}") ? 0 : ${failed}
        console.log(9 - failed + " passed, " + failed + " failed")
        process.exit(failed)`),
      ...(again ? { again: true } : {})
    })
    expect((await onMachine("own", failing(1, true))).counts).toMatchObject({ failed: 1 })
    expect((await onMachine("shared", failing(2, false))).counts).toMatchObject({ failed: 2 })
    expect((await onMachine("shared", failing(3, true))).counts).toEqual({ passed: 9, failed: 0, skipped: 0 })
    expect((await onMachine("shared", failing(4, true))).counts).toMatchObject({ failed: 4 })
    expect(readFileSync(runs, "utf8")).toBe("12334")
  })

  it("whose program is not there has failed", async () => {
    const { counts } = await runPart({ ...program(""), command: join(folder, "none") })
    expect(counts).toMatchObject({ passed: 0, failed: 1 })
  })
})

describe("the plans", () => {
  it("allow a part twice its time on slow machines within limits", () => {
    // Continuous integration ends after 90 minutes, and the two plans need up to 60 if nothing hangs. A part that hangs
    // takes at most 30 minutes more than its usual time.
    for (const part of [...stepsOf("daily", "deno"), ...stepsOf("full", "deno")].flat(2)) {
      expect(part.minutesMax, part.name).toBeLessThanOrEqual(40)
    }
  })

  it("sample every share of the rotating parts within some days", () => {
    const sampled = Array.from({ length: 120 }, (_, day) => stepsOf("sample", "deno", day).flat(2))
    const shards = new Map<string, Set<string>>()
    for (const { args, name } of sampled.flat()) {
      const shard = args.find((arg) => arg.startsWith("--shard="))
      const part = name.replace(/, share .*/, "")
      if (shard !== undefined) shards.set(part, (shards.get(part) ?? new Set()).add(shard))
    }
    expect(shards.size).toBe(7)
    for (const [part, seen] of shards) {
      const [of] = [...seen].map((shard) => Number(shard.split("/")[1]))
      expect([part, seen.size]).toEqual([part, of])
    }
    const conformed = sampled.flatMap((parts) =>
      parts.filter(({ name }) => name.startsWith("conformance:")).map(({ args }) => args.slice(1))
    )
    expect(conformed).toHaveLength(120)
    for (const each of conformed) expect(each).toEqual(expect.arrayContaining([...everyDay]))
    expect(new Set(conformed.flat())).toEqual(new Set(conformanceParts))
  })

  it("run each test on Deno in the full plan", () => {
    const onDeno = stepsOf("full", "deno")
      .flat(2)
      .filter(({ command, name }) => command === "deno" && name.includes("tests"))
      .map(({ env }) => env)
    expect(onDeno).toMatchObject([
      { TOLLKEEPER_TEST_FAST: "only" },
      { TOLLKEEPER_TEST_DAILY: "only", TOLLKEEPER_TEST_PROCESSES: "platform" },
      { TOLLKEEPER_TEST_DAILY: "only", TOLLKEEPER_TEST_PROCESSES: "others" }
    ])
  })

  it("run each test of processes on Node on both databases", () => {
    const onNode = (plan: "daily" | "full") =>
      stepsOf(plan, "deno")
        .flat(2)
        .filter(({ command, env }) => command !== "deno" && env?.["TOLLKEEPER_TEST_DAILY"] === "only")
        .map(({ env }) => [env?.["TOLLKEEPER_TEST_PROCESSES"], env?.["TOLLKEEPER_TEST_DATABASES"]])
    expect(onNode("daily")).toEqual([
      ["house", "postgres"],
      ["plugins", "postgres"]
    ])
    expect(onNode("full")).toEqual([
      ["house", "pglite"],
      ["plugins", "pglite"]
    ])
  })

  it("choose the tests of processes by pairs that cover the whole", async () => {
    const filesOf = (which: string) => {
      const env = { ...process.env, TOLLKEEPER_TEST_DAILY: "only", TOLLKEEPER_TEST_PROCESSES: which }
      const words = ["node_modules/vitest/vitest.mjs", "list", "--filesOnly", "--config", "test/vitest.config.ts"]
      const listed = execFileSync(process.execPath, words, { cwd: root, env, encoding: "utf8" })
      return listed.split("\n").filter((line) => line.includes(".daily.test.ts"))
    }
    const all = filesOf("").sort()
    expect(all.length).toBeGreaterThan(100)
    for (const [some, rest] of [
      ["platform", "others"],
      ["plugins", "house"]
    ] as const)
      expect([...filesOf(some), ...filesOf(rest)].sort()).toEqual(all)
  })
})
