// The systems on which the program starts: only the platform's name decides, so every one can be tested here.
import { describe, expect, it } from "vitest"
import { environmentOf, isTested, lacks, nodeIssue, systemIssue } from "../../runtime/system.mjs"
import { packageFile, typed } from "../../runtime/layout.ts"

describe("a system", () => {
  it("is Linux or macOS; Linux is the one that is tested", () => {
    expect([systemIssue("linux"), systemIssue("darwin")]).toEqual([undefined, undefined])
    expect([isTested("linux"), isTested("darwin")]).toEqual([true, false])
  })

  it("of Windows is refused with WSL as remedy, others with supported systems", () => {
    expect(systemIssue("win32")).toMatch(/^Windows itself is not supported: .*; run it in WSL 2/)
    expect(systemIssue("freebsd")).toBe("freebsd is not supported; run it on Linux, or on macOS")
  })
})

describe("an old Node", () => {
  it("is named with its version and the ones that are needed", () => {
    expect(nodeIssue("20.18.1")).toMatch(/^Node 20\.18\.1 cannot run this program: it needs Node 24/)
    expect(nodeIssue("22.18.0")).toMatch(/^Node 22\.18\.0/)
    expect([nodeIssue("22.19.0"), nodeIssue("24.1.0")]).toEqual([undefined, undefined])
  })
})

describe("the environment of a command", () => {
  it("sets missing allocator variables for start and ledger on Linux", () => {
    const started = environmentOf("start", { A: "1", MALLOC_TRIM_THRESHOLD_: "9" }, "linux")
    expect(started).toEqual({ A: "1", MALLOC_TRIM_THRESHOLD_: "9", MALLOC_MMAP_THRESHOLD_: "131072" })
    expect(environmentOf("ledger", { A: "1" }, "linux")).toEqual({ A: "1", MALLOC_ARENA_MAX: "1" })
    const environment = { A: "1" }
    expect(environmentOf("tools", environment, "linux")).toBe(environment)
    expect(environmentOf("start", environment, "darwin")).toBe(environment)
  })

  it("is incomplete until all variables are set, so a program re-executes once", () => {
    const required = environmentOf("start", {}, "linux")
    expect([lacks({}, required), lacks({ MALLOC_TRIM_THRESHOLD_: "9" }, required)]).toEqual([true, true])
    expect(lacks({ ...required, A: "1" }, required)).toBe(false)
  })
})

describe("a checkout", () => {
  it("names its commands by npm's, and finds the files of packages", () => {
    expect([typed("start"), typed("pay")]).toEqual(["npm start", "npm run pay"])
    expect(packageFile("preact/dist/preact.mjs")).toMatch(/node_modules.preact.dist.preact\.mjs$/)
    expect(() => packageFile("none-such/x.js")).toThrow(/is not installed; run npm install again/)
  })
})
