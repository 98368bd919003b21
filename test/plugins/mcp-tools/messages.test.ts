import { describe, expect, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { Batches } from "../../../plugins/mcp-tools/server/Batches.ts"
import { isNotification, readMessages, refusedLine } from "../../../plugins/mcp-tools/server/messages.ts"
import { SseTransport } from "../../../plugins/mcp-tools/server/SseTransport.ts"
import { StdioTransport } from "../../../plugins/mcp-tools/server/StdioTransport.ts"
import { linesOf } from "../../../runtime/platform/nodeStdio.ts"

const long = "x".repeat(5_000)

describe("an id", () => {
  const request = (id: unknown, token?: unknown) => ({
    jsonrpc: "2.0",
    id,
    method: "tools/call",
    params: { name: "x", ...(token === undefined ? {} : { _meta: { progressToken: token } }) }
  })
  it("an id or progress token that is too long is refused without being repeated", () => {
    expect(readMessages(request("x".repeat(256), "y".repeat(256)), undefined)._tag).toBe("One")
    for (const message of [request("x".repeat(257)), request("z", "y".repeat(257))]) {
      const read = readMessages(message, undefined)
      expect(read._tag).toBe("Refused")
      expect(JSON.stringify(read).length).toBeLessThan(300)
    }
  })
})

describe("SseTransport", () => {
  it.effect("a stream that is not read ends before a mebibyte waits", () =>
    Effect.gen(function* () {
      const transport = yield* SseTransport.make("a")
      let ended = false
      transport.onclose = () => void (ended = true)
      const sent = { jsonrpc: "2.0", id: 1, result: { text: "x".repeat(100_000) } } as const
      let count = 0
      while (!ended && count < 100) {
        yield* Effect.promise(() => transport.send(sent))
        count += 1
      }
      expect([ended, count <= 11]).toEqual([true, true])
    })
  )
})

describe("an overlong line", () => {
  const read = (text: string) =>
    Effect.map(
      Stream.runCollect(
        Stream.fromAsyncIterable(
          linesOf(
            (async function* () {
              for (let at = 0; at < text.length; at += 700) yield text.slice(at, at + 700)
            })(),
            2_000
          ),
          (error) => error
        )
      ),
      (lines) => [...lines]
    )

  it.effect("an overlong line is refused under its id before reading the next", () =>
    Effect.gen(function* () {
      const params = { arguments: { text: `${long} "id":99}` } }
      for (const [message, id] of [
        [{ jsonrpc: "2.0", id: 7, method: "tools/call", params }, 7],
        [{ method: "tools/call", params, jsonrpc: "2.0", id: 8 }, 8],
        [{ method: "tools/call", params, id: "nine", jsonrpc: "2.0" }, "nine"],
        [{ jsonrpc: "2.0", method: "notifications/x", params }, null]
      ] as const) {
        const [first, second] = yield* read(`${JSON.stringify(message)}\r\n{"short":1}\n`)
        expect(typeof first).toBe("object")
        expect(refusedLine(first as Exclude<typeof first, string | undefined>)).toMatchObject({ code: -32600, id })
        expect(second).toBe('{"short":1}')
      }
    })
  )
})

it("a notification has a method and no id, and nothing answers it, also when it is refused", () => {
  const silent = [{ method: "notifications/x" }, { method: "x", params: 5 }]
  const answered = [{ method: "x", id: null }, { method: 5 }, { id: 1 }, {}]
  expect(silent.map((message) => isNotification({ jsonrpc: "2.0", ...message }))).toEqual([true, true])
  expect(answered.map((message) => isNotification({ jsonrpc: "2.0", ...message }))).toEqual(answered.map(() => false))
  for (const other of [null, "x", [], { method: "x" }]) expect(isNotification(other)).toBe(false)
})

const call = (id: number) => ({ jsonrpc: "2.0" as const, id, method: "tools/call", params: { name: "x" } })
const result = (id: number) => ({ jsonrpc: "2.0" as const, id, result: {} })

describe("the responses of a batch", () => {
  it("responses of a batch form one array without the cancelled ones", () => {
    const batches = new Batches()
    batches.begin([call(1), call(2), call(3)])
    expect(batches.answer(result(9))).toEqual(result(9))
    expect(batches.answer(result(3))).toBeUndefined()
    expect(batches.cancel(1)).toBeUndefined()
    expect(batches.answer(result(2))).toEqual([result(3), result(2)])
    batches.begin([call(4)])
    expect(batches.cancel(4)).toBeUndefined()
  })

  it.effect("batch responses use arrays over stdio only in revisions with batches", () =>
    Effect.gen(function* () {
      const written: Array<unknown> = []
      const transport = new StdioTransport(async (line) => void written.push(JSON.parse(line)))
      expect(readMessages([call(1)], transport.revision)).toMatchObject({ _tag: "Refused", code: -32600 })
      transport.receive([{ jsonrpc: "2.0", id: 0, method: "initialize", params: {} }], false)
      yield* Effect.promise(() => transport.send({ jsonrpc: "2.0", id: 0, result: { protocolVersion: "2025-03-26" } }))
      expect(readMessages([call(1)], transport.revision)._tag).toBe("Batch")
      transport.receive([call(1), call(2)], true)
      yield* Effect.promise(() => transport.send(result(2)))
      yield* Effect.promise(() => transport.send(result(1)))
      expect(written.slice(1)).toEqual([[result(2), result(1)]])
    })
  )
})
