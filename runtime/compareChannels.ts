// Compares the rows of channels with the deposits that justify them. A row lets its payer read receipts of claims.
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { readClaims, type StoredReceipt, type Wrong } from "./compareReceipts.ts"

const pageMax = 2_000

/** Reports deposits whose payer has no row. */
export const compareDeposits = Effect.fnUntraced(function* (receipts: ReadonlyArray<StoredReceipt>, wrong: Wrong) {
  const sql = yield* SqlClient.SqlClient
  const deposits = receipts.flatMap(({ jws }) => {
    const { action, channel, payer } = readClaims(jws) ?? {}
    return action === "deposit" && /^[0-9a-f]{64}$/.test(String(channel)) ? [{ channel, payer }] : []
  })
  if (deposits.length === 0) return
  const absent = yield* sql<{ channel: string; payer: string }>`select g.channel, g.payer
    from jsonb_to_recordset(${JSON.stringify(deposits)}::jsonb) as g (channel text, payer text)
    where not exists (select 1 from receipts_channels c
      where c.channel = decode(g.channel, 'hex') and c.payer = g.payer)`
  for (const { channel, payer } of absent) wrong("channel", channel, `payer ${payer}, who deposited, has no row`)
})

interface ChannelRow {
  readonly channel: string
  readonly payer: string
  readonly jws: string | null
  readonly isSettled: boolean
  readonly isErased: boolean
}

/** Reports rows without a deposit: a receipt, a settlement whose receipt was not made, or an erased receipt. */
export const compareChannels = Effect.fnUntraced(function* (wrong: Wrong) {
  const sql = yield* SqlClient.SqlClient
  let last = { channel: "", payer: "" }
  for (;;) {
    const rows = yield* sql<ChannelRow>`select encode(c.channel, 'hex') as channel, c.payer, r.jws,
        exists (select 1 from kernel_settlements s where s.inner_hash = encode(c.transaction, 'hex')
          and s.state = 'settled' and s.payer = c.payer and s.action->>'kind' = 'deposit'
          and s.action->>'channel' = encode(c.channel, 'hex')) as "isSettled",
        exists (select 1 from receipts_leaves l where l.erased_transaction = c.transaction) as "isErased"
      from receipts_channels c left join receipts_receipts r on r.transaction = c.transaction
      where (c.channel, c.payer) > (decode(${last.channel}, 'hex'), ${last.payer}) order by c.channel, c.payer
      limit ${pageMax}`
    for (const { channel, isErased, isSettled, jws, payer } of rows) {
      const claims = jws === null ? undefined : readClaims(jws)
      const isDeposit = claims?.action === "deposit" && claims["channel"] === channel && claims["payer"] === payer
      if (!isDeposit && !isErased && !isSettled) wrong("channel", channel, `payer ${payer} did not deposit into it`)
    }
    if (rows.length < pageMax) return
    last = rows.at(-1)!
  }
})
