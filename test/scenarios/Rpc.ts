// The ledger's RPC as a provider runs it, in front of the real one: it can die, refuse submissions, and report close
// times that are not those of this machine's clock. Nothing else is changed.
import { createServer, type IncomingMessage } from "node:http"
import type { AddressInfo } from "node:net"

export interface RpcEndpoint {
  readonly url: string
  /** Dead: every connection is cut. */
  isDead: boolean
  /** Submissions are refused with 503, so recorded settlements stay open. */
  holds: boolean
  /** Added to the close times that it reports. */
  skewSeconds: number
  readonly close: () => Promise<void>
}

const bodyOf = async (request: IncomingMessage): Promise<string> => {
  let text = ""
  for await (const chunk of request.setEncoding("utf8")) text += String(chunk)
  return text
}

/** The answer of `getLatestLedger` as of another clock. */
const shifted = (text: string, seconds: number): string => {
  const answer = JSON.parse(text)
  if (answer.result?.closeTime === undefined) return text
  answer.result.closeTime = String(Number(answer.result.closeTime) + seconds)
  return JSON.stringify(answer)
}

export const startEndpoint = async (target: string): Promise<RpcEndpoint> => {
  const server = createServer((request, response) => {
    const handle = async () => {
      if (endpoint.isDead) return request.destroy()
      const body = await bodyOf(request)
      const { method } = JSON.parse(body)
      const headers = { "content-type": "application/json" }
      if (endpoint.holds && method === "sendTransaction") return response.writeHead(503).end()
      const answer = await fetch(target, { method: "POST", headers, body })
      const text = await answer.text()
      const isShifted = method === "getLatestLedger" && endpoint.skewSeconds !== 0
      response.writeHead(answer.status, headers).end(isShifted ? shifted(text, endpoint.skewSeconds) : text)
    }
    handle().catch(() => request.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const endpoint: RpcEndpoint = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    isDead: false,
    holds: false,
    skewSeconds: 0,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      })
  }
  return endpoint
}
