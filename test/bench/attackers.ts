// Fifty attackers of seven kinds against a port, each from its own address of this machine: pipelining, slow reading,
// names without a DNS answer, searches, wrong keys, sessions, dripped bodies. Each repeats as soon as it can. A worker
// runs them, so that honest requests are measured in another event loop, until it is terminated. Another worker is a
// bare server, which refuses everything: attacking it shows the attackers' own share of the machine.
import { createServer } from "node:http"
import { type AddressInfo, connect, type Socket } from "node:net"
import { isMainThread, parentPort, workerData } from "node:worker_threads"
import { Client, fetch, type RequestInit } from "undici"

interface Attack {
  readonly port: number
  /** A listed key, which an attacker uses for the names. */
  readonly key: string
  readonly signal: AbortSignal
}

const attackersMax = 50
const pipelined = 900
const unsentMax = 1_048_576

const wait = (millis: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, millis)
    signal.addEventListener("abort", () => (clearTimeout(timer), resolve()), { once: true })
  })

/** The address of an untrusted proxy: each attacker comes from outside this machine. */
const via = "203.0.113.1"
const headOf = (line: string, rest = ""): string =>
  `${line} HTTP/1.1\r\nhost: facilitator.example\r\nx-forwarded-for: ${via}\r\n${rest}\r\n`

/** Opens a socket, uses it until it is closed, and opens the next one. */
const overSockets =
  (use: (socket: Socket, signal: AbortSignal) => Promise<void>) =>
  async ({ port, signal }: Attack, address: string): Promise<void> => {
    while (!signal.aborted) {
      const socket = connect({ port, host: "127.0.0.1", localAddress: address }).on("error", () => undefined)
      await use(socket, signal)
      socket.destroy()
      await wait(20, signal)
    }
  }

const overRequests =
  (made: (count: number, attack: Attack) => { readonly path: string; readonly init?: RequestInit }) =>
  async (attack: Attack, address: string): Promise<void> => {
    const dispatcher = new Client(`http://127.0.0.1:${attack.port}`, { localAddress: address })
    for (let count = 0; !attack.signal.aborted; count++) {
      const { init = {}, path } = made(count, attack)
      const headers = { ...init.headers, "x-forwarded-for": via }
      const url = `http://127.0.0.1:${attack.port}${path}`
      const sent = fetch(url, { ...init, headers, signal: attack.signal, dispatcher })
      await sent.then((response) => response.arrayBuffer()).catch(() => wait(20, attack.signal))
    }
  }

const post = (path: string, body: unknown, headers: Record<string, string> = {}) => ({
  path,
  init: { method: "POST", headers: { "content-type": "application/json", ...headers }, body: JSON.stringify(body) }
})

const kinds = {
  pipelining: overSockets(async (socket, signal) => {
    socket.on("data", () => undefined)
    while (!socket.destroyed && !signal.aborted) {
      if (socket.writableLength < unsentMax) socket.write(headOf("GET /openapi.json").repeat(pipelined))
      await wait(100, signal)
    }
  }),
  "slow reading": overSockets(async (socket, signal) => {
    socket.pause()
    socket.write(headOf("GET /openapi.json").repeat(50))
    for (let times = 0; times < 100 && !socket.destroyed && !signal.aborted; times++) await wait(100, signal)
  }),
  "silent names": overRequests((count, { key }) =>
    post(`/catalog/v1/look?origin=https://n${count}.silent.example`, {}, { authorization: `Bearer ${key}` })
  ),
  searches: overRequests((count) => ({
    path: `/discovery/search?limit=200&query=weather%20${count}%20maps%20of%20a%20city`
  })),
  "wrong keys": overRequests((count) =>
    post("/verify", {}, { authorization: `Bearer a-wrong-key-0123456789-${count}` })
  ),
  sessions: overRequests(() =>
    post(
      "/dashboard/account/challenge",
      { account: "GA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJVSGZ" },
      { "x-tollkeeper-page": "1" }
    )
  ),
  "dripped bodies": overSockets(async (socket, signal) => {
    socket.write(headOf("POST /verify", "content-type: application/json\r\ncontent-length: 100000\r\n"))
    while (!socket.destroyed && !signal.aborted) {
      socket.write(" ")
      await wait(100, signal)
    }
  })
}

if (!isMainThread) {
  const { key, port } = workerData as Partial<Pick<Attack, "key" | "port">>
  if (key !== undefined && port !== undefined) {
    const all = Object.values(kinds)
    for (let at = 0; at < attackersMax; at++)
      void all[at % all.length]!({ port, key, signal: new AbortController().signal }, `127.0.1.${at + 1}`)
  } else {
    // Without a port: the bare server.
    const server = createServer((request, response) => {
      request.resume()
      response.writeHead(404).end()
    })
    server.listen(0, "127.0.0.1", () => parentPort!.postMessage((server.address() as AddressInfo).port))
  }
}
