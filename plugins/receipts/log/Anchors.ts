// Anchors the log on the ledger, if `receipts.anchor` is on: a transaction of the sponsor, at most one an hour, has the
// hash of a checkpoint's signed text as its memo. The checkpoint is stored before the transaction is sent, and the
// transaction's purpose names the hash, so a crash or a second replica sends none twice. Payments use other accounts'
// sequence numbers and never wait for it.
import { Context, Duration, Effect, Layer, Option, Schema } from "effect"
import { Hex } from "effect/encoding"
import { SqlClient } from "effect/sql"
import { reconciler } from "../../../kernel/actor/Actor.ts"
import { Crypto } from "../../../kernel/platform/Crypto.ts"
import { SponsorTransactions } from "../../../kernel/settlement/sponsor/SponsorTransactions.ts"
import { Config } from "../Config.ts"
import { ReceiptKeys } from "../keys/ReceiptKeys.ts"
import { Checkpoints } from "./Checkpoints.ts"
import { partsOf } from "./note.ts"

/** Interval of turns while a transaction is open, and otherwise. */
const openEvery = Duration.seconds(5)
const restEvery = Duration.minutes(1)
/** Minimum interval of anchors. Each costs one fee. */
const anchoredEverySeconds = 3_600

const Anchor = Schema.Struct({
  account: Schema.String,
  transaction: Schema.String,
  ledger: Schema.Int,
  checkpoint: Schema.String
})

interface EpochRow {
  readonly epoch: number
  readonly anchoring: string | null
  readonly isDue: boolean
}

interface SentRow {
  readonly hash: string
  readonly sponsor: string
  readonly state: string
  readonly ledger: bigint | null
}

const makeAnchoring = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const crypto = yield* Crypto
  const transactions = yield* SponsorTransactions
  const { newest } = yield* Checkpoints

  /** The checkpoint to anchor; null if none is due. */
  const choose = Effect.fnUntraced(function* ({ anchoring, epoch, isDue }: EpochRow) {
    if (anchoring !== null || !isDue) return anchoring
    const checkpoint = yield* newest(epoch)
    if (Option.isNone(checkpoint)) return null
    const { note } = checkpoint.value
    yield* sql`update receipts_epochs set anchoring = ${note}, anchored_at = clock_timestamp()
      where epoch = ${epoch} and anchoring is null`
    return note
  })

  /** One turn: follows the open transaction, records a landed anchor, and sends the next one. */
  const turn = Effect.gen(function* () {
    if (!(yield* transactions.settleOpen)) return
    const last = yield* transactions.last
    const [row] = yield* sql<EpochRow>`select epoch, anchoring,
        coalesce(anchored_at < clock_timestamp() - ${anchoredEverySeconds} * interval '1 second', true) as "isDue"
      from receipts_epochs where fork is null and epoch = (select max(epoch) from receipts_epochs)`
    const note = row === undefined ? null : yield* choose(row)
    if (row === undefined || note === null) return
    const hash = crypto.sha256(new TextEncoder().encode(partsOf(note).body))
    const purpose = `anchor ${Hex.encode(hash)}`
    const [sent] = yield* sql<SentRow>`select hash, sponsor, state, ledger from kernel_sponsor_transactions
      where purpose = ${purpose} order by recorded_at desc limit 1`
    if (sent?.state === "landed") {
      const { hash: transaction, ledger, sponsor: account } = sent
      const anchor = JSON.stringify({ account, transaction, ledger: Number(ledger), checkpoint: note })
      yield* sql`update receipts_epochs set anchor = ${anchor}::jsonb, anchoring = null where epoch = ${row.epoch}`
      // A failed one has cost its fee: the next one waits for its hour.
    } else if (sent?.state === "failed")
      yield* sql`update receipts_epochs set anchoring = null where epoch = ${row.epoch} and anchoring = ${note}`
    else yield* transactions.submit(purpose, [{ _tag: "Anchor", hash }], last.hash)
  })
  return turn
})

export class Anchors extends Context.Service<
  Anchors,
  {
    readonly newest: () => typeof Anchor.Type | undefined
  }
>()("tollkeeper/receipts/Anchors") {
  static readonly layer = Layer.effect(
    Anchors,
    Effect.gen(function* () {
      const { isAnchored } = yield* Config
      let newest: typeof Anchor.Type | undefined
      if (!isAnchored || !(yield* ReceiptKeys).isEnabled) return Anchors.of({ newest: () => undefined })
      const sql = yield* SqlClient.SqlClient
      const anchor = yield* makeAnchoring
      let isOpen = true
      yield* reconciler({
        id: "receipts-anchors",
        every: Effect.sync(() => (isOpen ? openEvery : restEvery)),
        turn: Effect.gen(function* () {
          yield* anchor
          const [row] = yield* sql<{ anchor: unknown; isOpen: boolean }>`select anchor, exists (select 1
              from receipts_epochs where epoch = (select max(epoch) from receipts_epochs)
                and (anchoring is not null or anchored_at is null)) as "isOpen"
            from receipts_epochs order by anchor is null, epoch desc limit 1`
          newest = Option.getOrUndefined(Schema.decodeUnknownOption(Anchor)(row?.anchor))
          isOpen = row?.isOpen ?? true
        })
      })
      return Anchors.of({ newest: () => newest })
    })
  )
}
