// Carries over into a new epoch the history of the keys, and the outcomes of a fork that no checkpoint covers.
import { Effect } from "effect"
import { Base64Url } from "effect/encoding"
import { SqlClient } from "effect/sql"
import { Config, didOf } from "../Config.ts"
import type { KeyEntry, KeyUse } from "../contract.ts"
import { type NewLeaf, Tree } from "./Tree.ts"

type TakenRow = Pick<NewLeaf, "entry"> & NonNullable<NewLeaf["outcome"]>

export const makeTakingOver = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const tree = yield* Tree
  const name = (yield* Config).host ?? ""

  /** Key entries for the whole history, in the order of the keys' times. */
  const keyEntries = Effect.map(
    sql<{ kid: string; purpose: KeyUse; public_key: Uint8Array; valid_from: Date; valid_until: Date | null }>`select
      kid, purpose, public_key, valid_from, valid_until from receipts_keys order by valid_from, valid_until, kid`,
    (rows) =>
      rows.flatMap((row): ReadonlyArray<KeyEntry> => {
        const entry = (event: KeyEntry["event"], at: Date): KeyEntry => ({
          event,
          kid: `${didOf(name)}#${row.kid}`,
          publicKey: Base64Url.encode(row.public_key),
          use: row.purpose,
          at: Math.floor(at.getTime() / 1_000)
        })
        const announced = entry("announced", row.valid_from)
        return row.valid_until === null ? [announced] : [announced, entry("retired", row.valid_until)]
      })
  )

  /** Removes the leaves of a fork that no checkpoint covers, and returns the outcomes among them for the next epoch. */
  const takeUnsigned = Effect.fnUntraced(function* (epoch: number) {
    const [row] = yield* sql<{ signed: bigint }>`select coalesce(max(size), 0)::int8 as signed
      from receipts_checkpoints where epoch = ${epoch}`
    const signed = Number(row!.signed)
    const taken = yield* sql<TakenRow>`with taken as (delete from receipts_leaves
        where epoch = ${epoch} and index >= ${signed} returning *)
      select entry, salt, record, encode(transaction, 'hex') as transaction, principal, payer, pay_to as "payTo"
      from taken where salt is not null order by index`
    yield* sql`delete from receipts_nodes where epoch = ${epoch} and (index + 1) * power(256, level) > ${signed}`
    yield* sql`delete from receipts_map where epoch = ${epoch} and index >= ${signed}`
    yield* sql`delete from receipts_map_pages where epoch = ${epoch} and size > ${signed}`
    yield* sql`update receipts_epochs set size = ${signed}, map_size = least(map_size, ${signed})
      where epoch = ${epoch}`
    yield* tree.forget
    return taken.map(({ entry, ...outcome }): NewLeaf => ({ entry, outcome }))
  })

  return { keyEntries, takeUnsigned }
})
