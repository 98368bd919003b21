// An outage of a dependency that many actors share is one line when it begins and one when it ends, for the first actor
// that meets it: not a warning of each. An outage is recognized by the error and its causes; the line has the system's
// code and the address, and nothing else of the error, since that may quote a URL. Without an address in the error, the
// line has the place that the dependency's driver registered.
import { Clock, Effect } from "effect"

export interface Outage {
  readonly subject: "the database" | "the ledger's RPC"
  /** The system's error code, or the HTTP status; absent if the error has neither. */
  readonly code?: string
  /** The address, if the error contains it. */
  readonly address?: string
}

const depthMax = 8

/** An error and its causes, the outermost first. */
const chainOf = (error: unknown): ReadonlyArray<Record<string, unknown>> => {
  const chain: Array<Record<string, unknown>> = []
  const pending: Array<unknown> = [error]
  while (pending.length > 0 && chain.length < depthMax) {
    const next = pending.shift()
    if (typeof next !== "object" || next === null || chain.includes(next as never)) continue
    const one = next as Record<string, unknown>
    chain.push(one)
    pending.push(one["cause"], one["reason"])
  }
  return chain
}

/** The subject of an error that is an outage by itself. */
const subjectOf = ({ _tag, code, isSilent }: Record<string, unknown>): Outage["subject"] | undefined => {
  if (_tag === "LedgerUnavailable") return isSilent === true ? "the ledger's RPC" : undefined
  // The server ends the session, or admits none: it stops, has crashed, or starts.
  const isDatabase = _tag === "ConnectionError" || _tag === "DatabaseUnavailable" || /^57P0[123]$/.test(String(code))
  return isDatabase ? "the database" : undefined
}

/** Codes of the system (`ECONNREFUSED`), of a server that stops, and of a proxy in front (`HTTP 503`). */
const systemCode = /^([A-Z][A-Z0-9_]{3,}|57P0[123]|HTTP [0-9]{3})$/

/** The outage that an error shows; undefined for any other failure. */
export const outageOf = (error: unknown): Outage | undefined => {
  const chain = chainOf(error)
  const subject = chain.map(subjectOf).find((found) => found !== undefined)
  if (subject === undefined) return undefined
  const system = chain.find(({ code }) => systemCode.test(String(code)))
  if (system === undefined) return { subject }
  const host = system["address"] ?? system["hostname"]
  const port = system["port"] === undefined ? "" : `:${String(system["port"])}`
  return { subject, code: String(system["code"]), ...(host === undefined ? {} : { address: `${String(host)}${port}` }) }
}

interface OutageRecord {
  /** Unix milliseconds. */
  readonly began: number
  /** The last failure of any actor. */
  failedAt: number
  isLogged: boolean
}

/** The state of a process's dependencies. */
interface OutageState {
  readonly ongoing: Map<Outage["subject"], OutageRecord>
  readonly addresses: Map<Outage["subject"], string>
}

/** By the supervisor of a process's actors. */
const knownBy = new WeakMap<object, OutageState>()

const of = (supervisor: object): OutageState => {
  const found = knownBy.get(supervisor) ?? { ongoing: new Map(), addresses: new Map() }
  knownBy.set(supervisor, found)
  return found
}

/** Registers the address of a dependency: host and port, without any secret. */
export const nameOutageAddress = (
  supervisor: object,
  subject: Outage["subject"],
  address: string
): Effect.Effect<void> => Effect.sync(() => void of(supervisor).addresses.set(subject, address))

/** An outage has ended only if no actor has failed for this long: a turn may succeed without using the database. */
const quietMillis = 5_000
/** A connection that breaks gives no system error code, but the next attempt does. The line waits this long for it. */
const codeWaitMillis = 10_000

/** Logs the beginning of an outage, once for all actors. */
export const beginOutage = Effect.fnUntraced(function* (supervisor: object, { address, code, subject }: Outage) {
  const { ongoing, addresses } = of(supervisor)
  const now = yield* Clock.currentTimeMillis
  const one = ongoing.get(subject) ?? { began: now, failedAt: now, isLogged: false }
  ongoing.set(subject, one)
  one.failedAt = now
  if (one.isLogged || (code === undefined && now - one.began < codeWaitMillis)) return
  one.isLogged = true
  const since = new Date(one.began).toISOString()
  const why = [code ?? "no answer in time", address ?? addresses.get(subject) ?? ""].join(" ").trim()
  yield* Effect.logWarning(`${subject} is unreachable since ${since} (${why}); settling is stopped until it answers`)
})

/**
 * Logs the end of an outage. The first stopped actor does so when its turn succeeds while no other actor fails. Returns
 * whether the outage has ended; otherwise the actor asks again with its next turn.
 */
export const endOutage = Effect.fnUntraced(function* (supervisor: object, subject: Outage["subject"]) {
  const { ongoing } = of(supervisor)
  const one = ongoing.get(subject)
  if (one === undefined) return true
  const now = yield* Clock.currentTimeMillis
  if (now - one.failedAt < quietMillis) return false
  ongoing.delete(subject)
  const seconds = Math.round((now - one.began) / 1_000)
  yield* Effect.logInfo(`${subject} answers again after ${seconds} s; settling continues`)
  return true
})
