// The memory cost of a flood of distinct names: a real facilitator behind a trusted proxy gets one request from each of
// DISTINCT callers (default 1,000,000), each with its own address, path, origin, bearer key, payer and identifier. The
// heap after a full collection is compared with the heap before. Every map that callers fill is bounded, so the heap is
// level from a hundred thousand on. Bar: 160 MB above the start, and 16 MB above its reading at a tenth of the callers.
import { Effect } from "effect"
import { connect } from "node:net"
import process from "node:process"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { startFacilitator } from "../support/facilitator.ts"

const distinct = Number(process.env["DISTINCT"] ?? 1_000_000)
/** Requests written before their answers are awaited. */
const pipelined = 64
const growthMaxMegabytes = 160
const driftMaxMegabytes = 16

setFlagsFromString("--expose-gc")
const collect = runInNewContext("gc") as () => void

const heapMegabytes = async (): Promise<number> => {
  for (let round = 0; round < 4; round++) {
    await new Promise((resolve) => setTimeout(resolve, 200))
    collect()
  }
  return process.memoryUsage().heapUsed / 1_048_576
}

const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
const payerOf = (index: number): string =>
  `G${Array.from({ length: 55 }, (_, at) => letters[(index >>> (at % 20)) & 31]).join("")}`

const bodyOf = (index: number): string => {
  const terms = {
    scheme: "exact",
    network: "ledger:testnet",
    asset: `CBIELTK6YBZJU5UP2WWQEUCYKLPU6AUNZ2BQ4WWFEIE3USCIHMXQDAMA`,
    amount: String(index + 1),
    payTo: payerOf(index),
    maxTimeoutSeconds: 60,
    extra: { areFeesSponsored: true }
  }
  const extensions = { "payment-identifier": { info: { required: false, id: `identifier-${index}-0123456789` } } }
  return JSON.stringify({
    x402Version: 2,
    paymentRequirements: terms,
    paymentPayload: {
      x402Version: 2,
      accepted: terms,
      payload: { transaction: `AAAA${index}` },
      resource: { url: `https://seller-${index}.example/r` },
      extensions
    }
  })
}

/** A verify, a read of the catalog, or an unknown path, each by a new caller. */
const requestOf = (index: number, host: string): string => {
  const address = `${((index >>> 16) % 200) + 11}.${(index >>> 8) & 255}.${index & 255}.7`
  const head = [
    `host: ${host}`,
    `x-forwarded-for: ${address}`,
    `origin: https://page-${index}.example`,
    `authorization: Bearer wrong-key-${index}-0123456789`
  ]
  const kind = index % 3
  if (kind === 0) {
    const body = bodyOf(index)
    const lines = [...head, "content-type: application/json", `content-length: ${Buffer.byteLength(body)}`]
    return `POST /verify HTTP/1.1\r\n${lines.join("\r\n")}\r\n\r\n${body}`
  }
  const path = kind === 1 ? `/discovery/resources?payTo=${payerOf(index)}` : `/unknown/${index}`
  return `GET ${path} HTTP/1.1\r\n${head.join("\r\n")}\r\n\r\n`
}

/** Sends these callers' requests over one connection, several at a time. */
const flood = (port: number, from: number, to: number): Promise<void> =>
  new Promise((resolve, reject) => {
    const host = `127.0.0.1:${port}`
    const socket = connect(port, "127.0.0.1")
    let [sent, answered] = [from, from]
    const send = () => {
      if (answered >= to) return void socket.end(resolve)
      const until = Math.min(to, sent + pipelined)
      let text = ""
      for (; sent < until; sent++) text += requestOf(sent, host)
      socket.write(text)
    }
    socket.setEncoding("latin1")
    socket.on("error", reject)
    socket.on("connect", send)
    let rest = ""
    socket.on("data", (text: string) => {
      const seen = rest + text
      answered += seen.split("HTTP/1.1 ").length - 1
      rest = seen.slice(-8).includes("HTTP/1.1 ") ? "" : seen.slice(-8)
      if (answered >= sent) send()
    })
  })

export const bench = (): Promise<boolean> =>
  Effect.gen(function* () {
    const world = yield* startFacilitator({
      set: [
        "server.trusted_proxies=[127.0.0.1/32]",
        'server.allowed_origins=["https://page-1.example"]',
        "limits.verify_per_second=5"
      ],
      environment: { OPERATOR_API_KEYS: "ops:operator-secret-0123456789" }
    })
    const port = Number(new URL(world.url).port)
    const tenth = Math.floor(distinct / 10)
    yield* Effect.promise(() => flood(port, 0, 1_000))
    const before = yield* Effect.promise(heapMegabytes)
    yield* Effect.promise(() => flood(port, 1_000, tenth))
    const early = yield* Effect.promise(heapMegabytes)
    yield* Effect.promise(() => flood(port, tenth, distinct))
    const late = yield* Effect.promise(heapMegabytes)
    const shown = (megabytes: number) => `${megabytes.toFixed(1)} MB`
    console.log(`heap after a full collection, ${distinct} distinct callers`)
    console.log(`  at the start      ${shown(before)}`)
    console.log(`  after a tenth     ${shown(early)}`)
    console.log(`  after all         ${shown(late)}  (resident ${shown(process.memoryUsage().rss / 1_048_576)})`)
    const holds = late - before <= growthMaxMegabytes && late - early <= driftMaxMegabytes
    console.log(
      `${holds ? "within" : "above"} the bar: ${growthMaxMegabytes} MB in all, ${driftMaxMegabytes} MB of drift`
    )
    return holds
  }).pipe(Effect.scoped, Effect.runPromise)
