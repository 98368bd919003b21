import { expect, it } from "@effect/vitest"
import { NodeServices } from "@effect/platform-node"
import { Effect, Layer, Option, Queue, Stream } from "effect"
import { HttpRouter, HttpServer } from "effect/http"
import { gather } from "../../../kernel/config/gather.ts"
import { drivers } from "../../../kernel/drivers.ts"
import { StartupBanner } from "../../../kernel/StartupBanner.ts"
import { ListenAt } from "../../../kernel/http/ListenAt.ts"
import * as Loader from "../../../kernel/plugin/Loader.ts"
import { Outbound } from "../../../kernel/platform/Outbound.ts"
import { Stdio } from "../../../kernel/platform/Stdio.ts"
import { type AnyPlugin, define } from "../../../kernel/plugin/Plugin.ts"
import { PluginStates } from "../../../kernel/plugin/PluginStates.ts"
import { RouteClaims } from "../../../kernel/plugin/Routes.ts"
import { toolError, Tools, toolsContract } from "../../../plugins/mcp-tools/contract.ts"
import { plugin as mcpTools } from "../../../plugins/mcp-tools/plugin.ts"
import { makeCatalogue } from "../../../runtime/App.ts"
import * as NodeCrypto from "../../../runtime/platform/nodeCrypto.ts"
import { payingSet } from "../mcp-tools-pay/payWorld.ts"
import { askRaw, type Json, listedResource, pageOf, substituteJson, startTools } from "./support.ts"

it.effect("the tool server needs no database or ledger; paying adds RPC alone [S6]", () =>
  Effect.gen(function* () {
    const catalogue = makeCatalogue({ tree: {}, secret: () => Option.none() })
    const idsOf = (profile: ReadonlyArray<string>) =>
      Effect.map(Loader.select(catalogue, profile), (plugins) => plugins.map(({ id }) => id))
    expect(yield* idsOf(["mcp-tools"])).toEqual(["settings", "supervisor", "config", "mcp-tools"])
    expect(yield* idsOf(["mcp-tools", "mcp-tools-pay"])).toEqual([
      "settings",
      "supervisor",
      "config",
      "network",
      "rpc",
      "mcp-tools",
      "mcp-tools-pay"
    ])
  })
)

it.effect("a signer without a paying plugin is refused with that plugin's name [S249]", () =>
  Effect.gen(function* () {
    const facilitatorUrl = yield* substituteJson(pageOf(listedResource()))
    const refused = yield* Effect.flip(
      startTools({
        facilitatorUrl,
        set: ["signer.mode=external", "signer.external_url=https://signer.example"],
        environment: { TOOLS_API_KEYS: "0123456789abcdef" }
      })
    )
    expect(refused).toMatchObject({
      _tag: "SettingsRefused",
      path: "signer.mode",
      message: expect.stringContaining("mcp-tools-pay")
    })
  }).pipe(Effect.scoped)
)

it.effect("without a signer the paying plugin adds no tool [S201]", () =>
  Effect.gen(function* () {
    const facilitatorUrl = yield* substituteJson(pageOf(listedResource()))
    const set = payingSet({ ledgerUrl: "http://127.0.0.1:1024" })
    const url = yield* startTools({ facilitatorUrl, set })
    const { result } = (yield* askRaw(url, "tools/list")).body
    expect(result.tools.map(({ name }: Json) => name)).toEqual(["x402_search_resources", "x402_get_resource"])
    const { body } = yield* askRaw(url, "tools/call", { name: "x402_call_resource", arguments: { ref: "v1.x" } })
    expect(body["error"]).toMatchObject({ code: -32602, data: { code: "INVALID_ARGUMENT" } })
  }).pipe(Effect.scoped)
)

/** A process's stdin that an agent filled before anything started. */
const filledStdin = (lines: ReadonlyArray<string>) =>
  Effect.map(Queue.unbounded<string>(), (written) => {
    let isRead = false
    const port = Stdio.of({
      lines: () =>
        Stream.unwrap(
          Effect.sync(() => {
            isRead = true
            return Stream.concat(Stream.fromIterable(lines), Stream.never)
          })
        ),
      write: (line) => Effect.asVoid(Queue.offer(written, line)),
      leave: Effect.void,
      left: Effect.never
    })
    return { port, written, isRead: () => isRead }
  })

const request = (id: number, method: string, params: unknown = {}) =>
  JSON.stringify({ jsonrpc: "2.0", id, method, params })

it.effect("stdin is read after all plugins start, so tools/list is complete [S181]", () =>
  Effect.gen(function* () {
    const stdin = yield* filledStdin([
      request(1, "initialize", {
        protocolVersion: "2025-11-25",
        capabilities: {},
        clientInfo: { name: "agent", version: "1" }
      }),
      JSON.stringify({ jsonrpc: "2.0", method: "notifications/initialized" }),
      // Refused, and not answered either.
      JSON.stringify({ jsonrpc: "2.0", method: "notifications/x", params: 5 }),
      request(2, "tools/list")
    ])
    const readWhileBuilding: Array<boolean> = []
    const late = define({
      id: "late",
      summary: "Brings a tool.",
      boot: "required",
      needs: [toolsContract],
      migrations: "none",
      layer: Layer.effectDiscard(
        Effect.gen(function* () {
          // A reader would already have had every chance to read.
          for (let turn = 0; turn < 100; turn++) yield* Effect.yieldNow
          readWhileBuilding.push(stdin.isRead())
          yield* (yield* Tools).register({
            name: "late_tool",
            title: "Late",
            description: "Comes last.",
            inputSchema: { type: "object" },
            outputSchema: { type: "object" },
            annotations: {},
            pays: false,
            run: () => Effect.fail(toolError("NO_RESULTS", "nothing"))
          })
        })
      )
    })
    const source = { tree: { facilitator: { allow_insecure: true } }, secret: () => Option.none() }
    const below: ReadonlyArray<AnyPlugin> = drivers(source, () => gather([...below, mcpTools, late]))
    const catalogue: Loader.Catalogue = {
      plugins: [...below, mcpTools, late],
      drivers: new Set(below.map(({ id }) => id)),
      migrate: () => Effect.void
    }
    const listed = yield* Effect.gen(function* () {
      yield* Loader.start(catalogue, ["mcp-tools", "late"])
      yield* (yield* (yield* ListenAt).chosen)!.begins
      const answered: Array<unknown> = []
      for (;;) {
        const answer = JSON.parse(yield* Queue.take(stdin.written))
        answered.push(answer.id)
        if (answer.id !== 2) continue
        expect(answered).toEqual([1, 2])
        return answer.result.tools as ReadonlyArray<{ readonly name: string }>
      }
    }).pipe(
      Effect.provide([
        HttpRouter.layer,
        HttpServer.layerServices,
        NodeServices.layer,
        NodeCrypto.layer,
        ListenAt.layer,
        StartupBanner.layer,
        PluginStates.layer,
        RouteClaims.layer,
        Layer.succeed(Stdio, stdin.port),
        Layer.succeed(Outbound, {
          resolve: () => Effect.die("must not be called"),
          texts: () => Effect.die("must not be called"),
          send: () => Effect.die("must not be called")
        })
      ])
    )
    expect(readWhileBuilding).toEqual([false])
    expect(listed.map(({ name }) => name)).toEqual(["x402_search_resources", "x402_get_resource", "late_tool"])
  }).pipe(Effect.scoped)
)
