// On which systems the program starts: a name for the platform is all that decides, so every one can be judged here.
import { describe, expect, it } from "vitest"
import { isTested, systemFault } from "../../runtime/system.mjs"
import { moduleAt, packageFile, typed } from "../../runtime/layout.ts"

describe("a system", () => {
  it("is Linux or macOS; Linux is the one that is tested", () => {
    expect([systemFault("linux"), systemFault("darwin")]).toEqual([undefined, undefined])
    expect([isTested("linux"), isTested("darwin")]).toEqual([true, false])
  })

  it("that is Windows is refused with the reason and WSL as the remedy, others with the systems there are", () => {
    expect(systemFault("win32")).toMatch(/^Windows itself is not supported: .*; run it in WSL 2/)
    expect(systemFault("freebsd")).toBe("freebsd is not supported; run it on Linux, or on macOS")
  })
})

describe("a checkout", () => {
  it("names its modules by their sources, its commands by npm's, and finds the files of packages", () => {
    expect(moduleAt("./x", "file:///a/b.ts").href).toBe("file:///a/x.ts")
    expect([typed("start"), typed("pay")]).toEqual(["npm start", "npm run pay"])
    expect(packageFile("preact/dist/preact.mjs")).toMatch(/node_modules.preact.dist.preact\.mjs$/)
    expect(() => packageFile("none-such/x.js")).toThrow(/is not installed; run npm install again/)
  })
})
