// The clients of the payments bench, a separate process: it signs as a buyer does and sends as a seller does, raw
// HTTP/1.1 over keep-alive connections. A latency is counted from the moment when a payment was due, so that a server
// that delays an open loop also pays for the payments behind. Orders come over the channel of `fork`, one at a time.
import { Keypair } from "@stellar/stellar-sdk"
import { randomBytes } from "node:crypto"
import { connect, type Socket } from "node:net"
import process from "node:process"
import { queryDeclaration } from "../../plugins/catalog/support.ts"
import { makePayment } from "../../../runtime/redteam/buyer.ts"
import { rpcCall } from "../../../runtime/redteam/rpcCall.ts"
import type { Order, PaymentKind, Reply, SendFigures, SendOrder, SignOrder } from "./orders.ts"

/** Lifetime of a payment in ledgers: three hundred seconds with five per ledger, as the official client assumes. */
const maxTimeoutSeconds = 300
/** Payments signed concurrently; each asks the ledger for a simulation. */
const signerConcurrency = 4
const openLoopSocketsMax = 512
const headEnd = Buffer.from("\r\n\r\n")
const lastChunk = "0\r\n\r\n"

const pools = new Map<string, ReadonlyArray<Buffer>>()

/** Metadata as a seller's official package declares it, under a key of the same length; twenty pages of one seller. */
const metadata = (at: number, key: "bazaar" | "unread") => ({
  resourceUrl: `https://bench.example.com/page-${at % 20}`,
  extensions: { [key]: queryDeclaration() }
})

/** Cut off in the middle, or whole without the signed part: the two kinds of malformed bodies. */
const malformedBody = (body: any, at: number): string => {
  if (at % 2 === 0) {
    const text = JSON.stringify(body)
    return text.slice(0, text.length - 40)
  }
  return JSON.stringify({ ...body, paymentPayload: { ...body.paymentPayload, payload: {} } })
}

const keyOf = { metadata: "bazaar", unread: "unread" } as const

const flipped = (signature: Uint8Array): Uint8Array => signature.map((byte, at) => (at === 7 ? byte ^ 1 : byte))

const sign = async ({ count, kind, ledgerUrl, payTo, payers, pool }: SignOrder): Promise<number> => {
  const rpc = rpcCall(ledgerUrl)
  const accounts = payers.map((secret) => Keypair.fromSecret(secret))
  const latestLedger = (await rpc("getLatestLedger")).sequence as number
  const one = async (at: number): Promise<Buffer> => {
    const { body } = await makePayment({
      ...(isHonest(kind) ? { rpc } : {}),
      latestLedger,
      network: "stellar:testnet",
      payer: accounts[at % accounts.length]!,
      payTo,
      amount: 1n,
      maxTimeoutSeconds,
      ...(kind === "metadata" || kind === "unread" ? metadata(at, keyOf[kind]) : {}),
      ...(kind === "badly signed" ? { tamper: { signature: flipped } } : {})
    })
    return Buffer.from(kind === "malformed" ? malformedBody(body, at) : JSON.stringify(body))
  }
  const bodies: Array<Buffer> = Array.from({ length: count })
  let next = 0
  await Promise.all(
    Array.from({ length: signerConcurrency }, async () => {
      for (let at = next++; at < count; at = next++) bodies[at] = await one(at)
    })
  )
  pools.set(pool, bodies)
  return count
}

const isHonest = (kind: PaymentKind): boolean => kind !== "malformed" && kind !== "badly signed"

interface Answer {
  readonly status: number
  readonly body: string
}

/** Reads one answer, with a declared length or in chunks. */
const answerReader = () => {
  let got: Buffer = Buffer.alloc(0)
  return (chunk: Buffer): Answer | undefined => {
    got = got.length === 0 ? chunk : Buffer.concat([got, chunk])
    const end = got.indexOf(headEnd)
    if (end < 0) return undefined
    const head = got.toString("latin1", 0, end)
    const from = end + headEnd.length
    const status = Number(head.slice(9, 12))
    const length = /^content-length: *(\d+)/im.exec(head)?.[1]
    if (length !== undefined)
      return got.length < from + Number(length) ? undefined : { status, body: got.toString("utf8", from) }
    const rest = got.toString("utf8", from)
    if (!rest.endsWith(lastChunk)) return undefined
    return { status, body: rest.replace(/(^|\r\n)[0-9a-f]+\r\n/gi, "") }
  }
}

const opened = (port: number): Promise<Socket> =>
  new Promise((resolve, reject) => {
    const socket: Socket = connect({ port, host: "127.0.0.1", noDelay: true }, () => resolve(socket))
    socket.once("error", reject)
  })

const ask = (socket: Socket, request: Buffer): Promise<Answer> =>
  new Promise((resolve, reject) => {
    const read = answerReader()
    const finish = (settle: () => void) => {
      socket.off("data", take).off("close", closed)
      settle()
    }
    const closed = () => finish(() => reject(new Error("the connection ended before the answer")))
    const take = (chunk: Buffer) => {
      const answer = read(chunk)
      if (answer !== undefined) finish(() => resolve(answer))
    }
    // A socket that has already ended does not emit the event again.
    if (socket.destroyed) return closed()
    socket.on("data", take).on("close", closed)
    socket.write(request)
  })

const traceparent = () => `traceparent: 00-${randomBytes(16).toString("hex")}-${randomBytes(8).toString("hex")}-01\r\n`

const requestOf = ({ isTraced, key, path }: SendOrder, body: Buffer): Buffer => {
  const authorization = key === undefined ? "" : `authorization: Bearer ${key}\r\n`
  const trace = isTraced === true ? traceparent() : ""
  const head =
    `POST ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n${authorization}${trace}` +
    `content-length: ${body.length}\r\n\r\n`
  return Buffer.concat([Buffer.from(head), body])
}

/** The counted outcome of an answer: its status, and its reason if it is a refusal. */
const outcomeOf = ({ body, status }: Answer): { readonly outcome: string; readonly hash?: string } => {
  let json: any
  try {
    json = JSON.parse(body)
  } catch {
    return { outcome: `${status} unreadable` }
  }
  if (json.success === true) return { outcome: `${status} settled`, hash: String(json.transaction) }
  if (json.isValid === true) return { outcome: `${status} valid` }
  return { outcome: `${status} ${json.invalidReason ?? json.errorReason ?? json.error ?? "without a word"}` }
}

/** The port of a connection by its number. */
type PortAt = (connection: number) => number

/** Maximum idle time of a reusable connection: a server may be about to close an older one. */
const restMillisMax = 2_000

interface Rested {
  readonly socket: Socket
  readonly since: number
}

/** Connections waiting for the next round, by their port, since a seller keeps its connections. */
const rested = new Map<number, Array<Rested>>()

/** Takes the last usable connection and drops the rest. */
const stillOpen = (waiting: Array<Rested>): Rested | undefined => {
  for (let one = waiting.pop(); one !== undefined; one = waiting.pop()) {
    if (!one.socket.destroyed && performance.now() - one.since < restMillisMax) return one
    one.socket.destroy()
  }
  return undefined
}

const connectionTo = (port: number): Socket | Promise<Socket> =>
  stillOpen(rested.get(port) ?? [])?.socket ?? opened(port)

const rest = (port: number, socket: Socket): void => {
  const waiting = rested.get(port) ?? []
  rested.set(port, waiting)
  waiting.push({ socket, since: performance.now() })
}

/** Collects times and outcomes during a round. */
class Tally {
  readonly times: Array<number> = []
  readonly settled: Array<string> = []
  readonly outcomes: Record<string, number> = {}

  count(answer: Answer, due: number): void {
    this.times.push(performance.now() - due)
    const { hash, outcome } = outcomeOf(answer)
    this.outcomes[outcome] = (this.outcomes[outcome] ?? 0) + 1
    if (hash !== undefined) this.settled.push(hash)
  }
}

const closedLoop = async (requests: ReadonlyArray<Buffer>, port: PortAt, clients: number, tally: Tally) => {
  const many = Math.min(clients, requests.length)
  const sockets = await Promise.all(Array.from({ length: many }, (_, at) => connectionTo(port(at))))
  let next = 0
  const from = performance.now()
  try {
    await Promise.all(
      sockets.map(async (socket) => {
        for (let at = next++; at < requests.length; at = next++) {
          const due = performance.now()
          tally.count(await ask(socket, requests[at]!), due)
        }
      })
    )
  } catch (error) {
    for (const socket of sockets) socket.destroy()
    throw error
  }
  const seconds = (performance.now() - from) / 1_000
  for (const [at, socket] of sockets.entries()) rest(port(at), socket)
  return seconds
}

const openLoop = async (requests: ReadonlyArray<Buffer>, port: PortAt, perSecond: number, tally: Tally) => {
  const idle = new Map<number, Array<Rested>>()
  const all = new Set<Socket>()
  const running: Array<Promise<void>> = []
  const socketOf = async (to: number) => {
    const one = stillOpen(idle.get(to) ?? [])
    if (one !== undefined) return one.socket
    if (all.size >= openLoopSocketsMax) throw new Error(`${openLoopSocketsMax} payments wait: the rate is too high`)
    const socket = await opened(to)
    all.add(socket)
    socket.once("close", () => all.delete(socket))
    return socket
  }
  const send = async (request: Buffer, due: number, to: number) => {
    const socket = await socketOf(to)
    tally.count(await ask(socket, request), due)
    idle.set(to, [...(idle.get(to) ?? []), { socket, since: performance.now() }])
  }
  const from = performance.now()
  try {
    while (running.length < requests.length) {
      const due = from + (running.length * 1_000) / perSecond
      if (due <= performance.now()) running.push(send(requests[running.length]!, due, port(running.length)))
      else await new Promise((resolve) => setTimeout(resolve, 1))
    }
    await Promise.all(running)
    return (performance.now() - from) / 1_000
  } finally {
    for (const socket of all) socket.destroy()
  }
}

const send = async (order: SendOrder): Promise<SendFigures> => {
  const { count, from, load, pool } = order
  const ports = typeof order.port === "number" ? [order.port] : order.port
  const port: PortAt = (at) => ports[at % ports.length]!
  const requests = (pools.get(pool) ?? []).slice(from, from + count).map((body) => requestOf(order, body))
  if (requests.length < count) throw new Error(`the pool ${pool} holds no ${from + count} payments`)
  const tally = new Tally()
  const before = process.cpuUsage()
  const seconds =
    "clients" in load
      ? await closedLoop(requests, port, load.clients, tally)
      : await openLoop(requests, port, load.perSecond, tally)
  const { system, user } = process.cpuUsage(before)
  const sorted = Float64Array.from(tally.times).sort()
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
  return {
    answers: sorted.length,
    seconds,
    rate: sorted.length / seconds,
    millis: { p50: at(0.5), p95: at(0.95), p99: at(0.99), max: at(1) },
    curve: Array.from({ length: 101 }, (_, percent) => at(percent / 100)),
    outcomes: tally.outcomes,
    settled: tally.settled,
    clientCpu: (system + user) / 1_000 / Math.max(1, sorted.length)
  }
}

const carryOut = async (order: Order): Promise<Reply> => {
  try {
    if (order.order === "send") return { figures: await send(order) }
    if (order.order === "sign") return { signed: await sign(order) }
    pools.set(
      order.pool,
      order.bodies.map((body) => Buffer.from(body))
    )
    return { signed: order.bodies.length }
  } catch (error) {
    return { error: error instanceof Error ? (error.stack ?? error.message) : String(error) }
  }
}

if (process.send !== undefined && process.argv[2] === "payments") {
  process.on("message", (order: Order) => {
    carryOut(order).then((reply) => process.send!(reply))
  })
  process.on("disconnect", () => process.exit())
}
