// A real PgBouncer in front of a test's PostgreSQL, in session or in transaction mode, from PATH or /usr/sbin. Without
// one, tests that need it are skipped and the reason is printed. It refuses root as PostgreSQL does, so it runs as the
// same unprivileged user.
import { type ChildProcess, spawn } from "node:child_process"
import { chownSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { delimiter, join } from "node:path"
import process from "node:process"
import { answers, unprivileged } from "./postgres.ts"
import { freePort } from "./freePort.ts"

export interface TestPgbouncer {
  /** The URL of the database behind it, through the pooler. */
  readonly url: string
  /** Its log so far. */
  readonly log: () => string
  readonly stop: () => Promise<void>
}

export interface PgbouncerOptions {
  /** The database behind it. */
  readonly serverUrl: string
  readonly mode: "session" | "transaction"
  /** Maximum connections to the server. */
  readonly poolSize: number
  /** Additional lines of its settings. */
  readonly settings?: ReadonlyArray<string>
}

/** The program, if the machine has one. */
export const pgbouncerProgram = (): string | undefined => {
  const folders = [...(process.env["PATH"] ?? "").split(delimiter), "/usr/sbin", "/usr/local/sbin"]
  const found = folders.map((folder) => join(folder, "pgbouncer")).find((file) => existsSync(file))
  if (found === undefined) console.warn("skipped: no pgbouncer on PATH or in /usr/sbin; install it to run these tests")
  return found
}

const ended = (child: ChildProcess): Promise<void> =>
  new Promise((resolve) => (child.exitCode === null ? child.once("exit", () => resolve()) : resolve()))

/** Starts it and waits until it answers. */
export const startPgbouncer = async (options: PgbouncerOptions): Promise<TestPgbouncer> => {
  const { mode, poolSize, serverUrl, settings = [] } = options
  const program = pgbouncerProgram()
  if (program === undefined) throw new Error("there is no pgbouncer")
  const server = new URL(serverUrl)
  const user = unprivileged()
  const folder = mkdtempSync(join(tmpdir(), "tollkeeper-pgbouncer-"))
  const port = await freePort()
  const name = server.pathname.slice(1)
  const logFile = join(folder, "log")
  const lines = [
    "[databases]",
    `${name} = host=${server.hostname} port=${server.port} dbname=${name}`,
    "[pgbouncer]",
    "listen_addr = 127.0.0.1",
    `listen_port = ${port}`,
    "unix_socket_dir =",
    "auth_type = trust",
    `auth_file = ${join(folder, "users")}`,
    `logfile = ${logFile}`,
    `pool_mode = ${mode}`,
    `default_pool_size = ${poolSize}`,
    ...settings
  ]
  writeFileSync(join(folder, "pgbouncer.ini"), `${lines.join("\n")}\n`)
  writeFileSync(join(folder, "users"), `"${server.username}" ""\n`)
  if (user.uid !== undefined) chownSync(folder, user.uid, user.gid!)
  const child = spawn(program, [join(folder, "pgbouncer.ini")], { ...user, cwd: folder, stdio: "ignore" })
  const log = () => (existsSync(logFile) ? readFileSync(logFile, "utf8") : "")
  for (let attempt = 0; !(await answers(port)); attempt++) {
    if (attempt > 300 || child.exitCode !== null) throw new Error(`pgbouncer did not start: ${log()}`)
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  return {
    url: `postgres://${server.username}@127.0.0.1:${port}/${name}`,
    log,
    stop: async () => {
      child.kill("SIGQUIT")
      await ended(child)
      rmSync(folder, { recursive: true, force: true })
    }
  }
}
