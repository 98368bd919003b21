// The package without a clone: `npm pack`, `npm install FILE.tgz` in an empty folder, and the first minute there with
// `npx tollkeeper`, on Node and on Deno; each step's time is printed. The shipped files are a fixed list, without any
// test.
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { installPacked, packInto, pathsIn, playFirstMinute, printSteps, scriptsIn } from "./firstMinute.ts"

const folder = mkdtempSync(join(tmpdir(), "tollkeeper-packed-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

let packed: Awaited<ReturnType<typeof packInto>>
let installed: Awaited<ReturnType<typeof installPacked>>

beforeAll(async () => {
  packed = await packInto(folder)
  installed = await installPacked(packed.archive, join(folder, "empty"))
}, 600_000)

describe("the package", () => {
  it("holds the program and its data, no source, test or tool", async () => {
    const paths = (await pathsIn(packed.archive)).filter((path) => !path.endsWith("/"))
    const shipped = [
      /^(package\.json|README\.md|LICENSE|CHANGELOG\.md)$/,
      /^examples\/(guides|screens)\/[^/]+$/,
      // Packages for sellers and buyers, as the guides name them.
      /^examples\/(client|curl|python|receipts|seller)\/.+$/,
      /^runtime\/(bootstrap|system|tollkeeper)\.mjs$/,
      /^runtime\/dist\/(kernel|plugins|runtime|migrations|examples)\/.+$/,
      /^runtime\/dist\/packages\/swagger-ui-dist\/[^/]+$/,
      // `@opentelemetry/sdk-node` with its dependencies.
      /^node_modules\/.+$/
    ]
    expect(paths.filter((path) => !shipped.some((form) => form.test(path)))).toEqual([])
    const sources = paths.filter(
      (path) => path.endsWith(".ts") && !/^node_modules\/|\/plugins\/dashboard\/web\/|client\/types\.ts$/.test(path)
    )
    expect(sources).toEqual([])
    expect(paths).toEqual(
      expect.arrayContaining([
        "runtime/dist/runtime/cli.mjs",
        "runtime/dist/runtime/platform/pgliteWorker.js",
        "runtime/dist/runtime/profiles/local.yaml",
        "runtime/dist/migrations/kernel/0001_facts.sql",
        "runtime/dist/plugins/search-semantic/embedded/words.bin",
        "runtime/dist/plugins/search-semantic/embedded/WORDNET.txt",
        "runtime/dist/plugins/search-semantic/embedded/phrases.txt",
        "runtime/dist/plugins/search-semantic/embedded/UNICODE.txt",
        "runtime/dist/plugins/dashboard/web/visitorPage.ts"
      ])
    )
  })

  it("runs no install script, of its own or of a dependency", async () => {
    expect(await scriptsIn(join(folder, "empty"))).toEqual([])
  })

  it.each(["node", "deno"] as const)(
    "starts, pays, shows itself, stops and is reset in an empty folder, on %s",
    async (runtime) => {
      const steps = await playFirstMinute(installed[runtime], join(folder, "empty"), [packed.step, installed.step])
      printSteps(`packed, ${runtime}`, steps)
      expect(steps.map(({ name }) => name)).toEqual([
        "npm pack",
        "npm install",
        "start",
        "pay",
        "read",
        "channels list",
        "stop",
        "reset"
      ])
      expect(steps.find(({ name }) => name === "stop")?.said).toBe("status 0")
    },
    900_000
  )
})
