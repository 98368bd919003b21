// A fresh clone of the committed state, and the first minute there, by `npm run` on Node and by `deno task` on Deno;
// each step's time is printed. If the sources are not a repository, as in an archive of them, there is nothing to
// clone.
import { existsSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { root } from "../../runtime/bootstrap.mjs"
import { clone, playFirstMinute, printSteps } from "./firstMinute.ts"

const folder = mkdtempSync(join(tmpdir(), "tollkeeper-clone-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const isRepository = existsSync(join(root, ".git"))

let cloned: Awaited<ReturnType<typeof clone>>

beforeAll(async () => {
  if (isRepository) cloned = await clone(join(folder, "tollkeeper"))
}, 600_000)

describe.skipIf(!isRepository)("a fresh clone", () => {
  it.each(["node", "deno"] as const)(
    "starts, pays, shows itself, stops and is reset, on %s",
    async (runtime) => {
      const steps = await playFirstMinute(cloned[runtime], join(folder, "tollkeeper"), cloned.steps)
      printSteps(`clone, ${runtime}`, steps)
      const names = ["git clone", "npm ci", "start", "pay", "read", "channels list", "stop", "reset"]
      expect(steps.map(({ name }) => name)).toEqual(names)
      expect(steps.find(({ name }) => name === "stop")?.said).toBe("status 0")
    },
    900_000
  )
})
