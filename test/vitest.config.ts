// One configuration for every suite. Files end in `.test.ts`; `*.slow.test.ts` run only in the full test run.
import { fileURLToPath } from "node:url"
import { defineConfig } from "vitest/config"

const onlySlow = process.env["TOLLKEEPER_TEST_SLOW"] === "only"

export default defineConfig({
  root: fileURLToPath(new URL("..", import.meta.url)),
  test: {
    include: [onlySlow ? "test/**/*.slow.test.ts" : "test/**/*.test.ts"],
    exclude: ["**/node_modules/**", "test/official/**", "test/tools/**", ...(onlySlow ? [] : ["test/**/*.slow.test.ts"])],
    globalSetup: ["test/support/globalSetup.ts"],
    pool: "forks",
    // What a passing test prints is noise.
    silent: "passed-only",
    maxWorkers: 2,
    testTimeout: 30_000,
    hookTimeout: 60_000
  }
})
