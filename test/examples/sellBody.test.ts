// The body of a paid request behind parsers that read it first: the sale gets the parsed body, and a body that no
// parser kept is an error before any payment.
import { createRequire } from "node:module"
import { createServer, type IncomingMessage, request, type RequestListener } from "node:http"
import { join } from "node:path"
import { expect, it } from "vitest"
import { toFastify, toNode, makeSell } from "../../examples/seller/sellRequest.mjs"
import { memoryStore, soldOnce } from "../../examples/seller/soldOnce.mjs"
import { root } from "../../runtime/bootstrap.mjs"

const express = createRequire(join(root, "package.json"))("express")

const serve = async (listener: RequestListener) => {
  const server = createServer(listener)
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const url = `http://127.0.0.1:${(server.address() as { port: number }).port}/report`
  return { url, close: () => server.close() }
}

/** The status and body of a POST, of JSON if not of another body. */
const post = async (
  listener: RequestListener,
  headers: Record<string, string> = {},
  method = "POST",
  body = '{ "company": "Acme" }'
) => {
  const { close, url } = await serve(listener)
  const response = await fetch(url, {
    method,
    headers: { "content-type": "application/json", connection: "close", ...headers },
    ...(method === "GET" ? {} : { body })
  })
  const text = await response.text()
  close()
  return [response.status, text]
}

const echo = async (request: Request) => new Response(await request.text())
const failed = (_error: unknown, _request: unknown, response: any, _next: unknown) => response.status(500).end("unread")
const consumed = async (request: IncomingMessage) => {
  for await (const chunk of request) void chunk
}

it("reaches the seller as it was sent, and as a parser kept it", async () => {
  expect(await post(toNode(echo))).toEqual([200, '{ "company": "Acme" }'])
  expect(await post(express().post("/report", express.json(), toNode(echo)))).toEqual([200, '{"company":"Acme"}'])
  // Express's parser leaves another type unread.
  expect(await post(express().post("/report", express.json(), toNode(echo)), { "content-type": "text/plain" })).toEqual(
    [200, '{ "company": "Acme" }']
  )
  // Fastify parses before the handler and keeps the raw request.
  const fastify: RequestListener = async (raw, reply) => {
    await consumed(raw)
    await toFastify(echo)({ raw, body: { company: "Acme" } }, { raw: reply, hijack: () => {} })
  }
  expect(await post(fastify)).toEqual([200, '{"company":"Acme"}'])
  expect(await post(toNode(echo), {}, "GET")).toEqual([200, ""])
})

it("is the form that was sent where a parser kept its fields", async () => {
  const fields = async (request: Request) => Response.json([...(await request.formData())])
  const form = { "content-type": "application/x-www-form-urlencoded" }
  const app = (extended: boolean) =>
    express().post("/report", express.urlencoded({ extended }), toNode(fields)).use(failed)
  const sent = "city=Riga+%26+more&day=1&day=2"
  expect(await post(app(false), form, "POST", sent)).toEqual([200, '[["city","Riga & more"],["day","1"],["day","2"]]'])
  // Fields below fields cannot be a form, so they are JSON, and another form in the body is ignored.
  const nested = express().post("/report", express.urlencoded({ extended: true }), toNode(echo))
  expect(await post(nested, form, "POST", "a[b]=1")).toEqual([200, '{"a":{"b":"1"}}'])
  expect((await post(app(true), form, "POST", "a[b]=1"))[0]).toBe(500)
})

it("is refused above its limit, before it is read whole", async () => {
  const { close, url } = await serve(toNode(echo))
  const body = new Uint8Array(9 * 2 ** 20)
  const status = await fetch(url, { method: "POST", body, headers: { connection: "close" } }).then(
    (answer) => answer.status,
    // The connection may end while the client still sends.
    () => 413
  )
  close()
  expect(status).toBe(413)
})

it("is an error before the payment where no parser kept it", async () => {
  let sold = 0
  const sell = async () => {
    sold += 1
    return new Response("")
  }
  const lost: RequestListener = async (raw, reply) => {
    await consumed(raw)
    await toNode(sell)(raw, reply)
  }
  expect((await post(lost))[0]).toBe(500)
  expect(sold).toBe(0)
})

it("is an error before the payment where the request was read", async () => {
  const terms = { payTo: "G", asset: "C", amount: "1", facilitator: "http://127.0.0.1:9" }
  const sell = makeSell({ ...terms, log: () => {} })
  const header = Buffer.from('{"payload":{}}').toString("base64")
  const request = new Request("http://seller/", {
    method: "POST",
    body: "{}",
    headers: { "payment-signature": header }
  })
  await request.text()
  await expect(sell(request, () => ({}))).rejects.toThrow("read before the sale")
})

it("is part of the sale behind the official middleware, or refused", async () => {
  const { middleware } = soldOnce({ store: memoryStore() })
  const paid = middleware((_request, response) => response.status(402).end())
  const headers = { "payment-signature": Buffer.from('{"payload":{}}').toString("base64") }
  expect(await post(express().use(paid).use(failed), headers)).toEqual([500, "unread"])
  expect((await post(express().use(express.json()).use(paid).use(failed), headers))[0]).toBe(402)
  // As Express 4's parser leaves another type: unread, with an empty object.
  const leaving = (request: any, _response: unknown, next: () => void) => {
    request.body = {}
    next()
  }
  const other = { ...headers, "content-type": "text/plain" }
  expect(await post(express().use(leaving).use(paid).use(failed), other)).toEqual([500, "unread"])
  expect((await post(express().use(express.json()).use(paid).use(failed), headers, "POST", "{}"))[0]).toBe(402)
})

it("is refused in thousands of small parts", async () => {
  const { close, url } = await serve(toNode(echo))
  const statusOf = (parts: number) =>
    new Promise<number | undefined>((resolve) => {
      const sent = request(url, { method: "POST" }, (answer) => resolve(answer.statusCode))
      // The connection may end while the client still sends.
      sent.on("error", () => resolve(413))
      for (let at = 0; at < parts; at++) sent.write("x")
      sent.end()
    })
  expect([await statusOf(1_000), await statusOf(3_000)]).toEqual([200, 413])
  close()
})
