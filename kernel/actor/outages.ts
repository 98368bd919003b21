// An outage of a dependency that many actors share is one line when it begins and one when it ends, whichever actor
// meets it first: not a warning of each. An outage is recognized by the error and its causes; the line has the address
// and the system's code, and nothing else of the error, since that may quote a URL.
import { Clock, Effect } from "effect"

export interface Outage {
  readonly subject: "the database" | "the ledger's RPC"
  /** The system's code and the address, as far as the error has them. */
  readonly detail: string
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

const subjects: Readonly<Record<string, Outage["subject"]>> = {
  ConnectionError: "the database",
  DatabaseUnavailable: "the database",
  LedgerUnavailable: "the ledger's RPC"
}

/** The server ends the session, or admits none: it stops, has crashed, or starts. */
const isShutDown = ({ code }: Record<string, unknown>): boolean => /^57P0[123]$/.test(String(code))

/** The outage that an error shows; undefined for any other failure. */
export const outageOf = (error: unknown): Outage | undefined => {
  const chain = chainOf(error)
  const named = chain.map(({ _tag }) => subjects[String(_tag)]).find((found) => found !== undefined)
  const subject = named ?? (chain.some(isShutDown) ? "the database" : undefined)
  if (subject === undefined) return undefined
  const system = chain.find(({ code }) => /^(E[A-Z]+|57P0[123])$/.test(String(code)))
  const host = system?.["address"] ?? system?.["hostname"]
  const at = host === undefined ? "" : ` ${String(host)}${system?.["port"] === undefined ? "" : `:${system["port"]}`}`
  return { subject, detail: system === undefined ? "no answer" : `${String(system["code"])}${at}` }
}

interface Ongoing {
  /** Unix milliseconds. */
  readonly began: number
  /** The last failure of any actor. */
  failedAt: number
}

/** The outages of one process, by what supervises its actors. */
const ongoing = new WeakMap<object, Map<Outage["subject"], Ongoing>>()

/** An end is one once no actor has failed for so long: a turn may succeed without asking the database. */
const quietMillis = 5_000

const of = (supervisor: object): Map<Outage["subject"], Ongoing> => {
  const found = ongoing.get(supervisor) ?? new Map<Outage["subject"], Ongoing>()
  ongoing.set(supervisor, found)
  return found
}

/** Logs the beginning of an outage, once for all actors. */
export const beginOutage = Effect.fnUntraced(function* (supervisor: object, { detail, subject }: Outage) {
  const known = of(supervisor)
  const now = yield* Clock.currentTimeMillis
  const before = known.get(subject)
  if (before !== undefined) return void (before.failedAt = now)
  known.set(subject, { began: now, failedAt: now })
  const since = new Date(now).toISOString()
  yield* Effect.logWarning(`${subject} is unreachable since ${since} (${detail}); settling is stopped until it answers`)
})

/**
 * Logs the end of an outage, by the first actor that it had stopped and whose turn succeeds while no other fails.
 * Whether it has ended; otherwise the actor asks again with its next turn.
 */
export const endOutage = Effect.fnUntraced(function* (supervisor: object, subject: Outage["subject"]) {
  const known = of(supervisor).get(subject)
  if (known === undefined) return true
  const now = yield* Clock.currentTimeMillis
  if (now - known.failedAt < quietMillis) return false
  of(supervisor).delete(subject)
  const seconds = Math.round((now - known.began) / 1_000)
  yield* Effect.logInfo(`${subject} answers again after ${seconds} s; settling continues`)
  return true
})
