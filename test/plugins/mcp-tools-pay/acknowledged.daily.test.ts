// Paid content arrives: a host that dies, or does not read, gets it with the identical call, and pays nothing more. It
// pays again only after the session has made another request and the replay window has passed.
import type { Client } from "@modelcontextprotocol/sdk/client/index.js"
import { Client as ModernClient } from "@modelcontextprotocol/client"
import { StdioClientTransport as ModernStdio } from "@modelcontextprotocol/client/stdio"
import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process"
import { mkdtempSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import process from "node:process"
import { call, connectHttp, type Json } from "../mcp-tools/support.ts"
import { enabled, HttpWorld, query } from "./httpWorld.ts"
import { agentKey, connectStdio, pay, PayWorld, stdioCommand } from "./payWorld.ts"
import { amount } from "./seller.ts"

let fresh = 0
const args = () => ({ a: ++fresh, b: 130_000 })

/** A host that reads the answer to its call as far as `bytes`, and dies with its tool server. */
const dyingHost = (
  { args: words, command, env }: { command: string; args: Array<string>; env: Record<string, string> },
  ref: string,
  own: Json,
  bytes: number
): Promise<void> =>
  new Promise((resolve) => {
    const child: ChildProcessWithoutNullStreams = spawn(command, words, { env: { ...process.env, ...env } })
    child.stderr.resume()
    child.once("exit", () => resolve())
    let [read, line, isCalled] = [0, "", false]
    const send = (message: Json) => child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`)
    child.stdout.on("data", (chunk: Buffer) => {
      if (isCalled) {
        read += chunk.length
        if (read >= bytes) child.kill("SIGKILL")
        else if (bytes === Infinity) child.stdout.pause()
        return
      }
      line += chunk.toString("utf8")
      if (!line.includes("\n")) return
      isCalled = true
      send({ method: "notifications/initialized" })
      send({ id: 2, method: "tools/call", params: { name: "x402_call_resource", arguments: { ref, arguments: own } } })
    })
    const clientInfo = { name: "host", version: "1" }
    send({ id: 1, method: "initialize", params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo } })
  })

/** The text of a long tool's result. */
const longText = (length: number) =>
  'the text that was paid for, "quoted"\n'.repeat(Math.ceil(length / 36)).slice(0, length)

const readPages = async (client: Client | ModernClient, first: string): Promise<string> => {
  let [text, next] = ["", first as string | undefined]
  while (next !== undefined) {
    const page = (await client.readResource({ uri: next })) as Json
    text += page["contents"][0].text
    next = page["_meta"]?.next
  }
  return text
}

layer(HttpWorld.layer, { excludeTestServices: true, timeout: 240_000 })("a paid answer", (it) => {
  it.effect("the identical call gets it again free until it is acknowledged [S212]", () =>
    Effect.gen(function* () {
      const { agent, facilitator, ref, seller, toolsUrl } = yield* PayWorld
      const { ref: page } = yield* HttpWorld
      seller.behaviour = {}
      const url = yield* toolsUrl(["budget.replay_seconds=0", enabled])
      const key = agentKey.split(":")[1]
      const before = yield* facilitator.balance(agent.publicKey())
      const own = args()
      const first = yield* connectHttp(url, key)
      const bought = yield* pay(first, ref, own)
      const again = yield* pay(yield* connectHttp(url, key), ref, own)
      expect(again.body).toEqual(bought.body)
      // A repetition acknowledges nothing, even after the window.
      expect((yield* pay(first, ref, own)).body["receipt"]).toEqual(bought.body["receipt"])
      yield* call(first, "x402_search_resources", {})
      expect((yield* pay(first, ref, own)).body["receipt"].paymentIdentifier).not.toBe(
        bought.body["receipt"].paymentIdentifier
      )
      const asked = { ref: page, query: query() }
      const fetched = yield* call(first, "x402_fetch_resource", asked)
      expect((yield* call(first, "x402_fetch_resource", asked)).body["receipt"]).toEqual(fetched.body["receipt"])
      expect(before - (yield* facilitator.balance(agent.publicKey()))).toBe(2n * amount + 3_000n)
    }).pipe(Effect.scoped)
  )

  it.effect("an acknowledged answer is given again within the replay window; another key buys [S212]", () =>
    Effect.gen(function* () {
      const { paying, ref } = yield* PayWorld
      const client = yield* paying()
      const own = args()
      const first = yield* pay(client, ref, own)
      yield* call(client, "x402_search_resources", {})
      yield* call(client, "x402_search_resources", {})
      expect((yield* pay(client, ref, own)).body["receipt"]).toEqual(first.body["receipt"])
      const named = (key: string) =>
        Effect.promise(() =>
          client.callTool({
            name: "x402_call_resource",
            arguments: { ref, arguments: own },
            _meta: { "x402/idempotency-key": key }
          })
        )
      const [one, same, other] = [yield* named("one"), yield* named("one"), yield* named("two")].map(
        (result) => (result as Json)["structuredContent"].receipt.paymentIdentifier
      )
      expect(same).toBe(one)
      expect(new Set([one, other, first.body["receipt"].paymentIdentifier]).size).toBe(3)
    }).pipe(Effect.scoped)
  )

  it.effect(
    "hosts that die at any byte of an answer over stdio pay once [S212]",
    () =>
      Effect.gen(function* () {
        const { agent, facilitator, ref, seller } = yield* PayWorld
        const state = mkdtempSync(join(tmpdir(), "tollkeeper-host-"))
        const command = yield* stdioCommand(state, ["answers.stdio_bytes_max=2097152"])
        const text = longText(300_000)
        seller.behaviour = { paid: (result) => ({ ...result, content: [{ type: "text", text }] }) }
        const before = yield* facilitator.balance(agent.publicKey())
        const own = args()
        for (const bytes of [1, 70_000, 299_000]) yield* Effect.promise(() => dyingHost(command, ref, own, bytes))
        const client = yield* connectStdio(command)
        const { body } = yield* pay(client, ref, own)
        expect([body["content"], body["receipt"]?.status]).toEqual([[{ type: "text", text }], "settled"])
        expect(before - (yield* facilitator.balance(agent.publicKey()))).toBe(amount)
      }).pipe(Effect.scoped),
    240_000
  )

  it.effect(
    "an answer above a client's limit comes in pages over stdio [S214]",
    () =>
      Effect.gen(function* () {
        const { agent, facilitator, ref, seller } = yield* PayWorld
        const state = mkdtempSync(join(tmpdir(), "tollkeeper-long-"))
        const command = yield* stdioCommand(state, ["network_security.max_response_bytes=33554432"])
        const client = yield* connectStdio(command)
        const modern = yield* Effect.acquireRelease(
          Effect.promise(async () => {
            const made = new ModernClient({ name: "host", version: "1.0.0" })
            await made.connect(new ModernStdio({ ...command, stderr: "ignore" }))
            return made
          }),
          (made) => Effect.promise(() => made.close())
        )
        const before = yield* facilitator.balance(agent.publicKey())
        for (const [length, isPaged] of [
          [5_300_000, false],
          [9_000_000, true]
        ] as const) {
          const text = longText(length)
          seller.behaviour = { paid: (result) => ({ ...result, content: [{ type: "text", text }] }) }
          const own = args()
          for (const one of [client, modern]) {
            const request = { name: "x402_call_resource", arguments: { ref, arguments: own } }
            const raw = yield* Effect.promise(() => one.callTool(request) as Promise<Json>)
            const { answer, content, receipt } = raw["structuredContent"]
            expect([length, receipt.status, answer !== undefined]).toEqual([length, "settled", isPaged])
            if (!isPaged) expect(content[0].text === text).toBe(true)
            else {
              expect(raw["content"][1]).toMatchObject({ type: "resource_link", uri: answer.uri })
              const whole = JSON.parse(yield* Effect.promise(() => readPages(one, answer.uri))) as Json
              expect(whole["content"][0].text === text).toBe(true)
              expect(whole["receipt"]).toEqual(receipt)
            }
          }
        }
        seller.behaviour = {}
        expect(before - (yield* facilitator.balance(agent.publicKey()))).toBe(2n * amount)
      }).pipe(Effect.scoped),
    240_000
  )
})
