// JSON-RPC of the agent tools over HTTP: batches are answered in the revision that has them, counted message by
// message, and refused in others. A cancelled call ends its stream: with sessions by the notification, without them by
// the end of the connection.
import { createServer } from "node:http"
import { once } from "node:events"
import { deepStrictEqual, ok, rejects, strictEqual } from "node:assert"
import type { Part } from "./report.ts"

interface Answer {
  readonly status: number
  readonly session: string | undefined
  readonly text: string
}

const post = async (url: string, body: unknown, more: RequestInit & { readonly session?: string } = {}) => {
  const { session, headers, ...init } = more
  const answer = await fetch(url, {
    ...init,
    method: "POST",
    headers: {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      ...(session === undefined ? {} : { "mcp-session-id": session }),
      ...(headers as Record<string, string>)
    },
    body: JSON.stringify(body)
  })
  return {
    status: answer.status,
    session: answer.headers.get("mcp-session-id") ?? undefined,
    text: await answer.text()
  } satisfies Answer
}

const ping = (id: number) => ({ jsonrpc: "2.0", id, method: "ping" })
const clientInfo = { name: "conformance", version: "1" }
const search = (id: number) => ({
  jsonrpc: "2.0",
  id,
  method: "tools/call",
  params: { name: "x402_search_resources", arguments: {} }
})

/** A session of this revision. */
const beginAs = async (url: string, protocolVersion: string): Promise<string> => {
  const params = { protocolVersion, capabilities: {}, clientInfo }
  const { session } = await post(url, { jsonrpc: "2.0", id: 0, method: "initialize", params })
  ok(session !== undefined, `no session of ${protocolVersion}`)
  await post(url, { jsonrpc: "2.0", method: "notifications/initialized" }, { session })
  return session
}

/** `Invalid Request` without a message id. */
const isRefused = ({ status, text }: Answer): void => {
  const { error, id } = JSON.parse(text)
  deepStrictEqual([status, error?.code, id], [400, -32600, null])
}

/** `url` is a tool server with a limit of `callsPerSecond` messages a second, and a burst of twice as many. */
export const batchCases = async (url: string, callsPerSecond: number, { check }: Part): Promise<void> => {
  await check("a batch is answered message by message in 2025-03-26", async () => {
    const session = await beginAs(url, "2025-03-26")
    const { text } = await post(url, [ping(1), ping(2)], { session })
    deepStrictEqual(text.match(/"id":[12]/g)?.sort(), ['"id":1', '"id":2'])
  })
  await check("a batch is refused in revisions without batches, an empty one always", async () => {
    for (const revision of ["2024-11-05", "2025-06-18", "2025-11-25"])
      isRefused(await post(url, [ping(1)], { session: await beginAs(url, revision) }))
    isRefused(await post(url, [], { session: await beginAs(url, "2025-03-26") }))
    isRefused(await post(url, []))
    // The era without sessions has no batches either.
    isRefused(await post(url, [ping(1)], { headers: { "mcp-protocol-version": "2026-07-28", "mcp-method": "ping" } }))
  })
  await check("a batch counts as many messages as it has", async () => {
    const session = await beginAs(url, "2025-03-26")
    const batch = (length: number) => Array.from({ length }, (_, id) => ping(id + 1))
    strictEqual((await post(url, batch(2 * callsPerSecond + 1), { session })).status, 429)
  })
}

/** A facilitator that never answers; `asked` counts its open requests. */
const startHanging = async () => {
  let asked = 0
  const server = createServer(() => void asked++).listen(0, "127.0.0.1")
  await once(server, "listening")
  return {
    url: `http://127.0.0.1:${(server.address() as { port: number }).port}`,
    asked: () => asked,
    stop: async () => {
      server.close()
      server.closeAllConnections()
    }
  }
}

const until = async (holds: () => boolean): Promise<void> => {
  const end = performance.now() + 20_000
  while (!holds()) {
    if (performance.now() > end) throw new Error("the call did not reach the facilitator")
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

/** `start` returns the address of a tool server over this facilitator, and stops it. */
export const cancelCases = async (
  start: (facilitator: string) => Promise<{ readonly url: string; readonly stop: () => Promise<void> }>,
  { check }: Part
): Promise<void> => {
  const hanging = await startHanging()
  const { stop, url } = await start(hanging.url)
  /** Sends a call, and waits until its request to the facilitator is open. */
  const begin = async (body: unknown, calls: number, more: Parameters<typeof post>[2]) => {
    const before = hanging.asked()
    const stream = post(url, body, more)
    stream.catch(() => undefined)
    await until(() => hanging.asked() >= before + calls)
    return { stream }
  }
  try {
    await check("a cancelled call ends its stream without an answer; the session continues", async () => {
      const session = await beginAs(url, "2025-11-25")
      const { stream } = await begin(search(5), 1, { session })
      const cancel = { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 5 } }
      strictEqual((await post(url, cancel, { session })).status, 202)
      ok(!(await stream).text.includes('"id":5'))
      ok((await post(url, ping(6), { session })).text.includes('"id":6'))
    })
    await check("the stream of a batch ends with the last of its calls", async () => {
      const session = await beginAs(url, "2025-03-26")
      const { stream } = await begin([search(7), search(8)], 2, { session })
      for (const requestId of [7, 8])
        await post(url, { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId } }, { session })
      ok(!/"id":[78]/.test((await stream).text))
    })
    await check("a call without a session ends with its connection; the server continues", async () => {
      const abort = new AbortController()
      const meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": clientInfo,
        "io.modelcontextprotocol/clientCapabilities": {}
      }
      const headers = {
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": "x402_search_resources"
      }
      const { params, ...call } = search(9)
      const message = { ...call, params: { ...params, _meta: meta } }
      const { stream } = await begin(message, 1, { headers, signal: abort.signal })
      abort.abort()
      await rejects(stream, { name: "AbortError" })
      const discover = { jsonrpc: "2.0", id: 10, method: "server/discover", params: { _meta: meta } }
      const { status } = await post(url, discover, { headers: { ...headers, "mcp-method": "server/discover" } })
      strictEqual(status, 200)
    })
  } finally {
    await stop()
    await hanging.stop()
  }
}
