// The embedded database as a source of the SQL client: PGlite in a worker thread, reached over the driver's own wire
// protocol. A stored database is one folder that only one process may open (PGlite does not lock the folder; two
// processes lost rows). Its data survive a crash of the process at any moment, but not of the machine: PGlite never
// calls fsync.
import { Effect, Layer, Schema, type Scope } from "effect"
import { chmodSync, existsSync, mkdirSync } from "node:fs"
import { Duplex } from "node:stream"
import { MessageChannel, Worker } from "node:worker_threads"
import { DatabaseRefused, DatabaseSource } from "../../kernel/database/DatabaseSource.ts"
import { lockFolder } from "./folderLock.ts"
import type { WorkerAnswer, WorkerOptions, WorkerRequest } from "./pgliteWorker.ts"

/** Virtual connections that the driver may open; they take turns on PGlite's one session. */
const connectionsMax = 8

/** The thread died: unanswered requests are lost, acknowledged ones are stored. */
class EmbeddedDatabaseDied extends Schema.TaggedError<EmbeddedDatabaseDied>()("EmbeddedDatabaseDied", {
  message: Schema.String
}) {}

export interface EmbeddedDatabase {
  readonly connect: () => Duplex
  /** The whole data folder, to start other databases from. */
  readonly dump: Effect.Effect<Uint8Array>
}

const ask = <K extends WorkerAnswer["kind"]>(
  worker: Worker,
  kind: K,
  request?: WorkerRequest
): Promise<Extract<WorkerAnswer, { kind: K }>> =>
  new Promise((resolve, reject) => {
    const onMessage = (answer: WorkerAnswer) => {
      if (answer.kind !== kind && answer.kind !== "failed") return
      worker.off("message", onMessage)
      if (answer.kind === "failed") reject(new Error(answer.message))
      else resolve(answer as Extract<WorkerAnswer, { kind: K }>)
    }
    worker.on("message", onMessage)
    worker.once("error", reject)
    worker.once("exit", () => reject(new EmbeddedDatabaseDied({ message: "the database's thread has ended" })))
    if (request !== undefined) worker.postMessage(request)
  })

const connectTo = (worker: Worker, live: Set<Duplex>): Duplex => {
  const { port1, port2 } = new MessageChannel()
  worker.postMessage({ kind: "connect", port: port2 } satisfies WorkerRequest, [port2])
  const stream = new Duplex({
    read() {},
    write(chunk: Uint8Array, _encoding, done) {
      port1.postMessage(new Uint8Array(chunk))
      done()
    },
    final(done) {
      port1.postMessage(null)
      done()
    },
    destroy(error, done) {
      live.delete(stream)
      port1.postMessage(null)
      port1.close()
      done(error)
    }
  })
  port1.on("message", (bytes: Uint8Array) => stream.push(bytes))
  port1.on("close", () => stream.destroy())
  live.add(stream)
  return stream
}

/** Starts the thread and waits until the database answers; ends both with the Scope. */
export const openEmbedded = (options: WorkerOptions): Effect.Effect<EmbeddedDatabase, DatabaseRefused, Scope.Scope> =>
  Effect.gen(function* () {
    const live = new Set<Duplex>()
    const worker = yield* Effect.acquireRelease(
      Effect.tryPromise({
        try: async () => {
          const worker = new Worker(new URL("./pgliteThread.mjs", import.meta.url), { workerData: options })
          await ask(worker, "ready")
          return worker
        },
        catch: (cause) => new DatabaseRefused({ message: "the embedded database does not open", cause })
      }),
      (worker) =>
        Effect.promise(async () => {
          await ask(worker, "closed", { kind: "close" }).catch(() => undefined)
          await worker.terminate()
        })
    )
    worker.on("error", (error) => {
      for (const stream of live) stream.destroy(error instanceof Error ? error : new Error(String(error)))
    })
    worker.on("exit", () => {
      for (const stream of live)
        stream.destroy(new EmbeddedDatabaseDied({ message: "the database's thread has ended" }))
    })
    return {
      connect: () => connectTo(worker, live),
      dump: Effect.promise(() => ask(worker, "dumped", { kind: "dump" })).pipe(Effect.map(({ bytes }) => bytes))
    }
  })

/** Folder into which a restore unpacks; renamed to `folder` after all of it was read. */
export const restoringFolder = (folder: string): string => `${folder}.restoring`

/** An interrupted restore leaves no database: a start would open an empty one in its place. */
const refuseUnfinished = (folder: string) =>
  existsSync(restoringFolder(folder)) && !existsSync(folder)
    ? new DatabaseRefused({
        message:
          `a restore into ${folder} was cut off; run \`tollkeeper backup restore\` again, ` +
          `or delete ${restoringFolder(folder)}`
      })
    : Effect.void

/** Only this user can access the database, independent of the parent folder's owner and mode. */
const closeToOthers = (folder: string) =>
  Effect.try({
    try: () => {
      mkdirSync(folder, { recursive: true, mode: 0o700 })
      chmodSync(folder, 0o700)
    },
    catch: (cause) => new DatabaseRefused({ message: `the folder ${folder} cannot be created`, cause })
  })

/** A database in `folder`, locked for this process; in memory without one. */
export const layer = (folder: string | undefined): Layer.Layer<DatabaseSource> =>
  Layer.succeed(DatabaseSource, {
    open: Effect.gen(function* () {
      if (folder !== undefined) {
        yield* Effect.mapError(lockFolder(folder), ({ message }) => new DatabaseRefused({ message }))
        yield* refuseUnfinished(folder)
        yield* closeToOthers(folder)
      }
      const { connect, dump } = yield* openEmbedded(folder === undefined ? {} : { folder })
      return { kind: "embedded" as const, connect, dump, connectionsMax }
    })
  })
