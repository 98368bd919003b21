// Bodies of a seller's MCP endpoint without a readable answer to the call: a paid one is content, since it may be all
// that comes for the money; an unpaid one is an error. The network is played, the rest is the tool server's own.
import { expect, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Outbound } from "../../../kernel/platform/Outbound.ts"
import { Config, type ConfigValues } from "../../../plugins/mcp-tools/Config.ts"
import { Upstreams } from "../../../plugins/mcp-tools/Upstream.ts"
import { openSeller } from "../../../plugins/mcp-tools-pay/seller/SellerSession.ts"

const caps = { responseBytesMax: 100_000, timeoutMillis: 10_000, redirectsMax: 0, jsonDepthMax: 8, connectionsMax: 3 }
const payment = { payment: { x402Version: 2, payload: {} }, timeoutMillis: 5_000 }

/** A conversation with a seller that answers each call of its tool by `body`, whole in its framing. */
const sellerOf = (body: string, headers: Readonly<Record<string, string>> = { "content-type": "application/json" }) =>
  Effect.gen(function* () {
    const outbound = Outbound.of({
      resolve: () => Effect.succeed(["93.184.216.34"]),
      texts: () => Effect.die("must not be called"),
      send: ({ body: sent }) => {
        const { id, method } = JSON.parse(new TextDecoder().decode(sent ?? new Uint8Array()))
        const result = method === "initialize" ? { protocolVersion: "2025-06-18" } : { tools: [] }
        const text = method === "tools/call" ? body : JSON.stringify({ jsonrpc: "2.0", id, result })
        return Effect.succeed({ status: 200, headers, body: new TextEncoder().encode(text) })
      }
    })
    const { within } = yield* Upstreams.pipe(
      Effect.provide(Upstreams.layer),
      Effect.provide(
        Layer.merge(Layer.succeed(Outbound, outbound), Layer.succeed(Config, { caps } as unknown as ConfigValues))
      )
    )
    return yield* openSeller(
      within({ allowLocal: false, allowPlain: false, isStranger: true }),
      new URL("https://seller.example.com/mcp")
    )
  })

it.effect("a paid body without a readable answer is the content", () =>
  Effect.gen(function* () {
    const bodies: ReadonlyArray<readonly [string, string, boolean]> = [
      ["17 degrees, and no JSON", "the seller's answer is not JSON within the limits", true],
      ['{"jsonrpc":"2.0","id":99,"result":{"celsius":17}}', "the seller's answer does not match the request", false]
    ]
    for (const [body, why, isPart] of bodies) {
      const { callTool, payTool } = yield* sellerOf(body)
      expect(yield* payTool("forecast", {}, payment)).toEqual({
        result: { content: [{ type: "text", text: body }], truncated: true },
        isPart,
        why
      })
      expect(yield* Effect.flip(callTool("forecast", {}))).toMatchObject({ message: why })
    }
    const { payTool } = yield* sellerOf(" \n")
    expect(yield* Effect.flip(payTool("forecast", {}, payment))).toMatchObject({ code: "UPSTREAM_PROTOCOL_ERROR" })
  })
)
