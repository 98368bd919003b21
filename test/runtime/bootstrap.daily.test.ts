import { spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, describe, expect, it } from "vitest"
import { findNode, isInstalled, root } from "../../runtime/bootstrap.mjs"

const folder = mkdtempSync(join(tmpdir(), "tollkeeper-bootstrap-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const entry = (version: string, more = {}) => ({ version, integrity: `sha512-${version}`, ...more })

/** A folder with a lockfile, and npm's record of its installation. */
const project = (expected: object, present?: object): string => {
  const path = mkdtempSync(join(folder, "project-"))
  writeFileSync(join(path, "package-lock.json"), JSON.stringify({ packages: { "": {}, ...expected } }))
  mkdirSync(join(path, "node_modules"))
  if (present !== undefined)
    writeFileSync(join(path, "node_modules", ".package-lock.json"), JSON.stringify({ packages: present }))
  return path
}

describe("an installation", () => {
  it("is current when it matches the lockfile, foreign builds excepted", () => {
    const a = { "node_modules/a": entry("1.0.0") }
    const other = { "node_modules/b": entry("1.0.0", { optional: true }) }
    expect(isInstalled(project(a, a))).toBe(true)
    expect(isInstalled(project({ ...a, ...other }, a))).toBe(true)
    expect(isInstalled(project(a, { ...a, ...other }), { lenient: true })).toBe(true)
  })

  it("is outdated when a package is missing, changed, left over or incomplete", () => {
    const a = { "node_modules/a": entry("1.0.0") }
    const b = { "node_modules/b": entry("1.0.0") }
    expect(isInstalled(project(a))).toBe(false)
    expect(isInstalled(project({ ...a, ...b }, a))).toBe(false)
    expect(isInstalled(project({ "node_modules/a": entry("1.0.1") }, a))).toBe(false)
    expect(isInstalled(project({ "node_modules/a": { ...entry("1.0.0"), integrity: "sha512-x" } }, a))).toBe(false)
    expect(isInstalled(project(a, { ...a, ...b }))).toBe(false)
    expect(isInstalled(join(folder, "nowhere"))).toBe(false)
  })

  it("of this project is complete, with a Node that runs the sources", () => {
    expect(isInstalled(root)).toBe(true)
    const { status } = spawnSync(findNode(), [
      "-e",
      "const [a, b] = process.versions.node.split('.'); process.exit(a > 22 || (a == 22 && b >= 19) ? 0 : 1)"
    ])
    expect(status).toBe(0)
  })
})

describe("a program in another's place", () => {
  const script = (program: string) =>
    `import { become } from ${JSON.stringify(join(root, "runtime", "bootstrap.mjs"))}; become(process.execPath, ` +
    `["-e", ${JSON.stringify(program)}])`
  const start = (program: string, env = {}) =>
    spawn(findNode(), ["--input-type=module", "-e", script(program)], {
      stdio: ["ignore", "pipe", "inherit"],
      env: { ...process.env, ...env }
    })

  it("hands its exit status back", async () => {
    expect((await once(start("process.exit(7)"), "exit"))[0]).toBe(7)
    expect((await once(start("process.kill(process.pid, 'SIGKILL')"), "exit"))[0]).toBe(128 + 9)
  })

  it.each(["SIGTERM", "SIGINT", "SIGHUP"] as const)("is handed %s, and may end as it likes", async (signal) => {
    const child = start(
      `process.on("${signal}", () => process.exit(3)); setInterval(() => {}, 1_000); console.log("up")`
    )
    await once(child.stdout, "data")
    // Not `child.kill`: after it, Deno reports the signal and not the status.
    process.kill(child.pid!, signal)
    expect((await once(child, "exit"))[0]).toBe(3)
  })
})

describe("our own program", () => {
  const module = (name: string) => JSON.stringify(join(root, "runtime", name))
  const words = (program: string) => ["--input-type=module", "-e", program]
  /** Prints its process id and whether it received its parent's, and stays. */
  const program =
    `import { endWithParent } from ${module("system.mjs")}; ` +
    `const knowsParent = process.env.TOLLKEEPER_PARENT === String(process.ppid); endWithParent(); ` +
    `console.log(process.pid, knowsParent, process.env.TOLLKEEPER_PARENT); setInterval(() => {}, 1_000)`
  const becoming = words(
    `import { becomeOwn } from ${module("bootstrap.mjs")}; ` +
      `becomeOwn(process.execPath, ${JSON.stringify(words(program))})`
  )
  const start = (env: NodeJS.ProcessEnv) =>
    spawn(findNode(), becoming, { stdio: ["ignore", "pipe", "inherit"], env: { ...process.env, ...env } })

  it.each([
    ["", false],
    ["start", true]
  ])("is the process that was started, and knows whether to end with npm (%s)", async (event, isReported) => {
    const child = start({ npm_lifecycle_event: event === "" ? undefined : event })
    expect(String((await once(child.stdout, "data"))[0]).trim()).toBe(`${child.pid} ${isReported} undefined`)
    process.kill(child.pid!, "SIGKILL")
    await once(child, "exit")
  })

  it("ends when npm is gone, even by a signal npm cannot forward", async () => {
    const npm =
      `require("node:child_process").spawn(process.execPath, ${JSON.stringify(becoming)}, ` +
      `{ stdio: "inherit", env: { ...process.env, npm_lifecycle_event: "start" } }); setInterval(() => {}, 1_000)`
    const parent = spawn(findNode(), ["-e", npm], { stdio: ["ignore", "pipe", "inherit"] })
    await once(parent.stdout, "data")
    process.kill(parent.pid!, "SIGKILL")
    // The program holds the pipe until it has ended.
    parent.stdout.resume()
    await once(parent.stdout, "end")
  })
})

describe("npm start", () => {
  it("hands a refusal on as one sentence and status 1", () => {
    const { status, stderr } = spawnSync(findNode(), ["runtime/start.mjs", "--profile", "none-such"], {
      cwd: root,
      encoding: "utf8"
    })
    expect(status).toBe(1)
    expect(JSON.parse(stderr.trimEnd().split("\n").at(-1) ?? "")).toMatchObject({
      level: "ERROR",
      message: expect.stringMatching(/^tollkeeper: there is no readable file .*none-such\.yaml; --profile takes/)
    })
  })
})
