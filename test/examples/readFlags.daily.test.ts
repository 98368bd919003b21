// The example programs as a visitor starts them: they refuse unknown arguments before they do anything.
import { execFile } from "node:child_process"
import { join } from "node:path"
import { promisify } from "node:util"
import { expect, it } from "vitest"
import { root } from "../../runtime/bootstrap.mjs"

/** Runs an example that finds no facilitator, so that it cannot have paid anything by accident. */
const run = (example: string, ...args: ReadonlyArray<string>) =>
  promisify(execFile)(process.execPath, [join(root, "examples", example), ...args], {
    env: { ...process.env, FACILITATOR_URL: "http://127.0.0.1:1", NO_COLOR: "1" }
  }).then(
    ({ stderr, stdout }) => ({ status: 0, stdout, stderr }),
    (error) => ({ status: Number(error.code), stdout: String(error.stdout), stderr: String(error.stderr) })
  )

it("print their usage, and refuse an invalid flag, argument or number first", async () => {
  const help = await run("pay.ts", "--help")
  expect(help).toMatchObject({ status: 0, stdout: expect.stringContaining("pay [--upto | --batch] [--state DIR]") })
  const refused = await Promise.all([
    run("pay.ts", "--uptoo"),
    run("pay.ts", "--state"),
    run("pay.ts", "elsewhere"),
    run("agent.ts", "weather", "in Riga"),
    run("agent.ts", "--budget", "1.5")
  ])
  expect(refused.map(({ status, stdout }) => [status, stdout])).toEqual(refused.map(() => [1, ""]))
  expect(refused.map(({ stderr }) => stderr.trim())).toEqual([
    expect.stringMatching(/^pay: Unknown option '--uptoo' \(see --help\)$/),
    expect.stringMatching(/^pay: Option '--state <value>' argument missing/),
    expect.stringMatching(/^pay: Unexpected argument 'elsewhere'/),
    "agent: unexpected argument in Riga (see --help)",
    "agent: --budget takes a whole number of atomic units, as 20000 (see --help)"
  ])
}, 120_000)
