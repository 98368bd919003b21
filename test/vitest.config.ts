// One configuration for every suite. Files end in `.test.ts`; `*.daily.test.ts` take seconds and are left out of `npm
// run ok`, `*.slow.test.ts` take longer and run only in the full test run.
import { fileURLToPath } from "node:url"
import { defineConfig } from "vitest/config"
import { BaseSequencer, type TestSpecification } from "vitest/node"

const onlySlow = process.env["TOLLKEEPER_TEST_SLOW"] === "only"
const onlyFast = process.env["TOLLKEEPER_TEST_FAST"] === "only"
const onlyDaily = process.env["TOLLKEEPER_TEST_DAILY"] === "only"
/**
 * The architecture tests only read the text of the sources, which is the same on every runtime, so they only run on
 * Node. Tests that execute the program run on both.
 */
const textOnly = "Deno" in globalThis ? ["test/architecture/**"] : []

/**
 * Process tests that use the platform itself: sockets, threads, signals, incoming bodies, the database's wire,
 * signatures, the decisions of the channel store.
 */
const ofPlatform = [
  "test/kernel/{database,http,signer}/*.daily.test.ts",
  "test/kernel/payment/{ended,hostile,input,surroundings,twins}.daily.test.ts",
  "test/plugins/batch-store/routes.daily.test.ts",
  "test/plugins/mcp-tools/transports.daily.test.ts",
  "test/plugins/ledger-local/engine/**/*.daily.test.ts",
  "test/plugins/ledger-local/node/journal.daily.test.ts",
  "test/runtime/platform/*.daily.test.ts",
  "test/runtime/stop.daily.test.ts"
]

const allDaily = ["test/**/*.daily.test.ts"]
const ofPlugins = ["test/plugins/**/*.daily.test.ts"]
/** The process tests that TOLLKEEPER_TEST_PROCESSES chooses; two pairs, each of which covers all of them. */
const choices: Readonly<Record<string, { readonly include: Array<string>; readonly exclude: Array<string> }>> = {
  platform: { include: ofPlatform, exclude: [] },
  others: { include: allDaily, exclude: ofPlatform },
  plugins: { include: ofPlugins, exclude: [] },
  house: { include: allDaily, exclude: ofPlugins }
}
const chosen = choices[process.env["TOLLKEEPER_TEST_PROCESSES"] ?? ""] ?? { include: allDaily, exclude: [] }
const included = onlySlow ? ["test/**/*.slow.test.ts"] : onlyDaily ? chosen.include : ["test/**/*.test.ts"]

/**
 * Long files begin first, so that no worker is left with a long file at the end. A fresh checkout has no times of an
 * earlier run.
 */
class LongFirst extends BaseSequencer {
  override async sort(files: Array<TestSpecification>): Promise<Array<TestSpecification>> {
    const isLong = ({ moduleId }: TestSpecification) => /\.(daily|slow)\.test\.ts$/.test(moduleId)
    const sorted = await super.sort(files)
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))]
  }
}

const compileCache = fileURLToPath(new URL("../node_modules/.cache/tollkeeper/compiled", import.meta.url))

export default defineConfig({
  root: fileURLToPath(new URL("..", import.meta.url)),
  test: {
    include: included,
    exclude: [
      "**/node_modules/**",
      "test/official/**",
      "test/tools/**",
      ...textOnly,
      ...(onlyDaily ? chosen.exclude : []),
      ...(onlySlow ? [] : ["test/**/*.slow.test.ts"]),
      ...(onlyFast ? ["test/**/*.daily.test.ts"] : [])
    ],
    globalSetup: ["test/support/globalSetup.ts"],
    pool: "forks",
    // A separate process costs a file two seconds of imports and cold code, as much as most tests take, so files share
    // processes. The slow tests measure, and have their own.
    isolate: !(onlyFast || onlyDaily),
    // Programs that tests start reuse each other's compiled modules: a quarter less time to load them. The slow tests
    // measure memory, and do without.
    env: onlySlow ? {} : { NODE_COMPILE_CACHE: compileCache },
    // The output of passing tests is noise.
    silent: "passed-only",
    // Twice the processors of a small machine: a test waits about as long as it computes, for a ledger that closes, a
    // program that starts, PostgreSQL. Some of the slow ones measure.
    maxWorkers: onlySlow ? 2 : 4,
    sequence: { sequencer: LongFirst },
    // Limits for hanging tests. A shared machine takes ten times as long as a quiet one, which is not a failure.
    testTimeout: 240_000,
    hookTimeout: 240_000
  }
})
