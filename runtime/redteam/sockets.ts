// Malformed requests against any facilitator: the answer comes within seconds, has a status of 200 or 4xx, and has the
// shape of a refusal. A 500, a connection that hangs or an answer of another shape is a failure. Nothing here needs a
// ledger or money.
import assert from "node:assert/strict"
import { connect } from "node:net"
import { connect as connectTls } from "node:tls"
import { assertRefusedSettle, assertRefusedVerify } from "./ask.ts"
import {
  brokenBodies,
  type HttpBody,
  mistypedBodies,
  senselessTerms,
  senselessTransactions,
  templateOf
} from "./bodies.ts"
import type { Case } from "./cases.ts"
import type { World } from "./target.ts"

/** Maximum time of any of these answers. */
const patienceMs = 10_000
/** Failures after which the rest of a case's bodies is not sent: a target that hangs would take hours. */
const failuresMax = 10
/** Maximum characters of a raw answer, and the pause after which it has ended on an open connection. */
const rawMax = 262_144
const pauseMs = 250

/** The errors of `fetch` for a connection that the server ended. */
const isConnectionEnd = (error: unknown): boolean =>
  /ECONNRESET|EPIPE|UND_ERR_SOCKET|other side closed/.test(
    String((error as Error)?.cause ?? "") + String((error as any)?.cause?.code ?? "")
  )

const refused = async (world: World, { body, headers, name }: HttpBody): Promise<void> => {
  for (const [route, assertRefused] of [
    ["/verify", assertRefusedVerify],
    ["/settle", assertRefusedSettle]
  ] as const) {
    try {
      const answer = await world.ask(route, body, headers, patienceMs)
      assert.ok(answer.status === 200 || (answer.status >= 400 && answer.status < 500), `status ${answer.status}`)
      assertRefused(answer)
    } catch (error) {
      // A server may close the connection on a body far beyond its limit; it must not hang on it.
      if (body.length > 1_000_000 && isConnectionEnd(error)) continue
      throw new Error(`${name} on ${route}: ${error instanceof Error ? error.message : String(error)}`)
    }
  }
}

/** One case of many bodies, in each spelling of a network. */
const group = (attack: number, name: string, bodies: (template: any) => ReadonlyArray<HttpBody>): Case => ({
  attack,
  on: "facilitator",
  name,
  accepts: "for each, a refusal by /verify and /settle with status 200 or 4xx, within ten seconds",
  still: "nothing can move: the payers do not exist",
  play: async (world) => {
    const errors: Array<string> = []
    let count = 0
    for (const network of world.networks) {
      for (const body of bodies(await templateOf(network))) {
        if (errors.length === failuresMax) break
        count++
        await refused(world, body).catch((error) => errors.push(error.message))
      }
    }
    assert.equal(errors.length, 0, [`${errors.length} of ${count}`, ...errors].join("\n"))
  }
})

/** Used for their names only: the bodies depend on the target's network. */
const named = brokenBodies(await templateOf("ledger:testnet"))

const open = (world: World) => {
  const { hostname, port, protocol } = new URL(world.target.url)
  return protocol === "https:"
    ? connectTls({ host: hostname, port: Number(port || 443), servername: hostname })
    : connect(Number(port || 80), hostname)
}

/** Sends raw bytes; resolves with all bytes received when the connection ends, or pauses after the answer's head. */
export const talk = (world: World, request: string, waitMs = patienceMs): Promise<string> =>
  new Promise((resolve, reject) => {
    let answer = ""
    let pause: NodeJS.Timeout | undefined
    const socket = open(world)
    const timer = setTimeout(() => {
      clearTimeout(pause)
      socket.destroy()
      reject(new Error(`no answer within ${waitMs} ms`))
    }, waitMs)
    const done = () => {
      clearTimeout(timer)
      clearTimeout(pause)
      socket.destroy()
      resolve(answer)
    }
    socket
      .setEncoding("utf8")
      .on("data", (chunk) => {
        answer += chunk
        clearTimeout(pause)
        if (answer.length > rawMax) done()
        else if (answer.includes("\r\n\r\n")) pause = setTimeout(done, pauseMs)
      })
      .on("error", done)
      .on("end", done)
    socket.write(request)
  })

export const head = (world: World, line: string, ...headers: ReadonlyArray<string>): string =>
  [line, `Host: ${new URL(world.target.url).host}`, ...headers, "", ""].join("\r\n")

const json = "Content-Type: application/json"
const twoKeys = ["Authorization: Bearer a", "Authorization: Bearer b"]

interface Raw {
  readonly attack: number
  readonly name: string
  readonly requests: (world: World) => ReadonlyArray<string>
}

const raw: ReadonlyArray<Raw> = [
  ...["GET", "PUT", "DELETE", "OPTIONS", "HEAD", "TRACE"].map((method): Raw => ({
    attack: 99,
    name: `${method} on /settle`,
    requests: (world) => [head(world, `${method} /settle HTTP/1.1`)]
  })),
  {
    attack: 99,
    name: "a length that is a lie",
    requests: (world) => [`${head(world, "POST /verify HTTP/1.1", json, "Content-Length: 2")}{}{}`]
  },
  {
    attack: 99,
    name: "two lengths that differ",
    requests: (world) => [`${head(world, "POST /verify HTTP/1.1", "Content-Length: 2", "Content-Length: 3")}{}`]
  },
  {
    attack: 99,
    name: "a length and chunks together",
    requests: (world) => [
      `${head(world, "POST /verify HTTP/1.1", "Content-Length: 2", "Transfer-Encoding: chunked")}0\r\n\r\n`
    ]
  },
  {
    attack: 43,
    name: "a header of 100,000 characters",
    requests: (world) => [`${head(world, "POST /verify HTTP/1.1", `X-Long: ${"x".repeat(100_000)}`)}`]
  },
  {
    attack: 99,
    name: "percent-encoded and doubled paths",
    requests: (world) =>
      ["/%73ettle", "//settle", "/settle/", "/./settle", "/settle%00", "/settle;x=1", "/SETTLE", "/../settle"].map(
        (path) => `${head(world, `POST ${path} HTTP/1.1`, json, "Content-Length: 2")}{}`
      )
  },
  {
    attack: 53,
    name: "two Authorization headers, and a key in the query",
    requests: (world) => [
      `${head(world, "POST /verify HTTP/1.1", json, ...twoKeys, "Content-Length: 2")}{}`,
      `${head(world, "POST /verify?key=a&api_key=a&access_token=a HTTP/1.1", json, "Content-Length: 2")}{}`
    ]
  }
]

/** A body in chunks without end; resolves with the answer or with the empty text of a closed connection. */
const endlessBody = (world: World): Promise<string> => {
  const chunk = `10000\r\n${"x".repeat(65_536)}\r\n`
  return new Promise((resolve, reject) => {
    let text = ""
    let sent = 0
    const socket = open(world)
    const timer = setInterval(() => {
      if (socket.destroyed) return clearInterval(timer)
      if (++sent <= 200) return void socket.write(chunk)
      clearInterval(timer)
      socket.destroy()
      reject(new Error("13 MB were taken without an answer"))
    }, 5)
    const done = () => {
      clearInterval(timer)
      socket.destroy()
      resolve(text)
    }
    socket
      .on("data", (data) => {
        text += String(data)
        done()
      })
      .on("error", done)
      .on("end", done)
    socket.write(head(world, "POST /verify HTTP/1.1", json, "Transfer-Encoding: chunked"))
  })
}

const isWell = async (world: World): Promise<void> => {
  const started = performance.now()
  assertRefusedVerify(await world.ask("/verify", await templateOf(world.networks[0]!), {}, 2_000))
  assert.ok(performance.now() - started < 2_000, "another caller waited two seconds")
}

/** Holds `count` connections with these bytes while another caller asks. */
const whileHeld = async (world: World, count: number, request: string): Promise<void> => {
  const sockets = Array.from({ length: count }, () => open(world).on("error", () => {}))
  try {
    for (const socket of sockets) socket.pause().write(request)
    await isWell(world)
  } finally {
    for (const socket of sockets) socket.destroy()
  }
}

interface Held {
  readonly attack: number
  readonly name: string
  readonly count: number
  /** `body` is a plausible verify. */
  readonly request: (world: World, body: string) => string
}

const held: ReadonlyArray<Held> = [
  {
    attack: 43,
    name: "200 requests that never end",
    count: 200,
    request: (world) => `${head(world, "POST /settle HTTP/1.1", json, "Content-Length: 1000")}{`
  },
  {
    attack: 126,
    name: "900 requests on nine connections whose answers stay unread",
    count: 9,
    request: (world) => head(world, "GET /supported HTTP/1.1").repeat(100)
  },
  {
    attack: 130,
    name: "HEAD and GET of event streams, left open",
    count: 20,
    request: (world) =>
      ["HEAD", "GET"].map((verb) => head(world, `${verb} /events HTTP/1.1`, "Accept: text/event-stream")).join("")
  },
  {
    attack: 74,
    name: "one caller with 50 open verifies",
    count: 50,
    request: (world, body) =>
      `${head(world, "POST /verify HTTP/1.1", json, `Content-Length: ${Buffer.byteLength(body)}`)}${body}`
  }
]

export const malformedCases: ReadonlyArray<Case> = [
  ...named.map(({ attack, name }, index): Case => ({
    ...group(attack ?? 42, name, () => []),
    accepts: "a refusal by /verify and /settle with status 200 or 4xx, within ten seconds",
    play: async (world) => refused(world, brokenBodies(await templateOf(world.networks[0]!))[index]!)
  })),
  group(42, "a wrong or missing value at each place of a request", mistypedBodies),
  group(15, "amounts, recipients, assets, times and networks that are almost right", senselessTerms),
  group(30, "transactions that cannot be decoded, or are not payments", senselessTransactions),
  ...raw.map(({ attack, name, requests }): Case => ({
    attack,
    on: "facilitator",
    name,
    accepts: "no status 5xx and no success, within ten seconds",
    still: "nothing can move: no request has a payment",
    play: async (world) => {
      for (const request of requests(world)) {
        const answer = await talk(world, request)
        assert.doesNotMatch(answer, /^HTTP\/1\.[01] 5/, answer.slice(0, 200))
        assert.doesNotMatch(answer, /"(?:success|isValid)": ?true/, answer.slice(0, 200))
      }
    }
  })),
  {
    attack: 43,
    on: "facilitator",
    name: "a body in chunks without end",
    accepts: "a refusal or a closed connection before 13 MB",
    still: "nothing can move: no request has a payment",
    play: async (world) => assert.doesNotMatch(await endlessBody(world), /^HTTP\/1\.[01] [52]/)
  },
  ...held.map(({ attack, count, name, request }): Case => ({
    attack,
    on: "facilitator",
    name,
    accepts: "another caller's verify is answered within two seconds",
    still: "the time of another caller's answer",
    play: async (world) => whileHeld(world, count, request(world, JSON.stringify(await templateOf(world.networks[0]!))))
  }))
]
