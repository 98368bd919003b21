// The tools of `npm run onboarding`: a temporary folder, the program, a serving facilitator, requests by fetch and by
// hand.
import { execFile, spawn } from "node:child_process"
import { once } from "node:events"
import { cpSync, mkdirSync, mkdtempSync, writeFileSync } from "node:fs"
import { connect } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import process from "node:process"
import { promisify } from "node:util"
import { findNode, root } from "../../runtime/bootstrap.mjs"
import type { Outcome } from "./operatorItems.ts"

export const node = findNode()
export const cli = join(root, "runtime", "cli.ts")
export const folder = mkdtempSync(join(tmpdir(), "tollkeeper-friction-"))
export const inFolder = (name: string) => join(folder, name)
export const freePorts = ["--port", "0", "--ledger-port", "0", "--ledger-https-port", "0"]

/** Runs a program to its end, or for `seconds`; its last output counts. */
export const program = (
  args: ReadonlyArray<string>,
  env: Record<string, string> = {},
  seconds = 180
): Promise<Outcome> =>
  promisify(execFile)(node, [...args], {
    cwd: folder,
    env: { ...process.env, DATABASE_URL: "", ...env },
    timeout: seconds * 1_000,
    killSignal: "SIGKILL"
  }).then(
    ({ stderr, stdout }) => ({ status: 0, text: `${stdout}${stderr}` }),
    (error) => ({ status: Number(error.code ?? 1), text: `${error.stdout}${error.stderr}` })
  )
export const tollkeeper = (...args: ReadonlyArray<string>) => program([cli, ...args])

/** The message of a line of JSON, or the line. */
const wordsOf = (line: string): string => {
  try {
    return String(JSON.parse(line).message ?? line)
  } catch {
    return line
  }
}

/** The message in the output: the matching line, as a person would read it. */
export const sentenceIn = (text: string, wanted: RegExp): string | undefined =>
  text
    .split("\n")
    .map(wordsOf)
    .find((line) => wanted.test(line))

export const startServing = async (args: ReadonlyArray<string>, environment: Readonly<Record<string, string>> = {}) => {
  const env = { ...process.env, DATABASE_URL: "", ...environment }
  const child = spawn(node, [cli, "start", ...args], { cwd: folder, env })
  let text = ""
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (chunk) => (text += chunk))
  const ended = once(child, "exit")
  const ready = new Promise<void>((resolve) => {
    child.stdout.on("data", () => text.includes('"ready"') && resolve())
  })
  await Promise.race([
    ready,
    ended.then(() => {
      throw new Error(`it ended\n${text}`)
    })
  ])
  return {
    said: () => text,
    stop: async () => {
      process.kill(child.pid!, "SIGTERM")
      await ended
    }
  }
}

export const answerOf = async (url: string, init: RequestInit = {}): Promise<Outcome> => {
  const response = await fetch(url, init)
  return { status: response.status, text: await response.text() }
}

/** One request written by hand, since `fetch` sets the Host itself. */
export const raw = (port: number, lines: ReadonlyArray<string>, end = "\r\n\r\n"): Promise<Outcome> =>
  new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1")
    let text = ""
    socket.setEncoding("utf8").on("data", (chunk) => (text += chunk))
    socket.on("error", reject)
    socket.on("close", () => resolve({ status: Number(/^HTTP\/1\.1 (\d+)/.exec(text)?.[1] ?? 0), text }))
    socket.write(`${lines.join("\r\n")}${end}`)
  })

/** A Node 20 without the Node 24 that npm brings: only the launcher, in a project that needs no package. */
export const oldNode = async (): Promise<Outcome> => {
  const project = inFolder("old-node")
  for (const file of ["bootstrap.mjs", "system.mjs", "run.mjs"])
    cpSync(join(root, "runtime", file), join(project, "runtime", file))
  for (const file of ["package-lock.json", "node_modules/.package-lock.json"]) {
    mkdirSync(join(project, "node_modules"), { recursive: true })
    writeFileSync(join(project, file), JSON.stringify({ packages: {} }))
  }
  const older = inFolder("older.mjs")
  writeFileSync(older, `Object.defineProperty(process, "versions", { value: { ...process.versions, node: "20.9.0" } })`)
  return program(["--import", older, join(project, "runtime", "run.mjs"), "examples/pay.ts"])
}
