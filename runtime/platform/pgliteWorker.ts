// The embedded database's thread: PGlite with pgvector, away from the event loop of the process, so that a long query
// cannot freeze it. The parent opens connections by sending a port; bytes go both ways over it, null means end. `dump`
// answers with the whole data folder, for tests that start many databases from one.
import { PGlite } from "@electric-sql/pglite"
import { vector } from "@electric-sql/pglite-pgvector"
import { readFile } from "node:fs/promises"
import { type MessagePort, parentPort, workerData } from "node:worker_threads"
import { PgliteSession, SessionGate } from "./PgliteSession.ts"

export type WorkerRequest =
  | { readonly kind: "connect"; readonly port: MessagePort }
  | { readonly kind: "dump" }
  | { readonly kind: "close" }

export type WorkerAnswer =
  | { readonly kind: "ready" }
  | { readonly kind: "failed"; readonly message: string }
  | { readonly kind: "dumped"; readonly bytes: Uint8Array }
  | { readonly kind: "closed" }

export interface WorkerOptions {
  /** Folder of the data; in memory when absent. */
  readonly folder?: string
  /**
   * File with a dumped data folder to start from, only in memory. A path, since a runtime may take seconds to hand over
   * the bytes.
   */
  readonly from?: string
  /** PGlite's code, compiled once for all databases of a process that opens many. */
  readonly code?: WebAssembly.Module
}

/**
 * The database's page cache. Its default, 128 MB, is memory of this process, which temporarily uses more while the
 * cache grows. The rest of the data is in the system's file cache, which is shared.
 */
const cacheSize = "32MB"

const parent = parentPort!
const options = workerData as WorkerOptions
const answer = (message: WorkerAnswer): void => parent.postMessage(message)

/** File system errors arrive as WASI numbers. */
const wasiCodes: Readonly<Record<number, string>> = {
  2: "EACCES",
  19: "EDQUOT",
  29: "EIO",
  33: "EMFILE",
  51: "ENOSPC",
  63: "EPERM",
  69: "EROFS"
}

const wordsOf = (error: unknown): string => {
  if (error instanceof Error) return error.message
  const { errno } = (typeof error === "object" && error !== null ? error : {}) as { readonly errno?: unknown }
  return typeof errno === "number" ? (wasiCodes[errno] ?? `file system error ${errno}`) : String(error)
}

const connect = (database: PGlite, gate: SessionGate, peers: Set<PgliteSession>, port: MessagePort): void => {
  const session = new PgliteSession(database, gate, peers, (bytes) => port.postMessage(bytes))
  port.on("message", (bytes: Uint8Array | null) => {
    if (bytes !== null) return session.receive(bytes)
    void session.close().then(() => port.close())
  })
  port.on("close", () => void session.close())
}

try {
  const database = await PGlite.create({
    ...(options.folder === undefined ? {} : { dataDir: options.folder }),
    ...(options.from === undefined ? {} : { loadDataDir: new Blob([await readFile(options.from)]) }),
    ...(options.code === undefined ? {} : { pgliteWasmModule: options.code }),
    startParams: [...PGlite.defaultStartParams, "-c", `shared_buffers=${cacheSize}`],
    extensions: { vector }
  })
  const gate = new SessionGate()
  const peers = new Set<PgliteSession>()
  parent.on("message", async (request: WorkerRequest) => {
    switch (request.kind) {
      case "connect":
        return connect(database, gate, peers, request.port)
      case "dump": {
        const dump = await database.dumpDataDir("none")
        return answer({ kind: "dumped", bytes: new Uint8Array(await dump.arrayBuffer()) })
      }
      case "close":
        await database.close()
        return answer({ kind: "closed" })
    }
  })
  answer({ kind: "ready" })
} catch (error) {
  answer({ kind: "failed", message: wordsOf(error) })
}
