// A proxy before the ledger's RPC that injects faults of networks and nodes: swallows requests, answers 503, loses
// answers after the work was done, reports a ledger that is behind, reports an error for an accepted submission.
import { createServer, type IncomingMessage } from "node:http"
import { Networks, TransactionBuilder } from "@stellar/stellar-sdk"
import type { AddressInfo } from "node:net"

export interface BadProxy {
  readonly url: string
  /** Seen so far, by kind. */
  readonly counts: Map<string, number>
  /** No request gets an answer until this many milliseconds from now. */
  readonly blackhole: (millis: number) => void
  readonly close: () => Promise<void>
}

export interface ProxyFaults {
  readonly away: number
  readonly lostAnswer: number
  readonly errorThoughTaken: number
  readonly tryAgain: number
  readonly behind: number
}

const bodyOf = async (request: IncomingMessage): Promise<string> => {
  const chunks: Array<Buffer> = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString("utf8")
}

/** `chance` decides each time anew. */
export const startBadProxy = async (
  target: string,
  faults: ProxyFaults,
  chance: (probability: number) => boolean
): Promise<BadProxy> => {
  const counts = new Map<string, number>()
  const count = (what: string) => counts.set(what, (counts.get(what) ?? 0) + 1)
  let silentUntil = 0
  const server = createServer((request, response) => {
    const answer = (status: number, body: string) =>
      response.writeHead(status, { "content-type": "application/json" }).end(body)
    const handle = async () => {
      if (request.method !== "POST") {
        const relayed = await fetch(`${target}${request.url}`)
        return answer(relayed.status, await relayed.text())
      }
      const body = await bodyOf(request)
      if (performance.now() < silentUntil) return count("blackholed")
      const { id, method, params } = JSON.parse(body)
      if (chance(faults.away)) {
        count("away")
        return answer(503, "")
      }
      if (method === "sendTransaction" && chance(faults.tryAgain)) {
        count("try again later")
        const { result } = (await (
          await fetch(target, {
            method: "POST",
            headers: { "content-type": "application/json" },
            body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "getLatestLedger" })
          })
        ).json()) as any
        const hash = Buffer.from(TransactionBuilder.fromXdr(params.transaction, Networks.TESTNET).hash()).toString(
          "hex"
        )
        return answer(
          200,
          JSON.stringify({
            jsonrpc: "2.0",
            id,
            result: { status: "TRY_AGAIN_LATER", hash, latestLedger: result.sequence, latestLedgerCloseTime: "0" }
          })
        )
      }
      const relayed = await fetch(target, { method: "POST", headers: { "content-type": "application/json" }, body })
      const text = await relayed.text()
      if (chance(faults.lostAnswer)) {
        count("answer lost")
        return response.destroy()
      }
      if (method === "sendTransaction" && chance(faults.errorThoughTaken)) {
        const said = JSON.parse(text)
        if (said.result?.status === "PENDING") {
          count("taken, and called an error")
          return answer(200, JSON.stringify({ ...said, result: { ...said.result, status: "ERROR" } }))
        }
      }
      if ((method === "getTransaction" || method === "getLatestLedger") && chance(faults.behind)) {
        count("a node that is behind")
        const said = JSON.parse(text)
        if (method === "getTransaction" && said.result !== undefined) {
          const { latestLedger, oldestLedger } = said.result
          return answer(
            200,
            JSON.stringify({
              jsonrpc: "2.0",
              id,
              result: {
                ...said.result,
                status: "NOT_FOUND",
                latestLedger: latestLedger - 6,
                oldestLedger,
                envelopeXdr: undefined,
                resultXdr: undefined,
                resultMetaXdr: undefined
              }
            })
          )
        }
        if (said.result?.sequence !== undefined)
          return answer(
            200,
            JSON.stringify({ ...said, result: { ...said.result, sequence: said.result.sequence - 6 } })
          )
      }
      return answer(relayed.status, text)
    }
    handle().catch(() => response.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    counts,
    blackhole: (millis) => {
      count("blackhole")
      silentUntil = performance.now() + millis
    },
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections()
        server.close(() => resolve())
      })
  }
}
