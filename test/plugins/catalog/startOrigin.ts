// An origin for tests: a seller's HTTP server on this machine with the test's responses; it records its requests.
import { Effect } from "effect"
import { createServer, type IncomingMessage } from "node:http"
import type { AddressInfo } from "node:net"
import { testnetUsdc } from "../../../runtime/redteam/buyer.ts"

export interface OriginAnswer {
  readonly status: number
  readonly body?: unknown
  readonly headers?: Record<string, string>
}

export interface Origin {
  readonly url: string
  /** `METHOD path` of each request, in order. */
  readonly asked: Array<string>
  /** Its responses from now on, by path; any other path is 404. */
  readonly answers: Map<string, OriginAnswer | ((request: IncomingMessage) => OriginAnswer)>
}

/** Terms in the form of an origin's documents. */
export const option = (payTo: string, amount = "1000") => ({
  scheme: "exact",
  network: "ledger:testnet",
  asset: testnetUsdc,
  amount,
  payTo,
  maxTimeoutSeconds: 60
})

export const serve = (origin: Origin, path: string, body: unknown) => origin.answers.set(path, { status: 200, body })

/** Runs it for the lifetime of the Scope. */
export const startOrigin = Effect.gen(function* () {
  const asked: Array<string> = []
  const answers: Origin["answers"] = new Map()
  const server = createServer((request, response) => {
    const path = new URL(request.url ?? "/", "http://x").pathname
    asked.push(`${request.method} ${path}`)
    const found = answers.get(path)
    const { body, headers, status } = typeof found === "function" ? found(request) : (found ?? { status: 404 })
    response.writeHead(status, { "content-type": "application/json", ...headers })
    response.end(body === undefined ? undefined : typeof body === "string" ? body : JSON.stringify(body))
  })
  yield* Effect.acquireRelease(
    Effect.promise(() => new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))),
    () =>
      Effect.promise(
        () =>
          new Promise((resolve) => {
            server.close(resolve)
            server.closeAllConnections()
          })
      )
  )
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked, answers } as Origin
})

/** A seller's 402, with its terms in the header. */
export const paymentRequired = (payTo: string, network = "ledger:testnet"): OriginAnswer => ({
  status: 402,
  headers: {
    "payment-required": Buffer.from(
      JSON.stringify({
        x402Version: 2,
        accepts: [{ scheme: "exact", network, payTo, amount: "1", asset: "C", maxTimeoutSeconds: 60 }]
      })
    ).toString("base64")
  }
})

export interface Page {
  readonly payTo: string
  readonly asset: string
  readonly amount?: string
  readonly description?: string
  /** The declaration of its 402, under `catalog`. */
  readonly declaration?: unknown
  readonly extensions?: Record<string, unknown>
  /** The first protocol version, in the body. */
  readonly isOld?: boolean
}

/** A 402 with the page's terms, of either protocol version. */
export const sellingPage = (page: Page): OriginAnswer => {
  const option = {
    scheme: "exact",
    network: "ledger:testnet",
    payTo: page.payTo,
    asset: page.asset,
    maxTimeoutSeconds: 300
  }
  const amount = page.amount ?? "1000"
  const { description } = page
  if (page.isOld === true)
    return {
      status: 402,
      body: { x402Version: 1, accepts: [{ ...option, maxAmountRequired: amount, description, mimeType: "text/plain" }] }
    }
  const required = {
    x402Version: 2,
    resource: { description },
    accepts: [{ ...option, amount, extra: { areFeesSponsored: true } }],
    extensions: { ...(page.declaration === undefined ? {} : { catalog: page.declaration }), ...page.extensions }
  }
  return { status: 402, headers: { "payment-required": Buffer.from(JSON.stringify(required)).toString("base64") } }
}
