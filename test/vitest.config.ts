// One configuration for every suite. Files end in `.test.ts`; `*.slow.test.ts` run only in the full test run.
import { defineConfig } from "vitest/config"

const slow = process.env["TOLLKEEPER_TEST_SLOW"] === "1"

export default defineConfig({
  root: new URL("..", import.meta.url).pathname,
  test: {
    include: ["test/**/*.test.ts"],
    exclude: ["**/node_modules/**", "test/official/**", "test/tools/**", ...(slow ? [] : ["test/**/*.slow.test.ts"])],
    globalSetup: ["test/support/globalSetup.ts"],
    pool: "forks",
    maxWorkers: 2,
    testTimeout: 30_000,
    hookTimeout: 60_000
  }
})
