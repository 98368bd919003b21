// Shared by the tests of the agent tools: a whole tool server in this process, as the shipped profile starts it,
// clients of the official SDK over each transport, and stub facilitators that respond as a test wants.
import { Client } from "@modelcontextprotocol/sdk/client/index.js"
import { SSEClientTransport } from "@modelcontextprotocol/sdk/client/sse.js"
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js"
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js"
import { NodeServices } from "@effect/platform-node"
import { Deferred, Effect, FileSystem, Layer, References, type Scope } from "effect"
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import process from "node:process"
import { DatabaseSource } from "../../../kernel/database/DatabaseSource.ts"
import { loadProfile } from "../../../runtime/profile.ts"
import { serve } from "../../../runtime/serve.ts"

export type Json = Record<string, any>

export interface ToolsOptions {
  readonly facilitatorUrl: string
  readonly set?: ReadonlyArray<string>
  readonly environment?: Readonly<Record<string, string>>
  /** Its state folder; absent: a temporary one. */
  readonly stateFolder?: string | undefined
  /** Default: a database that must not be opened. */
  readonly database?: Layer.Layer<DatabaseSource> | undefined
}

/** A database that ends the process when it is opened. */
const noDatabase = Layer.succeed(DatabaseSource, { open: Effect.die(new Error("the tool server opened a database")) })

/** Starts a tool server over HTTP; succeeds with its address. A refused start fails. */
export const startTools = ({
  database = noDatabase,
  environment = {},
  facilitatorUrl,
  set = [],
  stateFolder: given
}: ToolsOptions): Effect.Effect<string, unknown, Scope.Scope> =>
  Effect.gen(function* () {
    const files = yield* FileSystem.FileSystem
    const stateFolder = given ?? (yield* files.makeTempDirectoryScoped({ prefix: "tollkeeper-tools-" }))
    const profile = yield* loadProfile(
      "tools",
      ["transport=http", "http.port=0", `facilitator.base_url=${facilitatorUrl}`, ...set],
      environment
    )
    const ready = yield* Deferred.make<number, unknown>()
    yield* serve({
      profile,
      stateFolder,
      database,
      onReady: (address) => Effect.asVoid(Deferred.succeed(ready, address?.port ?? 0))
    }).pipe(
      Effect.tapCause((cause) => Deferred.failCause(ready, cause)),
      Effect.provideService(
        References.MinimumLogLevel,
        process.env["TOLLKEEPER_TEST_LOG"] === undefined ? "None" : "Debug"
      ),
      Effect.forkScoped
    )
    return `http://127.0.0.1:${yield* Deferred.await(ready)}`
  }).pipe(Effect.provide(NodeServices.layer))

const connected = (transport: Transport): Effect.Effect<Client, unknown, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.tryPromise(async () => {
      const client = new Client({ name: "agent", version: "1.0.0" })
      await client.connect(transport)
      return client
    }),
    (client) => Effect.promise(() => client.close())
  )

const init = (key: string | undefined) =>
  key === undefined ? {} : { requestInit: { headers: { authorization: `Bearer ${key}` } } }

export const connectHttp = (url: string, key?: string) =>
  connected(new StreamableHTTPClientTransport(new URL(`${url}/mcp`), init(key)) as Transport)

export const connectSse = (url: string, key?: string) =>
  connected(new SSEClientTransport(new URL(`${url}/sse`), init(key)))

export interface Called {
  readonly isError: boolean
  readonly body: Json
  readonly raw: Json
}

/** Calls a tool; fails unless both copies of a result are equal, if it is short enough to be sent twice. */
export const call = (client: Client, name: string, args: Json = {}): Effect.Effect<Called> =>
  Effect.promise(async () => {
    const raw = (await client.callTool({ name, arguments: args })) as Json
    const [{ text }] = raw["content"]
    const isShort =
      (name === "x402_search_resources" && raw["isError"] !== true) ||
      JSON.stringify(raw["structuredContent"]).length > 30_000
    if (!isShort && JSON.stringify(JSON.parse(text)) !== JSON.stringify(raw["structuredContent"]))
      throw new Error("the two copies differ")
    return { isError: raw["isError"] === true, body: raw["structuredContent"], raw }
  })

export const revision = "2026-07-28"

export interface Asked {
  readonly headers?: Readonly<Record<string, string>>
  readonly meta?: Json
  readonly capabilities?: Json
}

/** One request of 2026-07-28, without a session or stream; the raw response. */
export const askRaw = (url: string, method: string, params: Json = {}, asked: Asked = {}) =>
  Effect.promise(async () => {
    const { capabilities = {}, headers = {}, meta = {} } = asked
    const answer = await fetch(`${url}/mcp`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        "mcp-protocol-version": revision,
        "mcp-method": method,
        ...(typeof params["name"] === "string" ? { "mcp-name": params["name"] } : {}),
        ...headers
      },
      body: JSON.stringify({
        jsonrpc: "2.0",
        id: 1,
        method,
        params: {
          ...params,
          _meta: {
            "io.modelcontextprotocol/protocolVersion": revision,
            "io.modelcontextprotocol/clientInfo": { name: "raw", version: "1" },
            "io.modelcontextprotocol/clientCapabilities": capabilities,
            ...meta
          }
        }
      })
    })
    const body = JSON.parse(await answer.text()) as Json
    return { status: answer.status, session: answer.headers.get("mcp-session-id"), body }
  })

/** A plain HTTP server on a free port, for the lifetime of the Scope. */
export const substitute = (
  answer: (request: IncomingMessage, response: ServerResponse) => void
): Effect.Effect<string, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.promise(
        () =>
          new Promise<ReturnType<typeof createServer>>((resolve) => {
            const server = createServer(answer).listen(0, "127.0.0.1", () => resolve(server))
          })
      ),
      (server) =>
        Effect.promise(
          () =>
            new Promise<void>((resolve) => {
              server.close(() => resolve())
              server.closeAllConnections()
            })
        )
    ),
    (server) => `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  )

/** Answers every request with one JSON body. */
export const substituteJson = (body: unknown, status = 200) =>
  substitute((_request, response) =>
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body))
  )

/** A resource as the catalog serves it. */
export const listedResource = (more: Json = {}): Json => ({
  resource: "https://weather.example/v1",
  type: "http",
  x402Version: 2,
  accepts: [
    {
      scheme: "exact",
      network: "ledger:testnet",
      asset: "CBIELTK6YBZJU5UP2WWQEUCYKLPU6AUNZ2BQ4WWFEIE3USCIHMXQDAMA",
      amount: "1000",
      payTo: "G",
      maxTimeoutSeconds: 60
    }
  ],
  description: "Weather",
  lastUpdated: "2026-01-01T00:00:00.000Z",
  status: "active",
  verification: "payment_observed",
  ownership: "proven",
  ...more
})

export const pageOf = (...items: ReadonlyArray<Json>): Json => ({
  x402Version: 2,
  items,
  partialResults: false,
  pagination: { limit: 20, offset: 0, total: items.length, cursor: null }
})
