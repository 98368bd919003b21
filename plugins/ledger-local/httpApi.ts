// The embedded ledger over HTTP, as one function from a web-standard request to a response: JSON-RPC at `/` and `/rpc`,
// the friendbot, Horizon's ledgers, and routes that no network offers: `/advance`, `/snapshot`, `/revert`, `/dump` and,
// when ledgers are closed by hand, `/close`. Access control is in `admit.ts`. No client input is answered with 500.
import { Effect } from "effect"
import { decodeHolder } from "./engine/xdr/Xdr.ts"
import { horizonLedgers } from "./node/horizon.ts"
import { SNAPSHOTS_MAX } from "./node/Snapshots.ts"
import type { LocalLedger } from "./LocalLedger.ts"
import { errorResponse, isNotification, type RpcResponse } from "./rpc/jsonRpc.ts"
import { RpcCode } from "./rpc/RpcError.ts"
import { viewOf, type View } from "./rpc/View.ts"
import { EntryType } from "./engine/xdr/types.ts"
import { keyOfEntry } from "./engine/state/LedgerKeys.ts"
import { toHex } from "./node/text.ts"
import { entryItem } from "./rpc/getLedgerEntries.ts"

/**
 * The whole state as text, one line of JSON each: first the ledger's number and hash, then every entry as
 * `getLedgerEntries` has it, in the order of its key, so that two dumps can be compared line by line. Contract entries
 * include the last ledger they live in.
 */
const dumpState = ({ latest, ledger, network, store }: View): string => {
  const items = [...store.entries()]
    .filter(({ data }) => data.type !== EntryType.ttl)
    .map((entry) => entryItem(ledger, store, keyOfEntry(entry), entry))
    .sort((a, b) => (a.key < b.key ? -1 : 1))
  const head = {
    passphrase: network.passphrase,
    ledger: latest.sequence,
    closeTime: latest.closeTime.toString(),
    hash: toHex(latest.hash),
    entries: items.length
  }
  return [head, ...items].map((line) => `${JSON.stringify(line)}\n`).join("")
}

/** A request body may have this many bytes. */
export const BODY_BYTES_MAX = 512 * 1_024
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

/** Runs one request; a notification gets no response, whatever its result. */
const answersOf = (ledger: LocalLedger["Service"], request: unknown) =>
  Effect.map(ledger.rpc(request), (answer): ReadonlyArray<RpcResponse> => (isNotification(request) ? [] : [answer]))

const rpc = Effect.fnUntraced(
  function* (ledger: LocalLedger["Service"], request: Request) {
    const body = yield* readJson(request)
    const isBatch = Array.isArray(body)
    if (isBatch && (body.length === 0 || body.length > BATCH_MAX))
      return json(errorResponse(null, RpcCode.invalidRequest, "invalid request"))
    const answers: Array<RpcResponse> = []
    for (const one of isBatch ? body : [body]) answers.push(...(yield* answersOf(ledger, one)))
    if (answers.length === 0) return new Response(null, { status: 204 })
    return json(isBatch ? answers : answers[0])
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
  const usdcText = url.searchParams.get("usdc")
  const usdcUnits = usdcText === null ? undefined : unitsOf(usdcText)
  if (usdcText !== null && usdcUnits === undefined)
    return problem(400, "Bad Request", "usdc has at most 12 digits before the decimal point and 7 behind it")
  if (decodeHolder(address) === undefined)
    return problem(400, "Bad Request", "addr is an account (G…) or a contract (C…)")
  const asking = ledger.fund(address, usdcUnits === undefined ? {} : { usdcUnits })
  const funded = yield* Effect.catch(asking, ({ message }) => Effect.succeed(message))
  if (typeof funded === "string") return problem(502, "Bad Gateway", funded)
  if (funded === undefined) return problem(400, "Bad Request", "addr has no room for it, or usdc is too large")
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
  if (ledgers < 1 || ledgers > CLOSE_MAX)
    return problem(400, "Bad Request", `ledgers is a whole number from 1 to ${CLOSE_MAX}`)
  return json({ ledger: yield* ledger.closeMany(ledgers) })
})

/** Maximum ledgers and seconds that one request may advance: about two months of ledgers, ten years of seconds. */
const ADVANCE_LEDGERS_MAX = 1_000_000
const ADVANCE_SECONDS_MAX = 315_360_000

const wholeNumber = (text: string | null, most: number): number | undefined => {
  if (text === null || !/^[0-9]{1,9}$/.test(text)) return undefined
  const value = Number(text)
  return value >= 1 && value <= most ? value : undefined
}

/**
 * Closes many ledgers, or sets the clock ahead. Processes that take months on the network, such as archival, take
 * seconds.
 */
const advance = Effect.fnUntraced(function* (ledger: LocalLedger["Service"], { searchParams }: URL) {
  const ledgers = wholeNumber(searchParams.get("ledgers"), ADVANCE_LEDGERS_MAX)
  const seconds = wholeNumber(searchParams.get("seconds"), ADVANCE_SECONDS_MAX)
  if ((ledgers === undefined) === (seconds === undefined)) {
    const bounds = `ledgers=1 to ${ADVANCE_LEDGERS_MAX}, or seconds=1 to ${ADVANCE_SECONDS_MAX}`
    return problem(400, "Bad Request", `one of the two is required: ${bounds}`)
  }
  return json({ ledger: yield* ledgers === undefined ? ledger.advanceSeconds(seconds!) : ledger.closeMany(ledgers) })
})

/** The snapshot id in a request, empty when absent; and the refusal of an unknown id. */
const idOf = (url: URL): string => url.searchParams.get("id") ?? ""
const noSuchSnapshot = (id: string): Response =>
  id === ""
    ? problem(400, "Bad Request", "id is required: what POST /snapshot answered")
    : problem(404, "Not Found", "id names no snapshot that is kept")

/** Takes a snapshot of the ledger, or drops one. */
const snapshot = Effect.fnUntraced(function* (ledger: LocalLedger["Service"], url: URL, method: string) {
  if (method === "DELETE") {
    return (yield* ledger.dropSnapshot(idOf(url))) ? new Response(null, { status: 204 }) : noSuchSnapshot(idOf(url))
  }
  const id = yield* ledger.snapshot
  if (id === undefined)
    return problem(409, "Conflict", `at most ${SNAPSHOTS_MAX} are kept; DELETE /snapshot?id= forgets one`)
  return json({ id, ledger: ledger.ledger.latest.sequence }, 201)
})

const revert = Effect.fnUntraced(function* (ledger: LocalLedger["Service"], url: URL) {
  const sequence = yield* ledger.revert(idOf(url))
  return sequence === undefined ? noSuchSnapshot(idOf(url)) : json({ ledger: sequence })
})

const dump = ({ ledger, passphrase }: LocalLedger["Service"]): Response =>
  new Response(dumpState(viewOf(ledger, { passphrase, friendbotUrl: undefined }, 0n)), {
    headers: { "content-type": "application/x-ndjson; charset=utf-8" }
  })

const ledgers = (ledger: LocalLedger["Service"], url: URL): Response => {
  const page = horizonLedgers(ledger.ledger, url)
  return typeof page === "string" ? problem(400, "Bad Request", page) : json(page)
}

interface Route {
  readonly methods: ReadonlyArray<string>
  /** The path's purpose, returned to a caller with another method. */
  readonly purpose: string
  readonly answer: (ledger: LocalLedger["Service"], request: Request, url: URL) => Effect.Effect<Response>
}

const rpcRoute: Route = {
  methods: ["POST"],
  purpose: "this is a Stellar RPC: POST JSON-RPC 2.0",
  answer: (ledger, request) => rpc(ledger, request)
}

const routes: ReadonlyMap<string, Route> = new Map<string, Route>([
  ["/", rpcRoute],
  ["/rpc", rpcRoute],
  [
    "/friendbot",
    { methods: ["GET", "POST"], purpose: "GET or POST", answer: (ledger, _, url) => friendbot(ledger, url) }
  ],
  [
    "/ledgers",
    {
      methods: ["GET"],
      purpose: "GET lists ledgers as Horizon does",
      answer: (ledger, _, url) => Effect.sync(() => ledgers(ledger, url))
    }
  ],
  [
    "/close",
    { methods: ["POST"], purpose: "POST closes the next ledger", answer: (ledger, _, url) => close(ledger, url) }
  ],
  [
    "/advance",
    {
      methods: ["POST"],
      purpose: "POST closes many ledgers, or sets the clock ahead",
      answer: (ledger, _, url) => advance(ledger, url)
    }
  ],
  [
    "/snapshot",
    {
      methods: ["POST", "DELETE"],
      purpose: "POST keeps what the ledger is now, DELETE forgets a snapshot",
      answer: (ledger, request, url) => snapshot(ledger, url, request.method)
    }
  ],
  [
    "/revert",
    { methods: ["POST"], purpose: "POST goes back to a snapshot", answer: (ledger, _, url) => revert(ledger, url) }
  ],
  [
    "/dump",
    { methods: ["GET"], purpose: "GET returns the whole state", answer: (ledger) => Effect.sync(() => dump(ledger)) }
  ]
])

export const handle = Effect.fnUntraced(function* (ledger: LocalLedger["Service"], request: Request) {
  const url = new URL(request.url)
  const { method } = request
  if (method === "OPTIONS") return new Response(null, { status: 204 })
  const path = url.pathname.replace(/\/+$/, "") || "/"
  const route = routes.get(path)
  if (route === undefined) return problem(404, "Not Found", `there are ${[...routes.keys()].join(", ")}`)
  if (path === "/close" && !ledger.isClosedByHand)
    return problem(404, "Not Found", "this ledger is closed by the clock")
  if (!route.methods.includes(method)) return problem(405, "Method Not Allowed", route.purpose)
  return yield* route.answer(ledger, request, url)
})
