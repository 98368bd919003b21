import { Client } from "@modelcontextprotocol/sdk/client/index.js"
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js"
import { expect, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { once } from "node:events"
import { existsSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { type ChildProcess, execFileSync } from "node:child_process"
import process from "node:process"
import { type Facilitator, startFacilitator } from "../../support/facilitator.ts"
import { eventually } from "../../support/eventually.ts"
import { declaring, mcpDeclaration, queryDeclaration, verified } from "../catalog/support.ts"
import { call, connectHttp, type Json, startTools } from "./support.ts"

const root = new URL("../../../", import.meta.url).pathname
const search = "x402_search_resources"
const get = "x402_get_resource"
const conditions = "https://weather.example/v1/now"
const calculator = "https://tools.example/mcp"

class World extends Context.Service<
  World,
  { readonly facilitator: Facilitator; readonly toolsUrl: string; readonly relist: Effect.Effect<void, unknown> }
>()("test/World") {
  static readonly layer = Layer.effect(
    World,
    Effect.gen(function* () {
      const facilitator = yield* startFacilitator({ set: ["server.max_request_bytes=262144"] })
      const payer = yield* facilitator.account()
      const payTo = (yield* facilitator.account()).publicKey()
      const list = (url: string, extension: Json, amount: bigint) =>
        Effect.flatMap(
          declaring(facilitator, {
            payer,
            payTo,
            url,
            extension,
            amount,
            about: { description: "Weather of a city, now" }
          }),
          (body) => verified(facilitator, body)
        )
      yield* list(conditions, queryDeclaration(), 1_000n)
      yield* list(calculator, mcpDeclaration("add"), 2_000n)
      yield* eventually(
        Effect.map(facilitator.ask("/discovery/resources"), ({ json }) =>
          json.items.some(({ resource }: Json) => resource === conditions)
        )
      )
      const toolsUrl = yield* startTools({ facilitatorUrl: facilitator.url })
      // No payment changes a listing: it is removed, and listed again at another price.
      const relist = Effect.andThen(
        facilitator.sql`delete from catalog_resources where resource = ${conditions}`,
        facilitator.ask("/discovery/resources")
      ).pipe(Effect.andThen(list(conditions, queryDeclaration(), 7_777n)), Effect.asVoid)
      return { facilitator, toolsUrl, relist }
    })
  )
}

layer(World.layer, { excludeTestServices: true, timeout: 240_000 })("agent tools beside a facilitator", (it) => {
  it.effect("discovery tools list and search every resource as discovery serves it [S5, S188, S189, S190, S191]", () =>
    Effect.gen(function* () {
      const { facilitator, toolsUrl } = yield* World
      const client = yield* connectHttp(toolsUrl)
      const served = (yield* facilitator.ask("/discovery/resources")).json
      const { body } = yield* call(client, search)
      expect(Object.keys(body)).toEqual(["x402Version", "resources", "partialResults", "pagination"])
      expect(body["x402Version"]).toBe(2)
      expect(body["resources"].map(({ resource }: Json) => resource)).toEqual(served.items)
      expect(body["pagination"]).toEqual({ limit: 5, cursor: null })
      const found = yield* call(client, search, {
        query: "weather",
        type: "http",
        network: "ledger:testnet",
        scheme: "exact",
        limit: 5
      })
      expect(found.body["resources"].map(({ resource }: Json) => resource.resource)).toEqual([conditions])
      expect(found.body["pagination"].limit).toBe(5)
    }).pipe(Effect.scoped)
  )

  it.effect("discovery tools page by the facilitator's cursor [S188, S190]", () =>
    Effect.gen(function* () {
      const client = yield* connectHttp((yield* World).toolsUrl)
      const first = yield* call(client, search, { limit: 1 })
      const second = yield* call(client, search, { limit: 1, cursor: first.body["pagination"].cursor })
      expect([first, second].map(({ body }) => body["resources"][0].resource.resource).sort()).toEqual([
        calculator,
        conditions
      ])
      expect(second.body["pagination"].cursor).toBeNull()
    }).pipe(Effect.scoped)
  )

  it.effect(
    "discovery tools wrap resources with reference, version, provenance, status and warnings [S193, S194, S195, S196, S197]",
    () =>
      Effect.gen(function* () {
        const client = yield* connectHttp((yield* World).toolsUrl)
        for (const { resource, wrapper } of (yield* call(client, search)).body["resources"]) {
          expect(wrapper).toEqual({
            ref: expect.stringMatching(/^v1\./),
            versionHash: resource.versionHash,
            provenance: "seller_declared",
            status: "active",
            warnings: [expect.stringMatching(/^owner_unproven:/)]
          })
          const got = yield* call(client, get, { ref: wrapper.ref })
          expect(got.body).toEqual({ x402Version: 2, resource, wrapper })
        }
      }).pipe(Effect.scoped)
  )

  it.effect("discovery tools answer NO_RESULTS for no match or an unknown reference [S192, S199, S225]", () =>
    Effect.gen(function* () {
      const client = yield* connectHttp((yield* World).toolsUrl)
      for (const args of [
        { payTo: "GAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAWHF" },
        { query: "zeppelin", type: "http" }
      ]) {
        expect(yield* call(client, search, args)).toMatchObject({
          isError: true,
          body: { schemaVersion: 1, code: "NO_RESULTS", retryable: false }
        })
      }
      const ref = `v1.${Buffer.from(JSON.stringify({ n: "subtract", t: "mcp", u: calculator })).toString("base64url")}`
      expect((yield* call(client, get, { ref })).body["code"]).toBe("NO_RESULTS")
    }).pipe(Effect.scoped)
  )

  it.effect("discovery tools return a newer version than expected with a warning [S101, S198]", () =>
    Effect.gen(function* () {
      const { relist, toolsUrl } = yield* World
      const client = yield* connectHttp(toolsUrl)
      const { wrapper } = (yield* call(client, search, { type: "http" })).body["resources"][0]
      const same = yield* call(client, get, { ref: wrapper.ref, expectedVersionHash: wrapper.versionHash })
      expect(same.body["wrapper"]).toEqual(wrapper)
      yield* relist
      // The catalog lists asynchronously; the payment does not wait for it.
      const changed = yield* eventually(
        call(client, get, { ref: wrapper.ref, expectedVersionHash: wrapper.versionHash }),
        ({ body }) => body["wrapper"]?.status === "stale"
      )
      expect(changed.isError).toBe(false)
      expect(changed.body["resource"].accepts.map(({ amount }: Json) => amount)).toContain("7777")
      expect(changed.body["wrapper"]).toMatchObject({
        status: "stale",
        warnings: expect.arrayContaining([expect.stringMatching(/^version_changed:/)])
      })
      expect(changed.body["wrapper"].versionHash).not.toBe(wrapper.versionHash)
    }).pipe(Effect.scoped)
  )

  it.effect("the stdio tool server opens no database and ends with its input [S3, S6, S181, S187]", () =>
    Effect.gen(function* () {
      const { facilitator } = yield* World
      const folder = mkdtempSync(join(tmpdir(), "tollkeeper-stdio-"))
      yield* Effect.addFinalizer(() => Effect.sync(() => rmSync(folder, { recursive: true, force: true })))
      const printed = (...more: ReadonlyArray<string>): Json => {
        const words = ["tools", "--print-config", "--state", join(folder, "state"), ...more]
        const args = ["--disable-warning=ExperimentalWarning", join(root, "runtime/cli.ts"), ...words]
        return JSON.parse(execFileSync(process.execPath, args, { encoding: "utf8" })).mcpServers.tollkeeper
      }
      // Started as a client would, by the configuration that the program prints.
      const { args, command } = printed("--set", `facilitator.base_url=${facilitator.url}`)
      expect(printed("--set", "transport=http", "--port", "4600")).toEqual({
        type: "streamable-http",
        url: "http://127.0.0.1:4600/mcp"
      })
      const transport = new StdioClientTransport({ command, args, stderr: "pipe" })
      const client = new Client({ name: "agent", version: "1.0.0" })
      const errors: Array<Error> = []
      client.onerror = (error) => void errors.push(error)
      yield* Effect.promise(() => client.connect(transport))
      const { body } = yield* call(client, search)
      expect(body["resources"]).toHaveLength(2)
      expect((yield* Effect.promise(() => client.listTools())).tools).toHaveLength(2)
      const { _process: program } = transport as unknown as { readonly _process: ChildProcess }
      // The client would kill a process that has not exited within two seconds.
      const exited = once(program, "exit")
      program.stdin!.end()
      expect(yield* Effect.promise(() => exited)).toEqual([0, null])
      yield* Effect.promise(() => client.close())
      expect(program.signalCode).toBe(null)
      expect(errors).toEqual([])
      expect(existsSync(join(folder, "state", "database"))).toBe(false)
    }).pipe(Effect.scoped)
  )
})
