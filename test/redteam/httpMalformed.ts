// Malformed requests against any facilitator: for every request to `/verify` and `/settle`, the answer comes within
// seconds, has a status of 200 or 4xx, and has the shape of a refusal. A 500, a connection that hangs, an answer of
// another shape, or a facilitator that is unhealthy afterwards is a failure. Nothing here needs a ledger or money.
import assert from "node:assert/strict"
import { connect } from "node:net"
import { assertRefusedSettle, assertRefusedVerify, post } from "../conformance/ask.ts"
import type { Part } from "../conformance/report.ts"
import { networksOf, type Target } from "./target.ts"
import {
  brokenBodies,
  type HttpBody,
  mistypedBodies,
  senselessTerms,
  senselessTransactions,
  templateOf
} from "./httpBodies.ts"

/** Maximum time of any of these answers. */
const patienceMs = 10_000

/** Runs every malformed request against `target`, in each spelling of a network in its `/supported`. */
export const malformedCases = async ({ key, url }: Target, part: Part): Promise<void> => {
  let slowest = 0
  const bearer = key === undefined ? {} : { authorization: `Bearer ${key}` }
  const networks = await networksOf({ key, url })
  const refused = async ({ body, headers, name }: HttpBody): Promise<void> => {
    for (const [route, assertRefused] of [
      ["verify", assertRefusedVerify],
      ["settle", assertRefusedSettle]
    ] as const) {
      const started = performance.now()
      try {
        const answer = await post(`${url}/${route}`, body, patienceMs, { ...bearer, ...headers })
        slowest = Math.max(slowest, performance.now() - started)
        assert.ok(answer.status === 200 || (answer.status >= 400 && answer.status < 500), `status ${answer.status}`)
        assertRefused(answer)
      } catch (error) {
        // A server may close the connection on a body far beyond its limit; it must not hang on it.
        if (body.length > 1_000_000 && isConnectionEnd(error)) continue
        throw new Error(`${name} on /${route}: ${error instanceof Error ? error.message : error}`)
      }
    }
  }
  const each = async (sentence: string, bodies: ReadonlyArray<HttpBody>) => {
    const errors: Array<string> = []
    await part.check(`${bodies.length} ${sentence}`, async () => {
      for (const body of bodies) await refused(body).catch((error) => errors.push(error.message))
      assert.equal(errors.length, 0, [`${errors.length} of ${bodies.length}`, ...errors.slice(0, 10)].join("\n"))
    })
  }

  for (const body of brokenBodies(await templateOf(networks[0]!))) {
    await part.check(`${body.name} gets a refusal, no 500`, () => refused(body))
  }
  for (const network of networks) {
    const template = await templateOf(network)
    await each(`bodies with a wrong or missing value are refused (${network})`, mistypedBodies(template))
    await each(`bodies with senseless terms are refused (${network})`, senselessTerms(template))
    await each(`bodies with a senseless transaction are refused (${network})`, senselessTransactions(template))
  }
  await rawCases(url, bearer, part)
  await part.check("the facilitator is well afterwards", async () => {
    assert.equal((await fetch(`${url}/health`, { signal: AbortSignal.timeout(patienceMs) })).status, 200)
  })
  part.figure("slowest answer ms", String(Math.round(slowest)))
}

/** The errors of `fetch` for a connection that the server ended. */
const isConnectionEnd = (error: unknown): boolean =>
  /ECONNRESET|EPIPE|UND_ERR_SOCKET|other side closed/.test(
    String((error as Error)?.cause ?? "") + String((error as any)?.cause?.code ?? "")
  )

/** Requests that only a socket can make. */
const rawCases = async (url: string, bearer: Record<string, string>, part: Part): Promise<void> => {
  const { hostname, port } = new URL(url)
  const talk = (request: string, waitMs = patienceMs): Promise<string> =>
    new Promise((resolve, reject) => {
      let answer = ""
      const socket = connect(Number(port || 80), hostname, () => socket.write(request))
      const timer = setTimeout(() => {
        socket.destroy()
        reject(new Error(`no answer within ${waitMs} ms`))
      }, waitMs)
      const done = () => {
        clearTimeout(timer)
        socket.destroy()
        resolve(answer)
      }
      socket
        .setEncoding("utf8")
        .on("data", (chunk) => {
          answer += chunk
          if (answer.includes("\r\n\r\n")) done()
        })
        .on("error", done)
        .on("end", done)
    })
  const head = (line: string, ...headers: ReadonlyArray<string>) =>
    [line, `Host: ${hostname}`, ...headers, "", ""].join("\r\n")
  const noError = async (request: string) => {
    const answer = await talk(request)
    assert.doesNotMatch(answer, /^HTTP\/1\.[01] 5/, answer.slice(0, 200))
  }

  for (const method of ["GET", "PUT", "DELETE", "OPTIONS", "HEAD", "TRACE"]) {
    await part.check(`${method} on /settle moves nothing and gets no 500`, () =>
      noError(head(`${method} /settle HTTP/1.1`))
    )
  }
  await part.check("a length that is a lie gets no 500", () =>
    noError(`${head("POST /verify HTTP/1.1", "Content-Type: application/json", "Content-Length: 2")}{}{}`)
  )
  await part.check("two lengths that differ get no 500", () =>
    noError(`${head("POST /verify HTTP/1.1", "Content-Length: 2", "Content-Length: 3")}{}`)
  )
  await part.check("a length and chunks together get no 500", () =>
    noError(`${head("POST /verify HTTP/1.1", "Content-Length: 2", "Transfer-Encoding: chunked")}0\r\n\r\n`)
  )
  await part.check("a header of 100,000 characters gets no 500", () =>
    noError(`${head("POST /verify HTTP/1.1", `X-Long: ${"x".repeat(100_000)}`, "Content-Length: 2")}{}`)
  )
  await part.check("percent-encoded and doubled paths reach nothing they should not", async () => {
    for (const path of [
      "/%73ettle",
      "//settle",
      "/settle/",
      "/./settle",
      "/settle%00",
      "/settle;x=1",
      "/SETTLE",
      "/../settle"
    ]) {
      await noError(`${head(`POST ${path} HTTP/1.1`, "Content-Type: application/json", "Content-Length: 2")}{}`)
    }
  })
  await part.check("a body in endless chunks is refused at the limit", async () => {
    const chunk = `10000\r\n${"x".repeat(65_536)}\r\n`
    const answer = await new Promise<string>((resolve, reject) => {
      let text = ""
      let sent = 0
      const socket = connect(Number(port || 80), hostname, () => {
        socket.write(head("POST /verify HTTP/1.1", "Content-Type: application/json", "Transfer-Encoding: chunked"))
        const timer = setInterval(() => {
          if (socket.destroyed) return clearInterval(timer)
          if (++sent > 200) {
            clearInterval(timer)
            socket.destroy()
            return reject(new Error("13 MB were taken without a word"))
          }
          socket.write(chunk)
        }, 5)
        const done = () => {
          clearInterval(timer)
          socket.destroy()
          resolve(text)
        }
        socket
          .on("data", (data) => {
            text += data
            done()
          })
          .on("error", done)
          .on("end", done)
      })
    })
    assert.doesNotMatch(answer, /^HTTP\/1\.[01] (5|2)/, answer.slice(0, 200))
  })
  const template = await templateOf("ledger:testnet")
  await part.check("200 requests that never end leave the others their answers", async () => {
    const half = head("POST /settle HTTP/1.1", "Content-Type: application/json", "Content-Length: 1000") + "{"
    const sockets = Array.from({ length: 200 }, () => connect(Number(port || 80), hostname).on("error", () => {}))
    try {
      for (const socket of sockets) socket.write(half)
      assert.equal((await fetch(`${url}/health`, { signal: AbortSignal.timeout(2_000) })).status, 200)
      assertRefusedVerify(await post(`${url}/verify`, template, 2_000, bearer))
    } finally {
      for (const socket of sockets) socket.destroy()
    }
  })
}
