// A receiver of Tollkeeper's webhooks: it checks that a message is signed and fresh, handles each event once, and
// prints how a payment ended. Messages follow the Standard Webhooks specification, so any of its libraries does the
// same.
//
//   WEBHOOK_SECRET=… PORT=3001 node examples/webhook-receiver.ts
import { createHmac, timingSafeEqual } from "node:crypto"
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type Server } from "node:http"
import { fileURLToPath } from "node:url"

export interface Event {
  /** `settlement.recorded`, `.settled`, `.failed`, `.expired` or `.unresolved`. */
  readonly type: string
  readonly timestamp: string
  /** The settlement in the form of `GET /settlements`; `status` and `transaction` show its state. */
  readonly data: {
    readonly status: string
    readonly transaction: string
    /** For a failed payment: the reason, as a sentence. */
    readonly errorMessage?: string
    readonly [field: string]: unknown
  }
}

/** Maximum age or lead of a message, seconds: an old message may be a replay. */
const toleranceSeconds = 300

const keyOf = (secret: string): Buffer =>
  secret.startsWith("whsec_") ? Buffer.from(secret.slice("whsec_".length), "base64") : Buffer.from(secret)

/** The event of a message, or undefined when it is not signed with this secret, or not fresh. */
export const readEvent = (headers: IncomingHttpHeaders, body: string, secret: string): Event | undefined => {
  const [id, time, signatures] = ["id", "timestamp", "signature"].map((name) => String(headers[`webhook-${name}`]))
  if (!(Math.abs(Date.now() / 1_000 - Number(time)) <= toleranceSeconds)) return undefined
  const expected = createHmac("sha256", keyOf(secret)).update(`${id}.${time}.${body}`).digest()
  const isSigned = signatures!.split(" ").some((signature) => {
    const given = Buffer.from(signature.replace(/^v1,/, ""), "base64")
    return given.length === expected.length && timingSafeEqual(given, expected)
  })
  return isSigned ? (JSON.parse(body) as Event) : undefined
}

/** Maximum bytes of a message; an event has a few thousand. */
const bytesMax = 1_048_576

/** The whole body as text; undefined if it is too long or its sender went away. */
const readBody = async (request: IncomingMessage): Promise<string | undefined> => {
  const chunks: Array<Buffer> = []
  let bytes = 0
  try {
    for await (const chunk of request) {
      bytes += chunk.length
      if (bytes > bytesMax) return undefined
      chunks.push(chunk)
    }
  } catch {
    return undefined
  }
  // A character may be divided between two chunks.
  return Buffer.concat(chunks).toString("utf8")
}

/** Starts a receiver; `onEvent` is called once for each event. */
export const startReceiver = (
  secret: string,
  onEvent: (event: Event) => void,
  port = 0
): Promise<{ readonly url: string; readonly server: Server }> => {
  // In production keep these in a database, to survive a restart.
  const seen = new Set<string>()
  const server = createServer(async (request, response) => {
    const body = await readBody(request)
    const event = body === undefined ? undefined : readEvent(request.headers, body, secret)
    if (event !== undefined) {
      // A settlement that was lost with a database and stored again from the ledger has another id.
      const keys = [String(request.headers["webhook-id"]), `${event.type} ${event.data.transaction}`]
      const isNew = !keys.some((key) => seen.has(key))
      for (const key of keys) seen.add(key)
      if (isNew) onEvent(event)
    }
    // Any status except 2xx is retried later.
    response.writeHead(event === undefined ? 401 : 204).end()
  })
  return new Promise((resolve) =>
    server.listen(port, "127.0.0.1", () => {
      const address = server.address() as { port: number }
      resolve({ url: `http://127.0.0.1:${address.port}/`, server })
    })
  )
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const secret = process.env["WEBHOOK_SECRET"]
  if (secret === undefined) throw new Error("WEBHOOK_SECRET is required")
  const { url } = await startReceiver(
    secret,
    // Deliver only at `settlement.settled`; after `.recorded` and `.unresolved` wait. At `.failed` and `.expired` the
    // message has the ledger's result: nothing moved, or which other transaction used the buyer's signature.
    ({ data, type }) => console.log(`${type}: ${data.transaction} is ${data.status}`, data.errorMessage ?? ""),
    Number(process.env["PORT"] ?? 3001)
  )
  console.log(`listening at ${url}`)
}
