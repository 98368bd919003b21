// An RPC endpoint between a facilitator and a ledger: it forwards every request to the ledger, unless its script
// answers or changes the answer. It counts the requests. It stops with the Scope.
import { Effect, type Scope } from "effect"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"

/** `silence`: never answers. Undefined: the ledger's own answer. */
export type Lie = (method: string, params: any, truth: () => Promise<any>) => Promise<unknown> | "silence" | undefined

export interface RpcProxy {
  readonly url: string
  /** May be changed at any time. */
  lie: Lie
  /** Requested methods, in order. */
  readonly asked: Array<string>
}

export const startRpcProxy = (
  ledgerUrl: string,
  lie: Lie = () => undefined
): Effect.Effect<RpcProxy, never, Scope.Scope> =>
  Effect.gen(function* () {
    const proxy: { url: string; lie: Lie; readonly asked: Array<string> } = { url: "", lie, asked: [] }
    const server = createServer((request, response) => {
      const chunks: Array<Buffer> = []
      request.on("data", (chunk: Buffer) => chunks.push(chunk))
      request.on("end", async () => {
        const body = Buffer.concat(chunks).toString()
        const { id, method, params } = JSON.parse(body) as { id: number; method: string; params: unknown }
        proxy.asked.push(method)
        const ask = async () =>
          (await (
            await fetch(ledgerUrl, { method: "POST", headers: { "content-type": "application/json" }, body })
          ).json()) as any
        const said = proxy.lie(method, params, async () => (await ask()).result)
        if (said === "silence") return
        const answer = said === undefined ? await ask() : { jsonrpc: "2.0", id, result: await said }
        response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(answer))
      })
    })
    yield* Effect.acquireRelease(
      Effect.promise(() => new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))),
      () =>
        Effect.sync(() => {
          server.closeAllConnections()
          server.close()
        })
    )
    proxy.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    return proxy
  })
