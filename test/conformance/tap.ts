// A tap between a seller and the facilitator: an HTTP proxy that forwards every byte and records the exchange. It
// counts the requests to each route and stores the exact bodies for replays; the seller's packages stay unchanged.
import { createServer } from "node:http"
import { once } from "node:events"

export interface Exchange {
  readonly method: string
  readonly path: string
  readonly body: string
  readonly status: number
  readonly headers: Headers
  readonly answer: string
}

export interface Tap {
  readonly url: string
  readonly exchanges: ReadonlyArray<Exchange>
  /** Exchanges of one path, oldest first, from position `since`. */
  readonly of: (path: string, since?: number) => ReadonlyArray<Exchange>
  /**
   * While `work` runs, forwards requests of that path and breaks the connection instead of answering. This applies to
   * every request, because Deno's fetch repeats a POST when a kept connection breaks.
   */
  readonly loseWhile: <A>(path: string, work: () => Promise<A>) => Promise<A>
  readonly stop: () => Promise<void>
}

const carried = ["content-type", "authorization", "accept", "idempotency-key"]

/** Starts a tap in front of `target`, the facilitator's base URL, on a free port. */
export const startTap = async (target: string): Promise<Tap> => {
  const exchanges: Array<Exchange> = []
  const toLose = new Set<string>()
  const server = createServer(async (request, response) => {
    const chunks: Array<Buffer> = []
    for await (const chunk of request) chunks.push(chunk)
    const body = Buffer.concat(chunks)
    const headers = new Headers()
    for (const name of carried) {
      const value = request.headers[name]
      if (typeof value === "string") headers.set(name, value)
    }
    try {
      const answer = await fetch(new URL(request.url!, target), {
        method: request.method!,
        headers,
        ...(body.length > 0 ? { body } : {})
      })
      const bytes = Buffer.from(await answer.arrayBuffer())
      exchanges.push({
        method: request.method!,
        path: request.url!,
        body: body.toString("utf8"),
        status: answer.status,
        headers: answer.headers,
        answer: bytes.toString("utf8")
      })
      if (toLose.has(request.url!)) return void response.destroy()
      const passed: Record<string, string> = {}
      answer.headers.forEach((value, name) => {
        if (!["connection", "content-encoding", "content-length", "keep-alive", "transfer-encoding"].includes(name)) {
          passed[name] = value
        }
      })
      response.writeHead(answer.status, passed).end(bytes)
    } catch (error) {
      response.writeHead(502).end(String(error))
    }
  })
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  const { port } = server.address() as { port: number }
  return {
    url: `http://127.0.0.1:${port}`,
    exchanges,
    loseWhile: (path, work) => {
      toLose.add(path)
      return work().finally(() => toLose.delete(path))
    },
    of: (path, since = 0) => exchanges.slice(since).filter((exchange) => exchange.path === path),
    stop: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, "close")
    }
  }
}
