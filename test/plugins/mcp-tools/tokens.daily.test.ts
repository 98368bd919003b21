// The tools' cost in a model's context, counted by a public tokenizer: the list of all tools, and a search.
import { describe, expect, it } from "@effect/vitest"
import { Keypair } from "@stellar/stellar-sdk"
import { Effect } from "effect"
import { payingSet, sealed } from "../mcp-tools-pay/payWorld.ts"
import { askRaw, call, connectHttp, type Json, listedResource, pageOf, substituteJson, startTools } from "./support.ts"

/** The tokenizer belongs to `test/tools` and is not a dependency of the project. */
const tokenizer = new URL("../../tools/node_modules/gpt-tokenizer/esm/encoding/o200k_base.js", import.meta.url)
const { countTokens } = (await import(tokenizer.href)) as { readonly countTokens: (text: string) => number }

const tokensOf = (value: unknown): number => countTokens(typeof value === "string" ? value : JSON.stringify(value))

/** Listings as a real catalog has them: a long description, a schema, two assets. */
const listings = Array.from({ length: 5 }, (_, at) =>
  listedResource({
    resource: `https://api-${at}.weather.example/v1/forecast/daily`,
    serviceName: `Weather ${at}`,
    description: `Daily forecast for a city with temperature, wind and rain, by the hour, from station ${at}. `.repeat(
      4
    ),
    settlements: 40 + at,
    payers: 3,
    extensions: {
      catalog: { info: { input: { type: "http", method: "GET", queryParams: { city: "Riga", days: "3" } } } }
    }
  })
)

const paying = Effect.gen(function* () {
  const facilitatorUrl = yield* substituteJson(pageOf(...listings))
  const { file, key } = sealed(Keypair.random().secret())
  return yield* startTools({
    facilitatorUrl,
    set: [
      ...payingSet({ ledgerUrl: "http://127.0.0.1:1024" }),
      "signer.mode=encrypted-key",
      `signer.keystore_file=${file}`,
      "budget.store=memory",
      "http_payments.enabled=true"
    ],
    environment: { TOOLS_KEYSTORE_KEY: key, TOOLS_API_KEYS: "agent:0123456789abcdef" }
  })
})
const key = "0123456789abcdef"
const headers = { authorization: `Bearer ${key}` }

describe("the tools", () => {
  it.effect("the tools list fits 1,500 tokens with every member described", () =>
    Effect.gen(function* () {
      const { body } = yield* askRaw(yield* paying, "tools/list", {}, { headers })
      const { tools } = body["result"]
      expect(tools).toHaveLength(6)
      for (const { description, inputSchema, name, outputSchema } of tools) {
        expect([name, description.length > 20]).toEqual([name, true])
        for (const [member, schema] of Object.entries<Json>(inputSchema.properties))
          expect([name, member, "type" in schema, schema["description"]]).toEqual([
            name,
            member,
            true,
            expect.any(String)
          ])
        for (const [member, schema] of Object.entries<Json>(outputSchema.properties))
          expect([name, member, "type" in schema || "description" in schema]).toEqual([name, member, true])
      }
      expect(tokensOf(tools)).toBeLessThanOrEqual(1_500)
    }).pipe(Effect.scoped)
  )

  it.effect("five short results fit 1,200 tokens, full results appear once", () =>
    Effect.gen(function* () {
      const client = yield* connectHttp(yield* paying, key)
      const short = yield* call(client, "x402_search_resources", { query: "weather", detail: "short" })
      expect(short.body["resources"]).toBeUndefined()
      expect(short.body["lines"]).toHaveLength(5)
      expect(short.body["lines"][0]).toMatch(
        new RegExp(
          String.raw`^"Weather 0: Daily forecast .*…" \| http https://api-0\.weather\.example/v1/forecast/daily ` +
            String.raw`\| 0\.0001 USDC \| owner proven \| 40 settled by 3 payers in 30 days ` +
            String.raw`\| x402_fetch_resource query: city string, days string \| ref v1\.\w+$`
        )
      )
      expect(tokensOf(short.raw["content"][0].text)).toBeLessThanOrEqual(1_200)
      const full = yield* call(client, "x402_search_resources", { query: "weather" })
      expect(full.body["resources"]).toHaveLength(5)
      expect(full.raw["content"]).toEqual(short.raw["content"])
      expect(tokensOf(full.raw["content"][0].text)).toBeLessThan(tokensOf(full.body) / 2)
    }).pipe(Effect.scoped)
  )

  it.effect("clients without structured results get the whole result as text", () =>
    Effect.gen(function* () {
      const url = yield* startTools({ facilitatorUrl: yield* substituteJson(pageOf(...listings)) })
      const post = (body: Json, session?: string) =>
        Effect.promise(async () => {
          const answer = await fetch(`${url}/mcp`, {
            method: "POST",
            headers: {
              "content-type": "application/json",
              accept: "application/json, text/event-stream",
              ...(session === undefined ? {} : { "mcp-session-id": session })
            },
            body: JSON.stringify({ jsonrpc: "2.0", id: 1, ...body })
          })
          const [, data = "{}"] = /^data: (.*)$/m.exec(await answer.text()) ?? []
          return { session: answer.headers.get("mcp-session-id") ?? "", result: JSON.parse(data).result }
        })
      const params = { protocolVersion: "2025-03-26", capabilities: {}, clientInfo: { name: "old", version: "1" } }
      const { session } = yield* post({ method: "initialize", params })
      const called = { method: "tools/call", params: { name: "x402_search_resources", arguments: {} } }
      const { result } = yield* post(called, session)
      expect(JSON.parse(result.content[0].text).resources).toHaveLength(5)
    }).pipe(Effect.scoped)
  )
})
