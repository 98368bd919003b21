// The history of the keys of receipts, shared by all replicas, and which of them is in force at a time. A new key takes
// effect half a minute after the first replica that holds it has announced it, by when every replica has read that: so
// all of them sign an outcome with the same key, whichever answers, and a receipt has the same bytes everywhere.
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { Base64Url } from "effect/encoding"
import { reconciler } from "../../../kernel/actor/Actor.ts"
import { inTransaction } from "../../../kernel/database/Database.ts"
import type { KeyEntry, KeyUse } from "../contract.ts"
import { didOf, Config } from "../Config.ts"
import { Epochs } from "../log/Epochs.ts"
import { type KeyRefused, readKeys, type SigningKey } from "./readSecrets.ts"

/** From the announcement of a key until it signs, seconds. */
const announcedSeconds = 30
/** How often the history is read again; well below the announcement. */
const readEvery = "10 seconds"

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
  const sql = yield* SqlClient.SqlClient
  const epochs = yield* Epochs
  const known = yield* sql<KeyRow>`select kid, purpose, public_key, valid_from, valid_until from receipts_keys
    where purpose = ${key.use} order by valid_from desc`
  if (known.some(({ kid }) => kid === key.kid)) return
  const [former] = known
  const [row] = yield* sql<{ valid_from: Date }>`insert into receipts_keys (kid, purpose, public_key, valid_from)
    values (${key.kid}, ${key.use}, ${key.publicKey}, ${
      former === undefined
        ? sql`to_timestamp(0)`
        : sql`date_trunc('second', greatest(clock_timestamp() + ${announcedSeconds} * interval '1 second',
            ${former.valid_from}::timestamptz + interval '1 second'))`
    }) returning valid_from`
  const at = row!.valid_from
  const entries = [entryOf("announced", key, did, at)]
  if (former !== undefined) {
    yield* sql`update receipts_keys set valid_until = ${at} where kid = ${former.kid}`
    entries.push(entryOf("retired", toKey(former), did, at))
  }
  yield* epochs.appendKeys(entries)
})

export class ReceiptKeys extends Context.Service<
  ReceiptKeys,
  {
    /** False: no host or no secret is configured, and nothing is signed. */
    readonly isEnabled: boolean
    /** The key of this use that was in force at a time, milliseconds since 1970. */
    readonly inForce: (use: KeyUse, atMillis: number) => KeyInForce | undefined
    /** All that ever were, oldest first. */
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
          order by valid_from, kid`,
        (rows) => void (history = rows.map(toKey))
      )
      /** Former keys first, so that each is followed by the one after it. */
      const announceAll = inTransaction(
        Effect.andThen(
          epochs.lock,
          Effect.forEach(held.toReversed(), (key) => announce(key, didOf(host!)), { discard: true })
        )
      ).pipe(Effect.provideService(SqlClient.SqlClient, sql), Effect.provideService(Epochs, epochs))
      if (isEnabled) {
        yield* announceAll
        yield* read
        yield* reconciler({ id: "receipts-keys", every: readEvery, turn: read })
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
