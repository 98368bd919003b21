// A proxy in front of the ledger's RPC, like a provider's endpoint or a bad network: each scenario decides the outcome
// of a call. Forwarded calls are unchanged.
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"

const headers = { "content-type": "application/json" }

/** One JSON-RPC call. */
export interface ProxiedCall {
  readonly id: unknown
  readonly method: string
  readonly params: any
  /** The real node's answer. */
  readonly passOn: () => Promise<{ readonly status: number; readonly text: string }>
  readonly answer: (status: number, body: string) => void
  /** Cuts the connection without an answer. */
  readonly cut: () => void
}

export interface RpcProxy {
  readonly url: string
  readonly close: () => Promise<void>
}

const bodyOf = async (request: IncomingMessage): Promise<string> => {
  let text = ""
  for await (const chunk of request.setEncoding("utf8")) text += String(chunk)
  return text
}

/** Forwards non-JSON-RPC requests, which are the friendbot's. */
const relay = async (target: string, request: IncomingMessage, response: ServerResponse): Promise<void> => {
  const relayed = await fetch(`${target}${request.url}`)
  response.writeHead(relayed.status, headers).end(await relayed.text())
}

/** `target` may change while it runs. `handle` answers a call, cuts it, or leaves it open. If it throws, it is cut. */
export const startRpcProxy = async (
  target: string | (() => string),
  handle: (call: ProxiedCall) => Promise<void>,
  isAlive: () => boolean = () => true
): Promise<RpcProxy> => {
  const current = typeof target === "string" ? () => target : target
  const server = createServer((request, response) => {
    const serve = async () => {
      if (!isAlive()) return void request.destroy()
      if (request.method !== "POST") return relay(current(), request, response)
      const body = await bodyOf(request)
      const passOn = async () => {
        const answer = await fetch(current(), { method: "POST", headers, body })
        return { status: answer.status, text: await answer.text() }
      }
      const answer = (status: number, text: string) => void response.writeHead(status, headers).end(text)
      await handle({ ...JSON.parse(body), passOn, answer, cut: () => void response.destroy() })
    }
    serve().catch(() => request.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      })
  }
}
