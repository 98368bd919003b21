// `npm run browser`: the pages in the system's Chromium, with screenshots of every view for review. A missing Chromium
// is installed if the system allows it; otherwise the run prints a message. An argument sets the folder of the
// screenshots.
import { spawnSync } from "node:child_process"
import { existsSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
import process from "node:process"
import { root } from "../../runtime/bootstrap.mjs"
import { chromiumPath, howToGetOne } from "./chromium.ts"
import { figuresFile } from "./timed.ts"

if (chromiumPath() === undefined && process.getuid?.() === 0)
  spawnSync("apt-get", ["install", "-y", "--no-install-recommends", "chromium"], { stdio: "inherit" })
const path = chromiumPath()
if (path === undefined) {
  console.error(howToGetOne)
  process.exit(1)
}
const screens = resolve(process.argv[2] ?? join(tmpdir(), "tollkeeper-screens"))
const figures = join(screens, figuresFile)
rmSync(figures, { force: true })
// One file after the other: timed tests must not run in parallel with another browser of this run.
const args = [
  "node_modules/vitest/vitest.mjs",
  "run",
  "--config",
  "test/vitest.config.ts",
  "--maxWorkers=1",
  "test/browser"
]
const { status } = spawnSync(process.execPath, args, {
  cwd: root,
  stdio: "inherit",
  env: { ...process.env, TOLLKEEPER_TEST_SLOW: "only", TOLLKEEPER_TEST_SCREENS: screens }
})
if (existsSync(figures)) console.log(readFileSync(figures, "utf8").trimEnd())
console.log(`${path}; pictures in ${screens}`)
process.exit(status ?? 1)
