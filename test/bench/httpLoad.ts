// Generates a bench's load in a separate process, so that it shares only the processor with the measured one: raw
// HTTP/1.1 over keep-alive sockets, one request after another on each. An answer that is not 200, or shorter than
// declared, ends the measurement, so that empty answers cannot count as fast.
import { type ChildProcess, fork } from "node:child_process"
import { connect, type Socket } from "node:net"
import process from "node:process"
import { fileURLToPath } from "node:url"

export interface LoadOrder {
  readonly port: number
  /** Requested in turns by all clients together. */
  readonly paths: ReadonlyArray<string>
  readonly clients: number
  readonly seconds: number
  /** Minimum bytes of a body. */
  readonly bytesMin: number
}

export interface LoadFigures {
  readonly p50: number
  readonly p99: number
  /** Answers per second. */
  readonly rate: number
  readonly answers: number
  /** Milliseconds of the clients' processor time per answer. */
  readonly clientCpu: number
}

type Reply = { readonly figures: LoadFigures } | { readonly error: string }

/** Warm-up time before anything counts. */
export const WARM_SECONDS = 0.5

const headEnd = Buffer.from("\r\n\r\n")

/** Sends one request on an open socket; returns its time in milliseconds. */
const ask = (socket: Socket, request: Buffer, bytesMin: number): Promise<number> =>
  new Promise((resolve, reject) => {
    const from = performance.now()
    let got: Buffer = Buffer.alloc(0)
    let missing = -1
    const done = (error?: Error) => {
      socket.off("data", take).off("close", closed)
      if (error === undefined) resolve(performance.now() - from)
      else reject(error)
    }
    const closed = () => done(new Error("the connection ended"))
    const take = (chunk: Buffer) => {
      if (missing >= 0) missing -= chunk.length
      else {
        got = got.length === 0 ? chunk : Buffer.concat([got, chunk])
        const end = got.indexOf(headEnd)
        if (end < 0) return
        const head = got.toString("latin1", 0, end)
        const length = Number(/^content-length: *(\d+)/im.exec(head)?.[1] ?? Number.NaN)
        if (!head.startsWith("HTTP/1.1 200 ") || !(length >= bytesMin))
          return done(
            new Error(`${head.split("\r\n", 1)[0]}, ${length} bytes: ${got.toString("utf8", end + 4, end + 300)}`)
          )
        missing = length - (got.length - end - 4)
      }
      if (missing === 0) done()
    }
    socket.on("data", take).on("close", closed)
    socket.write(request)
  })

const opened = (port: number): Promise<Socket> =>
  new Promise((resolve, reject) => {
    const socket: Socket = connect({ port, host: "127.0.0.1", noDelay: true }, () => resolve(socket))
    socket.once("error", reject)
  })

const quantile = (sorted: Float64Array, q: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))] ?? Number.NaN

const carryOut = async ({ bytesMin, clients, paths, port, seconds }: LoadOrder): Promise<LoadFigures> => {
  const requests = paths.map((path) =>
    Buffer.from(`GET ${path} HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\naccept: application/json\r\n\r\n`)
  )
  const sockets = await Promise.all(Array.from({ length: clients }, () => opened(port)))
  try {
    const times: Array<number> = []
    let turn = 0
    const run = (until: number, into: Array<number> | undefined) =>
      Promise.all(
        sockets.map(async (socket) => {
          while (performance.now() < until) {
            const took = await ask(socket, requests[turn++ % requests.length]!, bytesMin)
            into?.push(took)
          }
        })
      )
    await run(performance.now() + WARM_SECONDS * 1_000, undefined)
    const cpu = process.cpuUsage()
    const from = performance.now()
    await run(from + seconds * 1_000, times)
    const elapsed = (performance.now() - from) / 1_000
    const { system, user } = process.cpuUsage(cpu)
    const sorted = Float64Array.from(times).sort()
    return {
      p50: quantile(sorted, 0.5),
      p99: quantile(sorted, 0.99),
      rate: times.length / elapsed,
      answers: times.length,
      clientCpu: (system + user) / 1_000 / times.length
    }
  } finally {
    for (const socket of sockets) socket.destroy()
  }
}

export interface Load {
  readonly run: (order: LoadOrder) => Promise<LoadFigures>
  readonly stop: () => void
}

/** Starts the client process. */
export const startLoad = (): Load => {
  const child: ChildProcess = fork(fileURLToPath(import.meta.url), ["clients"], { stdio: "inherit", execArgv: [] })
  return {
    run: (order) =>
      new Promise((resolve, reject) => {
        const ended = () => reject(new Error("the clients' process ended"))
        child.once("exit", ended)
        child.once("message", (reply: Reply) => {
          child.off("exit", ended)
          if ("figures" in reply) resolve(reply.figures)
          else reject(new Error(reply.error))
        })
        child.send(order)
      }),
    stop: () => child.kill()
  }
}

if (process.argv[2] === "clients" && process.send !== undefined) {
  process.on("message", (order: LoadOrder) => {
    carryOut(order)
      .then(
        (figures): Reply => ({ figures }),
        (error): Reply => ({ error: error instanceof Error ? error.message : String(error) })
      )
      .then((reply) => process.send!(reply))
  })
  process.on("disconnect", () => process.exit())
}
