// A foreign RPC for tests: an HTTP server with an answer from a script to every request, true or not. It counts the
// requests, so that a test can assert that a request was never sent. It stops with the Scope.
import { Effect, type Scope } from "effect"
import { createServer, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"

/** The script's answer to one call. */
export type Said =
  /** Sent `afterMillis` later, if present. */
  | { readonly result: unknown; readonly afterMillis?: number }
  | { readonly error: { readonly code: number; readonly message: string } }
  /** Unchanged bytes, with their own status. */
  | { readonly raw: string | Uint8Array; readonly status?: number; readonly headers?: Readonly<Record<string, string>> }
  /** Never answers. */
  | "silence"
  /** Closes the connection without an answer. */
  | "hangup"
  /** A correct result with another call's id. */
  | { readonly otherId: unknown }
  /** Keeps sending as long as the client reads. */
  | "endless"

export interface ScriptedRpc {
  readonly url: string
  /** The script, by method; may be changed at any time. A method that is not in it is a protocol error. */
  readonly script: Record<string, Said | ((params: any) => Said)>
  /** Requested methods, in order. */
  readonly asked: Array<string>
  /** The headers of each request, in the same order. */
  readonly received: Array<Readonly<Record<string, string | ReadonlyArray<string> | undefined>>>
}

export const testPassphrase = "Test SDF Network ; September 2015"

const endless = (response: ServerResponse) => {
  response.writeHead(200, { "content-type": "application/json" })
  const chunk = "[".repeat(65_536)
  const more = () => {
    while (!response.destroyed && response.write(chunk)) {
      /* until the reader is slower */
    }
  }
  response.on("drain", more)
  more()
}

const send = (response: ServerResponse, said: Exclude<Said, string>, id: number) => {
  const own = "raw" in said ? said.headers : {}
  const envelope = "otherId" in said ? { id: id + 1_000, result: said.otherId } : { id, ...said }
  response
    .writeHead("raw" in said ? (said.status ?? 200) : 200, { "content-type": "application/json", ...own })
    .end("raw" in said ? said.raw : JSON.stringify({ jsonrpc: "2.0", ...envelope }))
}

/** The script answers `getNetwork` correctly from the start. */
export const startScriptedRpc = (script: ScriptedRpc["script"] = {}): Effect.Effect<ScriptedRpc, never, Scope.Scope> =>
  Effect.gen(function* () {
    const asked: Array<string> = []
    const received: ScriptedRpc["received"] = []
    const full: ScriptedRpc["script"] = {
      getNetwork: { result: { passphrase: testPassphrase, protocolVersion: 23 } },
      ...script
    }
    const server = createServer((request, response) => {
      const chunks: Array<Buffer> = []
      request.on("data", (chunk: Buffer) => chunks.push(chunk))
      request.on("end", () => {
        const { id, method, params } = JSON.parse(Buffer.concat(chunks).toString()) as {
          id: number
          method: string
          params: unknown
        }
        asked.push(method)
        received.push(request.headers)
        const scripted = full[method]
        const said =
          typeof scripted === "function"
            ? scripted(params)
            : (scripted ?? { error: { code: -32601, message: "method not found" } })
        if (said === "silence") return
        if (said === "hangup") return void response.destroy()
        if (said === "endless") return endless(response)
        if ("result" in said && said.afterMillis !== undefined) {
          const { afterMillis, result } = said
          return void setTimeout(() => send(response, { result }, id), afterMillis)
        }
        send(response, said, id)
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
    return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, script: full, asked, received }
  })
