// The environment of a guide's reader: a clone, a `tollkeeper` on the PATH, a shell that keeps its folder and exports,
// and free ports in place of the guide's, so that guides can run in parallel with each other and with a developer's own
// facilitator. `README.md` in this folder lists the texts that are filled in. Programs that the guide left running are
// stopped at the end.
import { type ChildProcess, execFileSync, spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { tmpdir } from "node:os"
import { delimiter, dirname, join } from "node:path"
import process from "node:process"
import { findNode, root } from "../../runtime/bootstrap.mjs"
import { freePort } from "../support/freePort.ts"

/** Ten times the time of the slowest command on a quiet machine. */
const commandTimeout = 300_000
const answerTimeout = 120_000

/** Programs that a machine may lack; a block that needs a missing one is skipped, with a message. */
const perhaps = ["psql", "pg_dump", "pg_restore", "kubectl", "docker", "promtool", "systemd-analyze", "deno", "python3"]

const isThere = (program: string): boolean => spawnSync("sh", ["-c", `command -v ${program}`]).status === 0

const pause = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds))

const guidePorts = ["4022", "4023", "4522", "8000", "8443", ...Array.from({ length: 10 }, (_, at) => String(3000 + at))]

/** The folder of `test/official` whose lockfile has exactly these versions. */
const lockedSet = (packages: string): string => {
  const pins = [...packages.matchAll(/(@?[\w/-]+)@([\d.]+)/g)]
  const set = ["a", "b", "c"].find((set) => {
    const { packages: locked } = JSON.parse(readFileSync(join(root, "test/official", set, "package-lock.json"), "utf8"))
    return pins.every(([, name, version]) => locked[`node_modules/${name}`]?.version === version)
  })
  if (pins.length === 0 || set === undefined) throw new Error(`no folder of test/official locks ${packages}`)
  const folder = join(root, "test/official", set)
  if (!existsSync(join(folder, "node_modules"))) execFileSync("npm", ["ci", "--loglevel=error"], { cwd: folder })
  return join(folder, "node_modules")
}

interface Left {
  readonly child: ChildProcess
  readonly text: string
  readonly url: string
}

export class World {
  readonly #folder: string
  readonly #ports: ReadonlyMap<string, number>
  readonly #left: Array<Left> = []
  readonly #database: (name: string) => Promise<string>
  #logs = 0

  private constructor(folder: string, ports: ReadonlyMap<string, number>, database: (name: string) => Promise<string>) {
    this.#folder = folder
    this.#ports = ports
    this.#database = database
  }

  /** `database` makes an empty one and returns its URL. */
  static async open(name: string, database: (name: string) => Promise<string>): Promise<World> {
    const folder = mkdtempSync(join(tmpdir(), `tollkeeper-guide-${name}-`))
    const clone = join(folder, "tollkeeper")
    for (const part of ["bin", "home", "logs", "tollkeeper"]) mkdirSync(join(folder, part))
    const files = execFileSync("git", ["ls-files", "--cached", "--others", "--exclude-standard"], { cwd: root })
    for (const file of files.toString().trim().split("\n")) {
      if (file.startsWith("test/") || !existsSync(join(root, file))) continue
      mkdirSync(dirname(join(clone, file)), { recursive: true })
      cpSync(join(root, file), join(clone, file))
    }
    for (const part of ["node_modules", "test"]) symlinkSync(join(root, part), join(clone, part))
    symlinkSync(join(clone, "runtime", "tollkeeper.mjs"), join(folder, "bin", "tollkeeper"))
    const ports = new Map<string, number>()
    for (const port of guidePorts) ports.set(port, await freePort())
    const world = new World(folder, ports, database)
    writeFileSync(join(folder, "shell.env"), "")
    writeFileSync(join(folder, "shell.cwd"), clone)
    return world
  }

  get #environment(): NodeJS.ProcessEnv {
    const kept = Object.entries(process.env).filter(([name]) => !/^npm_|_KEYS$|^DATABASE_URL$/.test(name))
    return {
      ...Object.fromEntries(kept),
      HOME: join(this.#folder, "home"),
      PATH: [join(this.#folder, "bin"), dirname(findNode()), process.env["PATH"]].join(delimiter),
      // Replacements of 4022 and 8000 in the examples.
      FACILITATOR_URL: `http://127.0.0.1:${this.#ports.get("4022")}`,
      LEDGER_RPC_URL: `http://127.0.0.1:${this.#ports.get("8000")}`,
      LEDGER_URL: `http://127.0.0.1:${this.#ports.get("8000")}`,
      LOCAL_HORIZON_PORT: String(this.#ports.get("8443")),
      NODE_OPTIONS: `--import ${join(root, "test", "official", "horizon.mjs")}`,
      DENO_NO_UPDATE_CHECK: "1",
      NO_COLOR: "1"
    }
  }

  get #cwd(): string {
    return readFileSync(join(this.#folder, "shell.cwd"), "utf8").trim()
  }

  /** The guide's text with this world's ports, database and packages. */
  async #filled(text: string): Promise<string> {
    const own = (port: string) => String(this.#ports.get(port))
    const [http, ledger, https] = ["4022", "8000", "8443"].map(own)
    let filled = text
      .replace(/((?:127\.0\.0\.1|localhost):|listen\(|[Pp]ort[= ]|PORT=|port: )(\d{4})\b/g, (whole, before, port) =>
        this.#ports.has(port) ? before + own(port) : whole
      )
      .replace(/^(.*\b(?:npm|tollkeeper|task) start)\b( --(?=\s|$))?(.*)$/gm, (_, start, dashes, rest) => {
        const isLocal = !/--profile|--ledger-port/.test(rest)
        const flags = `--port ${http}${isLocal ? ` --ledger-port ${ledger} --ledger-https-port ${https}` : ""}`
        return `${start}${dashes ?? (start.endsWith("npm start") ? " --" : "")} ${/--port/.test(rest) ? "" : flags}${rest}`
      })
      .replace(/^npm install (.*@x402\/.*)$/gm, (_, packages) => `ln -sfn ${lockedSet(packages)} node_modules`)
    for (const [url, name] of text.matchAll(/postgres:\/\/tollkeeper:[^@\s]*@[^/\s]*\/(\w+)/g))
      filled = filled.replaceAll(url, await this.#database(name!))
    return filled
  }

  /** Why a block cannot run on this machine; undefined if it can. */
  lacks(text: string): string | undefined {
    const program = perhaps.find((name) => new RegExp(`(^|[|(\\s])${name}\\s`, "m").test(text) && !isThere(name))
    return program === undefined ? undefined : `there is no ${program} here`
  }

  /** Runs commands in the guide's shell; returns their output. If one fails, throws with the output. */
  async run(text: string): Promise<string> {
    const env = join(this.#folder, "shell.env")
    const cwd = join(this.#folder, "shell.cwd")
    const script = [
      "set -euo pipefail",
      `source ${env}`,
      await this.#filled(text),
      `export -p > ${env}`,
      `pwd > ${cwd}`
    ].join("\n")
    const child = spawn("bash", ["-c", script], { cwd: this.#cwd, env: this.#environment, timeout: commandTimeout })
    child.stdin.end()
    let output = ""
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding("utf8").on("data", (chunk) => (output += chunk))
    const [status] = await once(child, "close")
    if (status !== 0) throw new Error(`it ended with ${status}\n${output.slice(-3_000)}`)
    return output
  }

  async write(name: string, text: string): Promise<void> {
    const file = join(this.#cwd, name)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, await this.#filled(text))
  }

  /** Starts a program and waits until its URL answers anything but "not ready". */
  async leave(text: string, url: string): Promise<void> {
    const filled = await this.#filled(`${text}\n${url}`)
    const [address = "", ...command] = filled.split("\n").reverse()
    const log = join(this.#folder, "logs", `${this.#logs++}.log`)
    const script = `source ${join(this.#folder, "shell.env")}\n${command.reverse().join("\n")}`
    const output = openSync(log, "a")
    const child = spawn("bash", ["-c", script], {
      cwd: this.#cwd,
      env: this.#environment,
      detached: true,
      stdio: ["ignore", output, output]
    })
    this.#left.push({ child, text, url: address })
    const until = Date.now() + answerTimeout
    while (Date.now() < until && child.exitCode === null) {
      if (
        await fetch(address, { signal: AbortSignal.timeout(5_000) }).then(
          ({ status }) => status !== 503,
          () => false
        )
      )
        return
      await pause(200)
    }
    throw new Error(`${text} does not answer at ${address}\n${readFileSync(log, "utf8").slice(-3_000)}`)
  }

  /** Stops the program started last, with its whole group, as Ctrl+C in its terminal would. */
  async stop(): Promise<void> {
    const last = this.#left.pop()
    if (last === undefined) throw new Error("nothing was left running")
    const ended = last.child.exitCode === null && last.child.signalCode === null ? once(last.child, "exit") : undefined
    process.kill(-last.child.pid!, "SIGTERM")
    await ended
    const until = Date.now() + answerTimeout
    while (Date.now() < until) {
      if (
        await fetch(last.url, { signal: AbortSignal.timeout(5_000) }).then(
          () => false,
          () => true
        )
      )
        return
      await pause(200)
    }
    throw new Error(`${last.text} does not stop`)
  }

  async close(): Promise<void> {
    for (const { child } of this.#left.splice(0)) {
      try {
        process.kill(-child.pid!, "SIGKILL")
      } catch {
        // It has exited already.
      }
    }
    rmSync(this.#folder, { recursive: true, force: true, maxRetries: 5 })
  }
}
