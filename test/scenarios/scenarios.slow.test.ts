// A sample of `npm run scenarios`: replicas recreated under load, a silent database, a restored backup. Without
// Prometheus alerts are not checked, and the run prints this.
import { execFile } from "node:child_process"
import process from "node:process"
import { promisify } from "node:util"
import { expect, it } from "vitest"
import { root } from "../../runtime/bootstrap.mjs"
import { databaseKinds } from "../support/databases.ts"
import { prometheusProgram } from "./Monitor.ts"

it.skipIf(!databaseKinds.includes("postgres"))(
  "two replicas lose no payment in a rolling restart, without their database, and by a restore",
  async () => {
    const options = prometheusProgram() === undefined ? ["--without-alerts"] : []
    const words = [
      "test/scenarios/run.ts",
      "--only",
      "restart,database,backup",
      "--clients",
      "3",
      "--stop-max",
      "60",
      ...options
    ]
    const { stdout } = await promisify(execFile)(process.execPath, words, { cwd: root }).catch((error) => error)
    expect(stdout).toMatch(/^3 of 3 scenes .* payments settled, each once, .* 0 issues$/m)
  },
  900_000
)
