// An operator's commands while a facilitator with the embedded database runs: each is executed within that process, and
// a caller without the key of its state folder is refused.
import { describe, expect, it } from "@effect/vitest"
import { Effect, Option } from "effect"
import { execFile, spawn } from "node:child_process"
import { once } from "node:events"
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { askRunning, osUser } from "../../runtime/askRunning.ts"
import process from "node:process"
import { promisify } from "node:util"
import { afterAll, beforeAll } from "vitest"
import { root } from "../../runtime/bootstrap.mjs"
import { fillLocalState } from "../support/migratedDumps.ts"

const folder = mkdtempSync(join(tmpdir(), "tollkeeper-operators-"))
const state = join(folder, "state")
const cli = join(root, "runtime", "cli.ts")
let child: ReturnType<typeof spawn>
let logged = ""

const run = (...args: ReadonlyArray<string>) =>
  promisify(execFile)(process.execPath, [cli, ...args], { cwd: folder, env: { ...process.env, NO_COLOR: "1" } }).then(
    ({ stderr, stdout }) => ({ status: 0, stdout, stderr }),
    (error) => ({ status: Number(error.code), stdout: String(error.stdout), stderr: String(error.stderr) })
  )
/** Runs a command as a process over the state folder. */
const askAlone = (...args: ReadonlyArray<string>) => run(...args, "--state", state)

/** Asks the running facilitator as the command line does, without a process. */
const ask = async (...args: ReadonlyArray<string>) => {
  const answered = await Effect.runPromise(askRunning([...args, "--state", state]))
  const { by, err, out, status } = Option.getOrThrow(answered)
  return { status, stdout: out, stderr: `${by}\n${err === "" ? "" : `${err}\n`}` }
}

beforeAll(async () => {
  await fillLocalState(state)
  const ports = ["--port", "0", "--ledger-port", "0", "--ledger-https-port", "0"]
  child = spawn(process.execPath, [cli, "start", "--state", state, ...ports], { cwd: root })
  let text = ""
  await new Promise<void>((resolve, reject) => {
    child.stdout!.setEncoding("utf8").on("data", (chunk: string) => {
      text += chunk
      if (text.includes('"ready"')) resolve()
    })
    child.stderr!.setEncoding("utf8").on("data", (chunk: string) => {
      text += chunk
      logged += chunk
    })
    child.once("exit", (status) => reject(new Error(`ended with ${status}\n${text}`)))
  })
}, 240_000)

afterAll(async () => {
  if (child.exitCode === null) {
    const ended = once(child, "exit")
    process.kill(child.pid!, "SIGTERM")
    await ended
  }
  rmSync(folder, { recursive: true, force: true })
}, 240_000)

/** The line on stderr with the source of the answer. */
const answeredBy = () => {
  const { pid, url } = note()
  const database = `embedded database in ${join(state, "database")}`
  return `answered by process ${pid}, ${url} (profile local; ${database}; state in ${state})\n`
}

const note = () => {
  const [name = ""] = readdirSync(join(state, "running"))
  return { file: join(state, "running", name), ...JSON.parse(readFileSync(join(state, "running", name), "utf8")) }
}

describe("beside a running facilitator", () => {
  it("each command is answered by it, and --json is one JSON value", { timeout: 400_000 }, async () => {
    const asked = async (...args: ReadonlyArray<string>) => {
      const { status, stderr, stdout } = await ask(...args, "--json")
      expect([args, status, stderr]).toEqual([args, 0, answeredBy()])
      return JSON.parse(stdout)
    }
    expect((await asked("channels", "list")).channels.length).toBeGreaterThan(0)
    expect(await asked("channels", "resize", "21", "--reason", "a busy day")).toEqual({ required: 21 })
    expect(await asked("settlements", "list")).toEqual([])
    expect(await asked("webhooks", "list")).toEqual([])
    expect(await asked("analytics", "rebuild")).toEqual({ emptied: true })
    expect((await asked("catalog", "observations", "http://unlisted.example/")).listings).toEqual([])
    expect(await asked("keys", "list")).toEqual({ callers: [], operators: [] })
    const read = await asked("keys", "reread", "--reason", "a new key")
    expect(read.replicas).toEqual([{ replica: expect.stringContaining("/"), changes: "unchanged" }])
    // Every act above is in the trail, with its person, reason and change; an act on channels needs a reason.
    const trail = (await ask("acts", "--json")).stdout
      .trim()
      .split("\n")
      .map((text) => JSON.parse(text))
    expect(trail.map(({ action, after, before, outcome, reason }) => [action, before, after, outcome, reason])).toEqual(
      [
        ["reread", null, expect.stringContaining("unchanged"), "done", "a new key"],
        ["rebuild", null, null, "done", "no reason was given"],
        ["resize-channels", expect.any(String), "21", "done", "a busy day"]
      ]
    )
    for (const { person, via } of trail) expect([person, via]).toEqual([osUser(), "command line"])
    const unreasoned = await ask("channels", "resize", "22")
    expect([unreasoned.status, unreasoned.stderr]).toEqual([1, expect.stringContaining("--reason")])
    expect(Object.keys(await asked("budget"))).toContain("perPrincipalStroopsMax")
    expect((await asked("audit")).mismatches).toEqual([])
  })

  it("logs one JSON object per line, including when search is ready [S258, S259]", async () => {
    const events = () => {
      const lines = logged.split("\n").slice(0, -1)
      return lines.map((line) => JSON.parse(line).annotations?.event as string | undefined)
    }
    for (let reads = 0; reads < 600 && !events().includes("search_ready"); reads++)
      await new Promise((resolve) => setTimeout(resolve, 100))
    expect(events()).toContain("search_ready")
  }, 240_000)

  it("settings of the command line are said not to count, and DATABASE_URL_FILE names another database", async () => {
    const set = await askAlone("settlements", "list", "--set", "database.embedded_folder=another")
    expect([set.status, set.stderr]).toEqual([
      0,
      answeredBy().replace(")\n", "; by its own settings, not those of --set)\n")
    ])
    const file = join(folder, "database_url")
    writeFileSync(file, "postgres://someone:secret@127.0.0.1:1/another\n")
    process.env["DATABASE_URL_FILE"] = file
    const other = await askAlone("settlements", "list").finally(() => delete process.env["DATABASE_URL_FILE"])
    expect(other.status).toBe(1)
    expect(other.stderr).toMatch(/^answered by this command itself, not by a running process .*database another at 127/)
    expect(other.stderr).toContain(`process ${note().pid}`)
    expect(other.stderr).toMatch(/the database does not answer/)
    expect(other.stderr).not.toContain("secret")
  }, 240_000)

  it("a command under another profile names the one that answers, and asks for no stop", async () => {
    const embedded = ["--profile", "self-hosted", "--set", "database.embedded_folder=database"]
    const { status, stderr } = await askAlone("budget", ...embedded)
    expect([status, stderr]).toEqual([
      1,
      expect.stringContaining(
        `tollkeeper: process ${note().pid}, ${note().url}, has the embedded database; ` +
          "it answers this command with --profile local"
      )
    ])
    expect(stderr).not.toMatch(/stop/)
  }, 240_000)

  it("a command that fails there says so here", { timeout: 240_000 }, async () => {
    const { status, stderr, stdout } = await askAlone("settlements", "show", "unknown-id")
    expect([status, stdout, stderr]).toEqual([
      1,
      "",
      `${answeredBy()}tollkeeper: no settlement has the id or hash unknown-id; ` +
        "`tollkeeper settlements list` shows those without an outcome\n"
    ])
  })

  it("doctor checks everything, and says what to do about its findings", { timeout: 240_000 }, async () => {
    const findings = JSON.parse((await ask("doctor", "--json")).stdout) as ReadonlyArray<Record<string, string>>
    expect(new Set(findings.map(({ check }) => check))).toEqual(
      new Set([
        ...["disk", "port", "keys", "database", "migrations", "extensions", "RPC 1", "clock", "sponsor", "channels"],
        "reconciler"
      ])
    )
    expect(findings).toContainEqual({
      check: "reconciler",
      state: "ok",
      detail: expect.stringMatching(/^\S+\/retention succeeded \d+ s ago by (start|timer|wake) in \d+ ms$/)
    })
    for (const { remedy, state } of findings) if (state !== "ok") expect(remedy).toMatch(/\w/)
    const away = await run(
      ...["doctor", "--profile", "self-hosted", "--state", join(folder, "nowhere"), "--json"],
      ...["--set", 'networks.ledger:testnet.rpc_urls=["http://127.0.0.1:9"]']
    )
    expect(away.status).toBe(1)
    expect(existsSync(join(folder, "nowhere"))).toBe(false)
    expect(away.stdout).not.toContain("tollkeeper doctor")
    expect(JSON.parse(away.stdout)).toContainEqual({
      check: "RPC 1",
      state: "fault",
      detail: "does not answer",
      remedy: expect.stringContaining("rpc_urls")
    })
  })

  it("a backup taken while it runs opens elsewhere with the same rows", { timeout: 240_000 }, async () => {
    const { stdout } = await askAlone("backup", "save", "taken.tar", "--json")
    const { file } = JSON.parse(stdout)
    expect([existsSync(join(folder, "taken.tar")), statSync(file).mode & 0o777]).toEqual([true, 0o600])
    const elsewhere = join(folder, "elsewhere")
    expect((await run("backup", "restore", file, "--state", elsewhere)).status).toBe(0)
    const addresses = (answer: string) => JSON.parse(answer).channels.map(({ address }: { address: string }) => address)
    const [here, there] = await Promise.all([
      ask("channels", "list", "--json"),
      run("channels", "list", "--json", "--state", elsewhere)
    ])
    expect(addresses(there.stdout)).toEqual(addresses(here.stdout))
    const again = await run("backup", "restore", file, "--state", elsewhere)
    expect([again.status, again.stderr]).toEqual([1, expect.stringMatching(/already exists; .*--state DIR/)])
  })

  it("refuses a caller without the key, whose file is private", { timeout: 240_000 }, async () => {
    const { file, operators } = note()
    const post = (headers: Record<string, string>) =>
      fetch(operators.url, {
        method: "POST",
        headers: { "content-type": "application/json", ...headers },
        body: JSON.stringify({ words: ["keys", "list"], folder: "/" })
      })
    expect((await post({})).status).toBe(401)
    expect((await post({ authorization: `Bearer ${"0".repeat(64)}` })).status).toBe(401)
    const answered = await post({ authorization: `Bearer ${operators.key}` })
    expect(await answered.json()).toMatchObject({ status: 0, out: expect.stringContaining("no caller keys") })
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(statSync(join(state, "running")).mode & 0o777).toBe(0o700)
    // The database folder stays private, even if the state folder's permissions are wider.
    chmodSync(state, 0o755)
    expect(statSync(join(state, "database")).mode & 0o777).toBe(0o700)
  })

  it("starts and deletes nothing on request", { timeout: 240_000 }, async () => {
    const { operators } = note()
    for (const words of [["start"], ["reset", "--yes"], ["config", "schema"], ["ledger"]]) {
      const response = await fetch(operators.url, {
        method: "POST",
        headers: { "content-type": "application/json", authorization: `Bearer ${operators.key}` },
        body: JSON.stringify({ words, folder: "/" })
      })
      expect(await response.json()).toMatchObject({ status: 1, err: expect.stringContaining("Unknown subcommand") })
    }
  })
})
