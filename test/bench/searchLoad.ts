// The clients of the search bench, in a separate process so that their work does not count as the server's: bare
// HTTP/1.1 over keep-alive connections, one request after another each. An answer counts only if it is complete (200,
// not partial) and contains the expected text. The job comes as JSON on standard input, the figures go out as JSON.
import { connect } from "node:net"
import process from "node:process"

export interface LoadJob {
  readonly port: number
  readonly paths: ReadonlyArray<string>
  readonly clients: number
  /** It ends after this time, or after this number of queries. */
  readonly milliseconds: number
  readonly questionsMax: number
  /** Text that a good answer's body contains. */
  readonly holds: string
}

export interface LoadFigures {
  /** Milliseconds of each good answer, ascending. */
  readonly times: ReadonlyArray<number>
  readonly elapsedMillis: number
  /** Number of erroneous, partial or empty answers, by kind. */
  readonly wrong: Readonly<Record<string, number>>
  /** The first few paths with such answers, each once. */
  readonly faulty: ReadonlyArray<string>
}

const faultyMax = 5

const headEnd = Buffer.from("\r\n\r\n")
const partial = Buffer.from(`"partialResults":true`)

const errorOf = (answer: Buffer, bodyAt: number, holds: Buffer): string | undefined => {
  if (answer.toString("latin1", 9, 12) !== "200") return `status ${answer.toString("latin1", 9, 12)}`
  if (answer.indexOf(holds, bodyAt) === -1) return "empty"
  // The flag follows the resources and precedes a cursor of some kilobytes.
  return answer.lastIndexOf(partial) === -1 ? undefined : "partial"
}

export const load = (job: LoadJob): Promise<LoadFigures> => {
  const { clients, milliseconds, paths, port, questionsMax } = job
  const holds = Buffer.from(job.holds)
  const times: Array<number> = []
  const wrong: Record<string, number> = {}
  const faulty = new Set<string>()
  const startedAt = performance.now()
  let turn = 0
  const client = () =>
    new Promise<void>((resolve, reject) => {
      const socket = connect(port, "127.0.0.1").setNoDelay(true)
      let from = 0
      let path = ""
      let chunks: Array<Buffer> = []
      let received = 0
      let expected = Infinity
      let bodyAt = 0
      const next = () => {
        from = performance.now()
        if (turn >= questionsMax || from - startedAt >= milliseconds) return socket.end()
        chunks = []
        received = 0
        expected = Infinity
        path = paths[turn++ % paths.length]!
        socket.write(`GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n\r\n`)
      }
      socket
        .once("connect", next)
        .once("error", reject)
        .once("close", () => resolve())
      socket.on("data", (chunk: Buffer) => {
        chunks.push(chunk)
        received += chunk.length
        if (expected === Infinity) {
          const sofar = Buffer.concat(chunks)
          const end = sofar.indexOf(headEnd)
          if (end === -1) return
          const length = /content-length: (\d+)/i.exec(sofar.toString("latin1", 0, end))?.[1]
          if (length === undefined) return void socket.destroy(new Error("an answer without content-length"))
          bodyAt = end + headEnd.length
          expected = bodyAt + Number(length)
        }
        if (received < expected) return
        const time = performance.now() - from
        const error = errorOf(Buffer.concat(chunks), bodyAt, holds)
        if (error === undefined) times.push(time)
        else {
          wrong[error] = (wrong[error] ?? 0) + 1
          if (faulty.size < faultyMax) faulty.add(path)
        }
        next()
      })
    })
  return Promise.all(Array.from({ length: clients }, client)).then(() => ({
    times: times.sort((a, b) => a - b),
    elapsedMillis: performance.now() - startedAt,
    wrong,
    faulty: [...faulty]
  }))
}

if (process.argv[1] === import.meta.filename) {
  let text = ""
  for await (const chunk of process.stdin) text += String(chunk)
  process.stdout.write(JSON.stringify(await load(JSON.parse(text) as LoadJob)))
}
