// The red team's table, and its result for a facilitator that accepts everything.
import { createServer, type RequestListener } from "node:http"
import { type AddressInfo, createServer as createSocketServer, type Socket } from "node:net"
import { expect, it } from "vitest"
import { attacks } from "../../runtime/redteam/attacks.ts"
import { pageOf, totalOf } from "../../runtime/redteam/card.ts"
import { cases, playCases } from "../../runtime/redteam/run.ts"

it("numbers every attack once, with cases or a reason", () => {
  expect(attacks.map(({ number }) => number)).toEqual(Array.from({ length: 133 }, (_, index) => index + 1))
  const played = new Set(cases.map(({ attack }) => attack))
  expect(attacks.filter(({ number, skipped }) => played.has(number) === (skipped !== undefined))).toEqual([])
})

it("names each case of a kind once", () => {
  const names = cases.map(({ attack, name, on }) => `${on} ${attack} ${name}`)
  expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([])
})

it("fails a facilitator that accepts everything", async () => {
  const kinds = [{ x402Version: 2, scheme: "exact", network: "stellar:testnet" }]
  const answers: Readonly<Record<string, object>> = { "/supported": { kinds } }
  const accepting = { isValid: true, success: true, transaction: "\u001B[31m<script>", network: "" }
  const server = createServer((request, response) => {
    request.resume().on("end", () => response.end(JSON.stringify(answers[request.url ?? ""] ?? accepting)))
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const card = await playCases(
    { url, kind: "facilitator" },
    { accepts: ({ attack, pays }) => attack === 42 || pays === true }
  ).finally(() => {
    server.closeAllConnections()
    server.close()
  })
  expect(card.held).toBe(0)
  expect(card.failed).toBeGreaterThan(20)
  expect(card.skipped).toBeGreaterThan(90)
  expect(totalOf(card)).toContain("0 held")
  expect(pageOf([card])).not.toContain("<script")
  expect(pageOf([card])).not.toContain("\u001B")
  expect(pageOf([card])).toContain("needs --ledger")
})

const listening = async (answer: RequestListener, play: (url: string) => Promise<void>) => {
  const server = createServer(answer)
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  await play(`http://127.0.0.1:${(server.address() as AddressInfo).port}`).finally(() => {
    server.closeAllConnections()
    server.close()
  })
}

it("reads no answer without end, and follows no redirect", async () => {
  const visited: Array<string> = []
  const answer: RequestListener = (request, response) => {
    visited.push(request.url ?? "")
    if (request.url === "/moved/supported") return response.writeHead(307, { location: "/inside" }).end()
    const write = () => {
      while (!response.destroyed && response.write(Buffer.alloc(1_048_576, 0x20)));
    }
    response.on("drain", write)
    write()
  }
  await listening(answer, async (url) => {
    await expect(playCases({ url, kind: "facilitator" })).rejects.toThrow("an answer of more than 8388608 bytes")
    await expect(playCases({ url: `${url}/moved`, kind: "facilitator" })).rejects.toThrow("supported answered 307")
  })
  expect(visited).toEqual(["/supported", "/moved/supported"])
})

it("reads a raw answer beyond its head", async () => {
  const kinds = [{ x402Version: 2, scheme: "exact", network: "stellar:testnet" }]
  const answer: RequestListener = (request, response) => {
    response.writeHead(200, { "content-type": "application/json" })
    if (request.url === "/supported") return response.end(JSON.stringify({ kinds }))
    response.flushHeaders()
    setTimeout(() => response.end('{"success":true}'), 20)
  }
  await listening(answer, async (url) => {
    const accepts = ({ name }: { readonly name: string }) => name === "GET on /settle"
    expect((await playCases({ url, kind: "facilitator" }, { accepts })).failed).toBe(1)
  })
})

it("reads no head of a raw answer without end", async () => {
  const kinds = [{ x402Version: 2, scheme: "exact", network: "stellar:testnet" }]
  const pour = (socket: Socket) => {
    const write = () => {
      while (!socket.destroyed && socket.write(Buffer.alloc(65_536, 0x78))) /* until it is slower */ ;
    }
    socket.on("drain", write).on("error", () => {})
    write()
  }
  const server = createSocketServer((socket) =>
    socket
      .on("error", () => {})
      .once("data", (bytes) => {
        const body = JSON.stringify({ kinds })
        if (!String(bytes).startsWith("GET /supported")) return pour(socket)
        socket.end(`HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: ${body.length}\r\n\r\n${body}`)
      })
  )
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const { scores } = await playCases(
    { url, kind: "facilitator" },
    { accepts: ({ name }) => name === "TRACE on /settle" }
  )
  // Else it would have read until its time had ended.
  expect(scores.map(({ detail, result }) => [result, detail.includes("no answer within")])).toEqual([["held", false]])
  server.close()
})
