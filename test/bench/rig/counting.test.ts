// The benches' proxies count their traffic: each call of a batch, and each statement however its bytes are split.
import { createServer } from "node:http"
import { describe, expect, it } from "vitest"
import { countRpc, statementReader } from "./counting.ts"

const message = (kind: string, body: string): Buffer => {
  const head = Buffer.alloc(5)
  head.write(kind, "latin1")
  head.writeInt32BE(body.length + 4, 1)
  return Buffer.concat([head, Buffer.from(body)])
}

const untyped = (code: number, body: string): Buffer => {
  const head = Buffer.alloc(8)
  head.writeInt32BE(body.length + 8, 0)
  head.writeInt32BE(code, 4)
  return Buffer.concat([head, Buffer.from(body)])
}

const tlsRequest = untyped(80_877_103, "")
const startUp = untyped(196_608, "user\0bench\0\0")
const prepared = ["P", "B", "D", "E", "S"].map((kind) => message(kind, "select 1\0")).map((one) => Buffer.from(one))

describe("the statements of a PostgreSQL client", () => {
  const wire = Buffer.concat([tlsRequest, startUp, ...prepared, message("Q", "commit\0"), ...prepared])

  it("are its executions and simple queries, however its bytes are split", () => {
    for (const size of [1, 3, 7, wire.length]) {
      const seen: Array<string> = []
      const read = statementReader((what) => seen.push(what))
      for (let at = 0; at < wire.length; at += size) read(wire.subarray(at, at + size))
      expect(seen).toEqual(["statement", "round trip", "statement", "statement", "round trip"])
    }
  })

  it("are not sought in what it sends before it has begun", () => {
    const seen: Array<string> = []
    statementReader((what) => seen.push(what))(Buffer.concat([tlsRequest, untyped(196_608, "QQQQEEEE")]))
    expect(seen).toEqual([])
  })
})

describe("calls of RPC through the counting proxy", () => {
  it("reach the ledger, and each call of a batch counts by method", async () => {
    const bodies: Array<string> = []
    const ledger = createServer((request, response) => {
      let text = ""
      request.on("data", (chunk) => (text += chunk)).on("end", () => response.end((bodies.push(text), "answered")))
    })
    await new Promise<void>((resolve) => ledger.listen(0, "127.0.0.1", () => resolve()))
    const { port } = ledger.address() as { port: number }
    const counter = await countRpc(`http://127.0.0.1:${port}`)
    const ask = async (body: string) => (await fetch(counter.url, { method: "POST", body })).text()
    const call = (method: string) => `{"jsonrpc":"2.0","id":1,"method":"${method}","params":{}}`
    expect(await ask(call("getHealth"))).toBe("answered")
    expect(await ask(`[${call("getTransaction")},${call("getTransaction")}]`)).toBe("answered")
    expect(counter.counts()).toEqual(
      new Map([
        ["getHealth", 1],
        ["getTransaction", 2]
      ])
    )
    expect(bodies).toHaveLength(2)
    await counter.stop()
    await new Promise((resolve) => ledger.close(resolve))
  })
})
