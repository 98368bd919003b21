// How Node loads the sources: without their types, from the cache as long as it matches the source. A small program in
// a separate folder, loaded in the project's own way.
import { execFileSync } from "node:child_process"
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import process from "node:process"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { root } from "../../runtime/bootstrap.mjs"

// Each test here starts a few processes.
vi.setConfig({ testTimeout: 120_000 })

const entry = `
import { loadLean } from "./loading.mjs"
loadLean()
const { answer } = await import("../kernel/answer.ts")
const isCompiling = process.moduleLoadList.some((name) => name.includes("amaro"))
console.log(JSON.stringify({ answer, isCompiling }))
`

// Deno strips types itself.
describe.runIf(!("Deno" in globalThis))("a source", () => {
  let folder: string
  const source = () => join(folder, "kernel", "answer.ts")
  const cache = () => join(folder, "node_modules", ".cache")
  const kept = (): ReadonlyArray<string> => {
    const [types = ""] = readdirSync(join(cache(), "tollkeeper"))
    return readdirSync(join(cache(), "tollkeeper", types)).map((name) => join(cache(), "tollkeeper", types, name))
  }
  const write = (answer: number): void => writeFileSync(source(), `export const answer: number = ${answer}\n`)
  const run = (program = "entry.mjs"): { readonly answer: number; readonly isCompiling: boolean } | undefined => {
    const words = ["--disable-warning=ExperimentalWarning", join(folder, "runtime", program)]
    const text = execFileSync(process.execPath, words, { encoding: "utf8", env: { PATH: process.env["PATH"] } })
    return text === "" ? undefined : JSON.parse(text)
  }

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "tollkeeper-loading-"))
    for (const name of ["kernel", "plugins", "runtime"]) mkdirSync(join(folder, name))
    copyFileSync(join(root, "runtime", "loading.mjs"), join(folder, "runtime", "loading.mjs"))
    writeFileSync(join(folder, "runtime", "entry.mjs"), entry)
    write(1)
  })
  afterEach(() => rmSync(folder, { recursive: true, force: true }))

  it("is compiled once, in a separate process, and again when it changes", () => {
    expect(run()).toEqual({ answer: 1, isCompiling: false })
    expect(kept()).toHaveLength(1)
    const text = readFileSync(kept()[0]!, "utf8")
    expect(run()).toEqual({ answer: 1, isCompiling: false })
    write(2)
    expect(run()).toEqual({ answer: 2, isCompiling: false })
    expect(kept()).toHaveLength(1)
    expect(readFileSync(kept()[0]!, "utf8")).not.toBe(text)
  })

  it("is compiled again when what is kept of it is damaged", () => {
    run()
    const [file = ""] = kept()
    writeFileSync(file, readFileSync(file, "utf8").replace("= 1", "= 3").slice(0, -1))
    expect(run()).toEqual({ answer: 1, isCompiling: false })
  })

  it("is compiled in the process itself where nothing can be kept", () => {
    mkdirSync(join(folder, "node_modules"))
    writeFileSync(cache(), "a file")
    expect(run()).toEqual({ answer: 1, isCompiling: true })
  })

  it("is compiled in advance by running the loader itself, for an image", () => {
    expect(run("loading.mjs")).toBeUndefined()
    expect(kept()).toHaveLength(1)
    expect(run()).toEqual({ answer: 1, isCompiling: false })
  })
})
