// Two proxies that forward bytes and count: calls to a ledger's RPC by method, and statements to PostgreSQL by protocol
// message (an Execute or a simple Query each). They are used only for counting; timed runs connect directly.
import { createServer as createHttp, request, Agent } from "node:http"
import { connect, createServer, type Server, type Socket } from "node:net"

export interface Counter {
  readonly url: string
  /** Number of occurrences of each kind so far. */
  readonly counts: () => ReadonlyMap<string, number>
  readonly stop: () => Promise<void>
}

const listen = (server: Server): Promise<number> =>
  new Promise((resolve, reject) => {
    server.once("error", reject)
    server.listen(0, "127.0.0.1", () => resolve((server.address() as { port: number }).port))
  })

const counter = () => {
  const counts = new Map<string, number>()
  return { counts, count: (what: string) => counts.set(what, (counts.get(what) ?? 0) + 1) }
}

const closed = (server: Server): Promise<void> => new Promise((resolve) => server.close(() => resolve()))

/** Counts the calls by method; a batch counts each of its calls. */
export const countRpc = async (targetUrl: string): Promise<Counter> => {
  const { count, counts } = counter()
  const target = new URL(targetUrl)
  const agent = new Agent({ keepAlive: true })
  const server = createHttp((incoming, answer) => {
    const chunks: Array<Buffer> = []
    incoming.on("data", (chunk: Buffer) => chunks.push(chunk))
    incoming.on("end", () => {
      const body = Buffer.concat(chunks)
      for (const [, method] of body.toString("latin1").matchAll(/"method"\s*:\s*"(\w+)"/g)) count(method!)
      const { headers, method, url } = incoming
      const sent = request(
        { agent, host: target.hostname, port: target.port, method, path: url, headers },
        (response) => {
          answer.writeHead(response.statusCode ?? 502, response.headers)
          response.pipe(answer)
        }
      )
      sent.on("error", () => answer.destroy())
      sent.end(body)
    })
  })
  const port = await listen(server)
  return {
    url: `http://127.0.0.1:${port}`,
    counts: () => new Map(counts),
    stop: async () => {
      agent.destroy()
      server.closeAllConnections()
      await closed(server)
    }
  }
}

/** A message without a kind (start-up, TLS, cancel), which precedes the first one with a kind. */
const isUntyped = (code: number): boolean => code === 80_877_103 || code === 80_877_102 || code === 80_877_104

/** Reads the bytes of a PostgreSQL client and counts its statements. */
export const statementReader = (count: (what: string) => void): ((chunk: Buffer) => void) => {
  let rest: Buffer = Buffer.alloc(0)
  let started = false
  return (chunk) => {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
    for (;;) {
      const head = started ? 1 : 0
      if (rest.length < head + 4 || (!started && rest.length < 8)) return
      const length = rest.readInt32BE(head)
      if (rest.length < head + length) return
      if (!started) started = !isUntyped(rest.readInt32BE(4))
      else if (rest[0] === 0x45 || rest[0] === 0x51) count("statement")
      else if (rest[0] === 0x53) count("round trip")
      rest = rest.subarray(head + length)
    }
  }
}

/** Counts statements, and round trips of the extended protocol. */
export const countSql = async (databaseUrl: string): Promise<Counter> => {
  const { count, counts } = counter()
  const target = new URL(databaseUrl)
  const open = new Set<Socket>()
  const server = createServer((client) => {
    const read = statementReader(count)
    const upstream = connect(Number(target.port || 5_432), target.hostname)
    for (const [from, to] of [
      [client, upstream],
      [upstream, client]
    ] as const) {
      open.add(from)
      from.setNoDelay(true)
      from.on("data", (chunk: Buffer) => {
        if (from === client) read(chunk)
        to.write(chunk)
      })
      from.on("close", () => (open.delete(from), to.destroy()))
      from.on("error", () => to.destroy())
    }
  })
  const url = new URL(databaseUrl)
  url.host = `127.0.0.1:${await listen(server)}`
  return {
    url: url.href,
    counts: () => new Map(counts),
    stop: async () => {
      for (const socket of open) socket.destroy()
      await closed(server)
    }
  }
}
