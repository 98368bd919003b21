// A connection between a seller and its facilitator that fails on demand: it answers in the facilitator's place, with
// or without forwarding the call first, or cuts the connection. It records the Idempotency-Key of each payment's
// settles.
import { createServer, type Server } from "node:http"
import { freePort } from "./freePort.ts"

export interface WayAnswer {
  readonly status: number
  readonly text: string
  readonly headers?: Readonly<Record<string, string>>
}

/** Instructions for one call. */
export type Order = (forward: () => Promise<WayAnswer>) => Promise<WayAnswer | "cut">

const pass: Order = (forward) => forward()

export interface Way {
  readonly url: string
  /** Keys of the received settles, by the payment's transaction. */
  readonly keys: Map<string, Array<string | undefined>>
  readonly order: (route: "verify" | "settle", order?: Order) => void
  readonly close: () => Promise<void>
}

export const startWay = async (target: string): Promise<Way> => {
  const port = await freePort()
  const keys: Way["keys"] = new Map()
  const orders = new Map<string, Order>()
  const forwarding = (url: string, text: string, headers: Readonly<Record<string, any>>) => async () => {
    const key = headers["idempotency-key"]
    const response = await fetch(`${target}${url}`, {
      method: text === "" ? "GET" : "POST",
      headers: {
        "content-type": "application/json",
        ...(key === undefined ? {} : { "idempotency-key": key }),
        ...(headers["authorization"] === undefined ? {} : { authorization: headers["authorization"] })
      },
      ...(text === "" ? {} : { body: text })
    })
    return { status: response.status, text: await response.text() }
  }
  const server: Server = createServer((request, response) => {
    let text = ""
    request.on("data", (chunk) => (text += chunk))
    request.on("end", async () => {
      const { headers, socket, url = "" } = request
      if (url === "/settle") {
        const { transaction } = JSON.parse(text).paymentPayload.payload
        keys.set(transaction, [...(keys.get(transaction) ?? []), headers["idempotency-key"] as string | undefined])
      }
      const order = orders.get(url.slice(1)) ?? pass
      const answer = await order(forwarding(url, text, headers)).catch((): "cut" => "cut")
      if (answer === "cut") return void socket.destroy()
      response
        .writeHead(answer.status, { "content-type": "application/json", connection: "close", ...answer.headers })
        .end(answer.text)
    })
  })
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve))
  return {
    url: `http://127.0.0.1:${port}`,
    keys,
    order: (route, order = pass) => void orders.set(route, order),
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections()
        server.close(() => resolve())
      })
  }
}

/** Answers a call in the facilitator's place; forwards it first if `arrives`. */
export const answering =
  (status: number, text: string, arrives = false, headers: Readonly<Record<string, string>> = {}): Order =>
  async (forward) => {
    if (arrives) await forward()
    return { status, text, headers }
  }

/** Cuts a connection; forwards the call first if `arrives`. */
export const cutting =
  (arrives: boolean): Order =>
  async (forward) => {
    if (arrives) await forward()
    return "cut"
  }
