// A receiver of webhooks for tests: it verifies each signature by the specification, with the runtime's own HMAC, and
// responds as configured.
import { Effect } from "effect"
import { createHmac } from "node:crypto"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { eventually } from "../../support/eventually.ts"

export interface Received {
  readonly path: string
  readonly id: string
  readonly type: string
  readonly data: any
  readonly body: string
  readonly isSigned: boolean
  readonly headers: Readonly<Record<string, string>>
}

export interface ReceiverOptions {
  readonly secret: string
  /** Default: a free one. */
  readonly port?: number
  /** The status, or never; default 200. */
  readonly answer?: (received: Received, index: number) => number | "never"
  readonly location?: string
  /** Sent with each answer except 2xx. */
  readonly retryAfter?: string
}

export const startReceiver = ({ answer, location, port, retryAfter, secret }: ReceiverOptions) =>
  Effect.gen(function* () {
    const received: Array<Received> = []
    const server = yield* Effect.acquireRelease(
      Effect.promise(
        () =>
          new Promise<ReturnType<typeof createServer>>((resolve) => {
            const server = createServer((request, response) => {
              let body = ""
              request.on("data", (chunk) => (body += chunk))
              request.on("end", () => {
                const headers = request.headers as Record<string, string>
                const signed = `${headers["webhook-id"]}.${headers["webhook-timestamp"]}.${body}`
                const expected = `v1,${createHmac("sha256", secret).update(signed).digest("base64")}`
                const { data, type } = JSON.parse(body)
                const one = {
                  path: request.url!,
                  id: headers["webhook-id"]!,
                  type,
                  data,
                  body,
                  isSigned: headers["webhook-signature"]!.split(" ").includes(expected),
                  headers
                }
                received.push(one)
                const status = answer?.(one, received.length - 1) ?? 200
                if (status === "never") return
                response.writeHead(status, {
                  ...(location === undefined ? {} : { location }),
                  ...(retryAfter === undefined || status < 300 ? {} : { "retry-after": retryAfter })
                })
                response.end()
              })
            }).listen(port ?? 0, "127.0.0.1", () => resolve(server))
          })
      ),
      (server) =>
        Effect.promise(
          () =>
            new Promise<void>((resolve) => {
              server.close(() => resolve())
              server.closeAllConnections()
            })
        )
    )
    return {
      received,
      url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`,
      until: (holds: (received: ReadonlyArray<Received>) => boolean) =>
        eventually(
          Effect.sync((): ReadonlyArray<Received> => received),
          holds
        )
    }
  })
