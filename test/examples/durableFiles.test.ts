// Stored payments and sales after a crash of the machine: a new name is on the disk once its folder was written there,
// and a new folder once its parent was. Each test records which files and folders the program has synchronized.
import { expect, it } from "vitest"
import { spawnSync } from "node:child_process"
import { existsSync, mkdtempSync, readlinkSync, rmSync } from "node:fs"
import { open } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { filePayments, keptOf } from "../../examples/client/keptPayments.mjs"
import { fileStore } from "../../examples/seller/stores.mjs"
import { root } from "../../runtime/bootstrap.mjs"

const hasPython = spawnSync("python3", ["-c", "import cryptography"]).status === 0
const hasDescriptors = existsSync("/proc/self/fd")

/** Runs `act` in a new folder; the paths that were synchronized while `file` existed, or `made` alone. */
const record = async (name: string, act: (folder: string) => Promise<unknown>) => {
  const base = mkdtempSync(join(tmpdir(), "durable-"))
  const file = await open(base, "r")
  const prototype = Object.getPrototypeOf(file)
  const { sync } = prototype
  const synced: Array<string> = []
  prototype.sync = function (this: { fd: number }) {
    const path = readlinkSync(`/proc/self/fd/${this.fd}`)
    const isNamed = existsSync(join(base, "a", "b", name))
    synced.push(`${path.replace(base, "").replace(/\/[0-9a-f-]+\.draft$/, "/draft")}${isNamed ? " named" : ""}`)
    return sync.call(this)
  }
  try {
    await act(join(base, "a", "b"))
    return synced
  } finally {
    prototype.sync = sync
    await file.close()
    rmSync(base, { recursive: true })
  }
}

const request = { method: "GET", url: "http://seller/page", headers: {} }
/** Parents first of the new folders, then the draft, then the folder with the name. */
const order = ["/a", "", "/a/b/draft", "/a/b named"]

it.runIf(hasDescriptors)("a buyer's payment is on the disk before it is sent", async () => {
  const synced = await record("key.json", (folder) => filePayments(folder).putIfAbsent("key", keptOf(request, "paid")))
  expect(synced).toEqual(order)
})

it.runIf(hasDescriptors)("a payment that another process stored is on the disk too", async () => {
  const synced = await record("key.json", async (folder) => {
    await filePayments(folder).putIfAbsent("key", keptOf(request, "paid"))
    await filePayments(folder).putIfAbsent("key", keptOf(request, "later"))
  })
  expect(synced.slice(order.length)).toEqual(["/a/b/draft named", "/a/b named"])
})

it.runIf(hasDescriptors)("a seller's entry is on the disk, also if another process stored it", async () => {
  const synced = await record("claim-a", async (folder) => {
    await fileStore(folder).putIfAbsent("claim/a", "mine")
    await fileStore(folder).putIfAbsent("claim/a", "later")
  })
  expect(synced).toEqual([...order, "/a/b/draft named", "/a/b named"])
})

const inPython = `
import os, sys, tempfile
from pathlib import Path
from tollkeeper_x402.kept import FilePayments, Kept, Request
from tollkeeper_x402.sale import Records
own, kind, synced = os.fsync, sys.argv[1], []
with tempfile.TemporaryDirectory() as base:
    folder = Path(base) / "a" / "b"
    def fsync(handle):
        path = os.readlink(f"/proc/self/fd/{handle}").replace(base, "")
        isFolder = (Path(base) / path[1:]).is_dir()
        named = " named" if any(folder.glob("key*")) and isFolder else ""
        synced.append((path if isFolder else "draft") + named)
        own(handle)
    os.fsync = fsync
    if kind == "buyer":
        FilePayments(folder).put_if_absent("key", Kept(Request("GET", "http://seller/page"), "paid"))
    else:
        Records(folder).put("key", "mine")
print(synced)
`

it.runIf(hasPython && hasDescriptors)("Python's payments and sales are on the disk too", () => {
  const synced = (kind: string) =>
    spawnSync("python3", ["-c", inPython, kind], { cwd: join(root, "examples", "python"), encoding: "utf8" })
  for (const kind of ["buyer", "seller"]) {
    const { stderr, stdout } = synced(kind)
    expect(stdout.trim(), stderr).toBe("['/a', '', 'draft', '/a/b named']")
  }
})
