// The embedded ledger over HTTP, as one function from a web-standard request to a response: JSON-RPC at `/` and `/rpc`,
// the friendbot, Horizon's ledgers, `/advance` and, when ledgers are closed by hand, `/close`. Who may ask is
// `admit.ts`'s. Nothing is answered 500 for what a client sends.
import { Effect } from "effect"
import { horizonLedgers } from "./node/horizon.ts"
import type { LocalLedger } from "./LocalLedger.ts"
import { errorResponse, type RpcResponse } from "./rpc/jsonRpc.ts"
import { RpcCode } from "./rpc/RpcError.ts"

/** A request body may have this many bytes. */
export const BODY_BYTES_MAX = 512 * 1_024
/** Requests in one batch. */
const BATCH_MAX = 50

const json = (body: unknown, status = 200): Response =>
  new Response(JSON.stringify(body), {
    status,
    headers: { "content-type": "application/json; charset=utf-8" }
  })

const problem = (status: number, title: string, detail: string): Response =>
  json({ type: "about:blank", title, status, detail }, status)

const readJson = (request: Request): Effect.Effect<unknown, "too long" | "not JSON"> =>
  Effect.promise(() => request.text()).pipe(
    Effect.flatMap((text) =>
      text.length > BODY_BYTES_MAX
        ? Effect.fail("too long" as const)
        : Effect.try({ try: () => JSON.parse(text) as unknown, catch: () => "not JSON" as const })
    )
  )

const rpc = Effect.fnUntraced(
  function* (ledger: LocalLedger["Service"], request: Request) {
    const body = yield* readJson(request)
    if (!Array.isArray(body)) return json(yield* ledger.rpc(body))
    if (body.length === 0 || body.length > BATCH_MAX)
      return json(errorResponse(null, RpcCode.invalidRequest, "invalid request"))
    const answers: Array<RpcResponse> = []
    for (const one of body) answers.push(yield* ledger.rpc(one))
    return json(answers)
  },
  (effect) =>
    effect.pipe(
      Effect.catch((error) =>
        Effect.succeed(
          error === "too long"
            ? problem(413, "Payload Too Large", `at most ${BODY_BYTES_MAX} bytes`)
            : error === "not JSON"
              ? json(errorResponse(null, RpcCode.parseError, "parse error"))
              : new Response(null, { status: error.status })
        )
      )
    )
)

/** A decimal amount with up to seven digits behind the point, in units of 10^-7. */
const unitsOf = (text: string): bigint | undefined => {
  const match = /^([0-9]{1,12})(?:\.([0-9]{1,7}))?$/.exec(text)
  return match === null ? undefined : BigInt(match[1]! + (match[2] ?? "").padEnd(7, "0"))
}

const friendbot = Effect.fnUntraced(function* (ledger: LocalLedger["Service"], url: URL) {
  const address = url.searchParams.get("addr") ?? ""
  const asked = url.searchParams.get("usdc")
  const usdcUnits = asked === null ? undefined : unitsOf(asked)
  if (asked !== null && usdcUnits === undefined)
    return problem(400, "Bad Request", "usdc is a decimal number with at most 7 digits behind the point")
  const funded = yield* ledger.fund(address, usdcUnits === undefined ? {} : { usdcUnits })
  if (funded === undefined)
    return problem(400, "Bad Request", "addr is not an account this friendbot can fund, or the amount is too large")
  const { hash, ledger: sequence } = funded
  return json({
    id: hash,
    hash,
    successful: true,
    ledger: sequence,
    _links: { transaction: { href: `${url.origin}/transactions/${hash}` } }
  })
})

/** Ledgers that one request may close. */
const CLOSE_MAX = 1_000

const close = Effect.fnUntraced(function* (ledger: LocalLedger["Service"], url: URL) {
  const text = url.searchParams.get("ledgers") ?? "1"
  const ledgers = /^[0-9]{1,4}$/.test(text) ? Number(text) : 0
  if (ledgers < 1 || ledgers > CLOSE_MAX) return problem(400, "Bad Request", `ledgers is 1 to ${CLOSE_MAX}`)
  return json({ ledger: yield* ledger.closeMany(ledgers) })
})

/** Ledgers and seconds that one request may leap: about two months of the one, ten years of the other. */
const ADVANCE_LEDGERS_MAX = 1_000_000
const ADVANCE_SECONDS_MAX = 315_360_000

const wholeNumber = (text: string | null, most: number): number | undefined => {
  if (text === null || !/^[0-9]{1,9}$/.test(text)) return undefined
  const value = Number(text)
  return value >= 1 && value <= most ? value : undefined
}

/** Closes many ledgers, or sets the clock ahead: what takes months on the network, such as archival, takes seconds. */
const advance = Effect.fnUntraced(function* (ledger: LocalLedger["Service"], { searchParams }: URL) {
  const ledgers = wholeNumber(searchParams.get("ledgers"), ADVANCE_LEDGERS_MAX)
  const seconds = wholeNumber(searchParams.get("seconds"), ADVANCE_SECONDS_MAX)
  if ((ledgers === undefined) === (seconds === undefined)) {
    const bounds = `ledgers=1 to ${ADVANCE_LEDGERS_MAX}, or seconds=1 to ${ADVANCE_SECONDS_MAX}`
    return problem(400, "Bad Request", `one of the two is required: ${bounds}`)
  }
  return json({ ledger: yield* ledgers === undefined ? ledger.advanceSeconds(seconds!) : ledger.closeMany(ledgers) })
})

/** Answers one request. */
export const handle = Effect.fnUntraced(function* (ledger: LocalLedger["Service"], request: Request) {
  const url = new URL(request.url)
  const { method } = request
  if (method === "OPTIONS") return new Response(null, { status: 204 })
  switch (url.pathname.replace(/\/+$/, "") || "/") {
    case "/":
    case "/rpc":
      return method === "POST"
        ? yield* rpc(ledger, request)
        : problem(405, "Method Not Allowed", "this is a Stellar RPC: POST JSON-RPC 2.0")
    case "/friendbot":
      return method === "GET" || method === "POST"
        ? yield* friendbot(ledger, url)
        : problem(405, "Method Not Allowed", "GET or POST")
    case "/ledgers": {
      const ledgers = method === "GET" ? horizonLedgers(ledger.ledger, url) : undefined
      return ledgers === undefined
        ? problem(400, "Bad Request", "limit is 1 to 200, order is asc or desc")
        : json(ledgers)
    }
    case "/close":
      if (!ledger.isClosedByHand) return problem(404, "Not Found", "this ledger is closed by the clock")
      return method === "POST"
        ? yield* close(ledger, url)
        : problem(405, "Method Not Allowed", "POST closes the next ledger")
    case "/advance":
      return method === "POST"
        ? yield* advance(ledger, url)
        : problem(405, "Method Not Allowed", "POST closes many ledgers, or sets the clock ahead")
    default:
      return problem(404, "Not Found", "there are /, /rpc, /friendbot and /ledgers")
  }
})
