// A copy of the program with a wrong import in one optional plugin: commands name the plugin and go on.
import { spawnSync } from "node:child_process"
import { appendFileSync, cpSync, mkdtempSync, rmSync, symlinkSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import process from "node:process"
import { fileURLToPath } from "node:url"
import { afterAll, beforeAll, describe, expect, it } from "vitest"

const root = fileURLToPath(new URL("../../", import.meta.url))
let folder = ""

const run = (...words: ReadonlyArray<string>) => {
  const args = ["--disable-warning=ExperimentalWarning", join(folder, "runtime", "cli.mjs"), ...words]
  return spawnSync(process.execPath, args, { cwd: folder, encoding: "utf8", timeout: 120_000 })
}

describe("a wrong import in an optional plugin", () => {
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "tollkeeper-missing-"))
    for (const name of ["kernel", "plugins", "runtime", "migrations", "examples", "package.json"])
      cpSync(join(root, name), join(folder, name), { recursive: true })
    symlinkSync(join(root, "node_modules"), join(folder, "node_modules"))
    appendFileSync(join(folder, "plugins", "analytics", "plugin.ts"), 'import { nothing } from "./nowhere.ts"\n')
  })
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  it("is named, and other commands go on", () => {
    const checked = run("config", "check")
    expect(checked.stderr).toMatch(/the plugin analytics cannot be loaded: .*nowhere/)
    expect([checked.status, checked.stdout]).toEqual([0, expect.stringContaining("every setting is well-formed")])
    const listed = run("settlements", "list", "--state", join(folder, "state"))
    expect(listed.stderr).toContain("nothing was ever started")
    expect(listed.stderr).not.toContain("    at ")
  }, 240_000)
})
