// The history of the receipt keys, shared by all replicas, and the key in force at any time. A new key takes effect
// half a minute after the first replica that holds it announced it. By then every replica has read the announcement, so
// all replicas sign an outcome with the same key and a receipt has the same bytes everywhere. A process that starts
// with a replaced key as its first key reinstates it, unless a live process has the newest key first.
import { Context, Effect, Layer } from "effect"
import { SqlClient, type Statement } from "effect/sql"
import { Base64Url } from "effect/encoding"
import { reconciler } from "../../../kernel/actor/Actor.ts"
import { inTransaction } from "../../../kernel/database/Database.ts"
import {
  as,
  bytes,
  type Column,
  columns,
  computed,
  flag,
  moment,
  optional,
  text
} from "../../../kernel/database/table.ts"
import type { KeyEntry, KeyUse } from "../contract.ts"
import { monotonicMillis } from "../../../kernel/time/monotonicMillis.ts"
import { didOf, Config } from "../Config.ts"
import { Epochs } from "../log/Epochs.ts"
import { type KeyRefused, readKeys, type SigningKey } from "./readSecrets.ts"

/** Time from the announcement of a key to its first signature, in seconds. */
const announcedSeconds = 30
/** Interval between reads of the history; well below the announcement. */
const readEvery = "10 seconds"
/** A process counts as live for this many seconds after its last heartbeat (`preferred_at`); longer than two reads. */
const preferredSeconds = 25
/** A process may reinstate a key this long after its start. Later it leaves rotations to newly started processes. */
const reinstatesMillis = 60_000

const millis: Column<number> = { ...moment, decode: (at) => at.getTime(), encode: (at) => new Date(at) }

const keys = {
  kid: text,
  use: computed("purpose", as<KeyUse>(text)),
  publicKey: bytes,
  /** Milliseconds since 1970, compared with the time at which an outcome was recorded. */
  validFrom: millis,
  validUntil: optional(millis)
}
const keyColumns = columns(keys)
const preferredColumns = columns({
  ...keys,
  isPreferred: computed(
    `coalesce(preferred_at > clock_timestamp() - interval '${preferredSeconds} seconds', false)`,
    flag
  )
})

export interface KeyOfHistory extends ReturnType<typeof keyColumns.decode> {}

/** A key of the history, with its signer if this process has it. */
export interface KeyInForce extends KeyOfHistory {
  readonly sign: SigningKey["sign"] | undefined
  readonly isRemote: boolean
}

/** Keys of a use, newest first. Of two keys with the same `valid_from`, the key that ended at that time is older. */
const newestFirst = (use: KeyUse) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) =>
    Effect.map(
      sql`select ${sql.literal(preferredColumns.selected)} from receipts_keys where purpose = ${use}
        order by valid_from desc, valid_until desc nulls first`,
      (rows) => rows.map(preferredColumns.decode)
    )
  )

const entryOf = (event: KeyEntry["event"], key: SigningKey | KeyOfHistory, did: string, at: Date): KeyEntry => ({
  event,
  kid: `${did}#${key.kid}`,
  publicKey: Base64Url.encode(key.publicKey),
  use: key.use,
  at: Math.floor(at.getTime() / 1_000)
})

/**
 * In the caller's transaction, under the log's lock: announces a key that no replica has announced. The key takes
 * effect at a whole second, because its published times are whole seconds.
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
          ${new Date(former.validFrom)}::timestamptz + interval '1 second'))`
  yield* putInForce(key, did, from, former)
})

/** In the caller's transaction: adds a key's validity to the history and to the log, and ends the former key's. */
const putInForce = Effect.fnUntraced(function* (
  key: SigningKey,
  did: string,
  from: Statement.Fragment,
  former: KeyOfHistory | undefined
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
      and valid_from = ${new Date(former.validFrom)}`
    entries.push(entryOf("retired", former, did, at))
  }
  yield* epochs.appendKeys(entries)
})

/**
 * In the caller's transaction, under the log's lock: reinstates a key after a rotation was rolled back. The key is in
 * force immediately, because no live process would sign with the newest key.
 */
const reinstate = Effect.fnUntraced(function* (key: SigningKey, did: string) {
  const [newest] = yield* newestFirst(key.use)
  if (newest === undefined || newest.kid === key.kid || newest.isPreferred) return
  const sql = yield* SqlClient.SqlClient
  const from = sql`greatest(date_trunc('second', clock_timestamp()), ${new Date(newest.validFrom)}::timestamptz)`
  yield* putInForce(key, did, from, newest)
  yield* Effect.logWarning(`${key.kid} is reinstated: no replica starts with ${newest.kid} as its first key`)
})

export class ReceiptKeys extends Context.Service<
  ReceiptKeys,
  {
    /** False if no host or no secret is configured; then nothing is signed. */
    readonly isEnabled: boolean
    /** The key of this use that was in force at a time, milliseconds since 1970. */
    readonly inForce: (use: KeyUse, atMillis: number) => KeyInForce | undefined
    /** Every validity period of every key, oldest first; a reinstated key appears again. */
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
        sql`select ${sql.literal(keyColumns.selected)} from receipts_keys order by valid_from, valid_until, kid`,
        (rows) => void (history = rows.map(keyColumns.decode))
      )
      const first = held.filter(({ kid, use }) => held.find((one) => one.use === use)!.kid === kid)
      const inLog = <E>(run: Effect.Effect<unknown, E, SqlClient.SqlClient | Epochs>) =>
        inTransaction(Effect.andThen(epochs.lock, run)).pipe(
          Effect.provideService(SqlClient.SqlClient, sql),
          Effect.provideService(Epochs, epochs)
        )
      /** Former keys first, so that each key's successor is announced after it. */
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
        // A stopping process clears its preference; a killed process's preference expires.
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
