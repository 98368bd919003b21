// The history of the keys of receipts, shared by all replicas, and which of them is in force at a time. A new key takes
// effect half a minute after the first replica that holds it has announced it, by when every replica has read that: so
// all of them sign an outcome with the same key, whichever answers, and a receipt has the same bytes everywhere. A key
// that was replaced is reinstated by a process that starts with it first, where no live one has the newest first.
import { Context, Effect, Layer } from "effect"
import { SqlClient, type Statement } from "effect/sql"
import { Base64Url } from "effect/encoding"
import { reconciler } from "../../../kernel/actor/Actor.ts"
import { inTransaction } from "../../../kernel/database/Database.ts"
import type { KeyEntry, KeyUse } from "../contract.ts"
import { monotonicMillis } from "../../../kernel/time/monotonicMillis.ts"
import { didOf, Config } from "../Config.ts"
import { Epochs } from "../log/Epochs.ts"
import { type KeyRefused, readKeys, type SigningKey } from "./readSecrets.ts"

/** From the announcement of a key until it signs, seconds. */
const announcedSeconds = 30
/** How often the history is read again; well below the announcement. */
const readEvery = "10 seconds"
/** How long after its last sign of life a process counts as one that has a key first; above two reads. */
const preferredSeconds = 25
/** How long after its start a process may reinstate a key: a running one leaves a rotation to those that start. */
const reinstatesMillis = 60_000

export interface KeyOfHistory {
  readonly kid: string
  readonly use: KeyUse
  readonly publicKey: Uint8Array
  /** Milliseconds since 1970, of outcomes. */
  readonly validFrom: number
  readonly validUntil: number | undefined
}

/** The history, with the means to sign where this process has them. */
export interface KeyInForce extends KeyOfHistory {
  readonly sign: SigningKey["sign"] | undefined
  readonly isRemote: boolean
}

interface KeyRow {
  readonly kid: string
  readonly purpose: KeyUse
  readonly public_key: Uint8Array
  readonly valid_from: Date
  readonly valid_until: Date | null
}

/** Keys of a use, the newest first: at one time, the one that ended there is the older one. */
const newestFirst = (use: KeyUse) =>
  Effect.flatMap(
    SqlClient.SqlClient,
    (sql) => sql<KeyRow & { readonly isPreferred: boolean }>`select kid, purpose, public_key, valid_from, valid_until,
        coalesce(preferred_at > clock_timestamp() - ${preferredSeconds} * interval '1 second', false) as "isPreferred"
      from receipts_keys where purpose = ${use} order by valid_from desc, valid_until desc nulls first`
  )

const toKey = (row: KeyRow): KeyOfHistory => ({
  kid: row.kid,
  use: row.purpose,
  publicKey: row.public_key,
  validFrom: row.valid_from.getTime(),
  validUntil: row.valid_until?.getTime()
})

const entryOf = (event: KeyEntry["event"], key: SigningKey | KeyOfHistory, did: string, at: Date): KeyEntry => ({
  event,
  kid: `${did}#${key.kid}`,
  publicKey: Base64Url.encode(key.publicKey),
  use: key.use,
  at: Math.floor(at.getTime() / 1_000)
})

/**
 * In the caller's transaction, under the lock of the log: makes a key known that no replica had. It takes effect at a
 * whole second, since readers of its times have no fractions.
 */
const announce = Effect.fnUntraced(function* (key: SigningKey, did: string) {
  const known = yield* newestFirst(key.use)
  if (known.some(({ kid }) => kid === key.kid)) return
  const [former] = known
  const sql = yield* SqlClient.SqlClient
  const from =
    former === undefined
      ? sql`to_timestamp(0)`
      : sql`date_trunc('second', greatest(clock_timestamp() + ${announcedSeconds} * interval '1 second',
          ${former.valid_from}::timestamptz + interval '1 second'))`
  yield* putInForce(key, did, from, former)
})

/** In the caller's transaction: adds a key's time to the history and to the log, and ends the former key's. */
const putInForce = Effect.fnUntraced(function* (
  key: SigningKey,
  did: string,
  from: Statement.Fragment,
  former: KeyRow | undefined
) {
  const sql = yield* SqlClient.SqlClient
  const epochs = yield* Epochs
  const [row] = yield* sql<{ valid_from: Date }>`insert into receipts_keys
    (kid, purpose, public_key, valid_from)
    values (${key.kid}, ${key.use}, ${key.publicKey}, ${from}) returning valid_from`
  const at = row!.valid_from
  const entries = [entryOf("announced", key, did, at)]
  if (former !== undefined) {
    yield* sql`update receipts_keys set valid_until = ${at} where kid = ${former.kid}
      and valid_from = ${former.valid_from}`
    entries.push(entryOf("retired", toKey(former), did, at))
  }
  yield* epochs.appendKeys(entries)
})

/**
 * In the caller's transaction, under the lock of the log: a rotation was rolled back. The key is in force immediately:
 * no process that is live would sign with the newest one.
 */
const reinstate = Effect.fnUntraced(function* (key: SigningKey, did: string) {
  const [newest] = yield* newestFirst(key.use)
  if (newest === undefined || newest.kid === key.kid || newest.isPreferred) return
  const sql = yield* SqlClient.SqlClient
  const from = sql`greatest(date_trunc('second', clock_timestamp()), ${newest.valid_from}::timestamptz)`
  yield* putInForce(key, did, from, newest)
  yield* Effect.logWarning(`${key.kid} is reinstated: no replica starts with ${newest.kid} as its first key`)
})

export class ReceiptKeys extends Context.Service<
  ReceiptKeys,
  {
    /** False: no host or no secret is configured, and nothing is signed. */
    readonly isEnabled: boolean
    /** The key of this use that was in force at a time, milliseconds since 1970. */
    readonly inForce: (use: KeyUse, atMillis: number) => KeyInForce | undefined
    /** All that ever were, by their times, oldest first: one that was reinstated is there again. */
    readonly history: () => ReadonlyArray<KeyOfHistory>
  }
>()("tollkeeper/receipts/ReceiptKeys") {
  static readonly layer = Layer.effect(
    ReceiptKeys,
    Effect.gen(function* () {
      const { host } = yield* Config
      const sql = yield* SqlClient.SqlClient
      const epochs = yield* Epochs
      const held: ReadonlyArray<SigningKey> = yield* readKeys()
      const isEnabled = host !== undefined && held.length > 0
      let history: ReadonlyArray<KeyOfHistory> = []
      const signers = new Map(held.map((key) => [key.kid, key]))
      const read = Effect.map(
        sql<KeyRow>`select kid, purpose, public_key, valid_from, valid_until from receipts_keys
          order by valid_from, valid_until, kid`,
        (rows) => void (history = rows.map(toKey))
      )
      const first = held.filter(({ kid, use }) => held.find((one) => one.use === use)!.kid === kid)
      const inLog = <E>(run: Effect.Effect<unknown, E, SqlClient.SqlClient | Epochs>) =>
        inTransaction(Effect.andThen(epochs.lock, run)).pipe(
          Effect.provideService(SqlClient.SqlClient, sql),
          Effect.provideService(Epochs, epochs)
        )
      /** Former keys first, so that each is followed by the one after it. */
      const announceAll = Effect.forEach(held.toReversed(), (key) => announce(key, didOf(host!)), { discard: true })
      const reinstateAll = Effect.forEach(first, (key) => reinstate(key, didOf(host!)), { discard: true })
      const prefer = (at: Statement.Fragment) =>
        sql`update receipts_keys set preferred_at = ${at} where valid_until is null
          and kid in ${sql.in(first.map(({ kid }) => kid))}`
      const startedAt = yield* monotonicMillis
      const turn = Effect.gen(function* () {
        yield* prefer(sql`clock_timestamp()`)
        yield* read
        const inForceLast = (use: KeyUse) => history.findLast((one) => one.use === use)?.kid
        const isNew = (yield* monotonicMillis) - startedAt < reinstatesMillis
        if (!isNew || first.every(({ kid, use }) => inForceLast(use) === kid)) return
        yield* inLog(reinstateAll)
        yield* read
      })
      if (isEnabled) {
        yield* inLog(Effect.andThen(announceAll, reinstateAll))
        yield* turn
        yield* reconciler({ id: "receipts-keys", every: readEvery, turn })
        // A process that stops says so; one that is killed is known by its silence.
        yield* Effect.addFinalizer(() => Effect.ignore(prefer(sql`null`)))
      }
      return ReceiptKeys.of({
        isEnabled,
        history: () => history,
        inForce: (use, atMillis) => {
          const key = history.findLast((one) => one.use === use && one.validFrom <= atMillis)
          const signer = key && signers.get(key.kid)
          return key && { ...key, sign: signer?.sign, isRemote: signer?.isRemote === true }
        }
      })
    })
  )
}

export type { KeyRefused }
