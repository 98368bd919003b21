// Refused payments are counted in memory by reason and principal, with the newest few as samples, and written about
// every 100 ms: a crash loses at most those, and no answer waits for a statement. A failed write keeps its counts for
// the next one. Reasons are this service's own and principals are listed keys, so both memory and rows are bounded. A
// sample holds payer, recipient and resource, never a signature or a key.
import { Duration, Effect, Option } from "effect"
import { SqlClient } from "effect/sql"
import { reconciler } from "../../../kernel/actor/Actor.ts"
import { Extensions, type RefusedPayment } from "../../../kernel/payment/Extension.ts"
import { oldBefore, trustedClock } from "../../../kernel/time/trustedTime.ts"
import { dayOf } from "./contributions.ts"
import { type RefusalSample, samplesMax } from "./RefusalSample.ts"

const flushInterval = "100 millis"
/** Maximum characters of third-party text in a sample. */
const textMax = 300

interface RefusalCount {
  readonly day: string
  readonly operation: string
  readonly reason: string
  readonly principal: string
  refused: number
  readonly first_at: string
  last_at: string
  /** Newest first. */
  samples: ReadonlyArray<RefusalSample>
}

/** The beginning of a text that jsonb accepts: without NUL and without half a surrogate pair. */
const beginningOf = (text: string): string => text.slice(0, textMax).replaceAll("\0", "").toWellFormed()

const textOf = (text: Option.Option<string>): string | null => Option.getOrNull(Option.map(text, beginningOf))

/** The data that an operator needs to find the payment again. */
const sampleOf = (at: string, { message, payer, payment, transaction }: RefusedPayment): RefusalSample => {
  const terms = Option.map(payment, ({ requirements }) => requirements)
  const member = (name: "amountText" | "asset" | "network" | "payTo" | "scheme") =>
    textOf(Option.map(terms, (one) => one[name]))
  return {
    at,
    message: beginningOf(message),
    payer: textOf(payer),
    pay_to: member("payTo"),
    network: member("network"),
    scheme: member("scheme"),
    asset: member("asset"),
    amount: member("amountText"),
    resource_url: textOf(Option.flatMap(payment, ({ resourceUrl }) => resourceUrl)),
    transaction_hash: textOf(transaction)
  }
}

/** Adds counts to the buffered ones; `newer` happened later. */
const addTo = (waiting: Map<string, RefusalCount>, newer: RefusalCount): void => {
  const key = `${newer.day} ${newer.operation} ${newer.reason} ${newer.principal}`
  const count = waiting.get(key)
  if (count === undefined) return void waiting.set(key, newer)
  count.refused += newer.refused
  count.last_at = newer.last_at
  count.samples = [...newer.samples, ...count.samples].slice(0, samplesMax)
}

const write = (sql: SqlClient.SqlClient, rows: ReadonlyArray<RefusalCount>) =>
  sql`insert into analytics_refusals as t
    (day, operation, reason, principal, refused, first_at, last_at, samples)
    select day, operation, reason, principal, refused, first_at, last_at, samples
    from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as r (day date, operation text, reason text,
      principal text, refused bigint, first_at timestamptz, last_at timestamptz, samples jsonb)
    order by day, operation, reason, principal
    on conflict (day, operation, reason, principal) do update set refused = t.refused + excluded.refused,
      first_at = least(t.first_at, excluded.first_at), last_at = greatest(t.last_at, excluded.last_at),
      samples = jsonb_path_query_array(excluded.samples || t.samples, ${`$[0 to ${samplesMax - 1}]`}::jsonpath)`

export const startRefusals = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const extensions = yield* Extensions
  const trusted = yield* trustedClock
  let waiting = new Map<string, RefusalCount>()

  const flush = Effect.suspend(() => {
    if (waiting.size === 0) return Effect.void
    const batch = waiting
    waiting = new Map()
    return write(sql, [...batch.values()]).pipe(
      Effect.onError(() =>
        Effect.sync(() => {
          const since = waiting
          waiting = batch
          for (const one of since.values()) addTo(waiting, one)
        })
      ),
      Effect.asVoid
    )
  })

  const flushing = yield* reconciler({
    id: "refusals",
    // Retries a failed write.
    every: Effect.sync(() => (waiting.size === 0 ? Duration.minutes(1) : Duration.seconds(5))),
    gather: flushInterval,
    turn: flush
  })
  yield* extensions.watchRefusals((refused) =>
    Effect.flatMap(trusted, (now) => {
      const at = new Date(now).toISOString()
      const { operation, principal, reason } = refused
      const isFirst = waiting.size === 0
      addTo(waiting, {
        day: dayOf(new Date(now)),
        operation,
        reason,
        principal: Option.getOrElse(principal, () => "none"),
        refused: 1,
        first_at: at,
        last_at: at,
        samples: [sampleOf(at, refused)]
      })
      return isFirst ? flushing.wake : Effect.void
    })
  )
  // Buffered counts are stored before the database under it closes.
  yield* Effect.addFinalizer(() => Effect.ignore(Effect.timeout(flush, "2 seconds")))
})

/** Deletes the refusals of days that are older than settlements are kept. */
export const sweepRefusals = Effect.fnUntraced(function* (keepMillis: number) {
  const sql = yield* SqlClient.SqlClient
  const before = yield* oldBefore(keepMillis)
  yield* sql`delete from analytics_refusals where last_at < ${before}`
})
