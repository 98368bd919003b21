// The sponsor's own transactions in the database: recorded before they are sent, one open at a time by a unique index,
// and ended once.
import { Context, Data, Effect, Layer, Option } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { Network } from "../../config/Network.ts"
import { inTransaction } from "../../database/Database.ts"
import { Signer } from "../../signer/Signer.ts"

/** A failed transaction would fail again, so the next attempt waits. */
const restSeconds = 60

export interface OpenTransaction {
  readonly hash: string
  readonly envelope: Uint8Array
  readonly ledger_max: bigint
}

interface NewTransaction {
  readonly hash: string
  readonly purpose: string
  readonly envelope: Uint8Array
  readonly ledgerMax: number
  readonly merged: ReadonlyArray<string>
  /** The newest transaction at the time of the decision. */
  readonly after: string | undefined
}

/** Another transaction is open or came in between, or a channel to merge is in use again. */
class Superseded extends Data.TaggedError("Superseded")<{}> {}

type Sql<A> = Effect.Effect<A, SqlError.SqlError>

export class SponsorJournal extends Context.Service<
  SponsorJournal,
  {
    readonly open: Sql<Option.Option<OpenTransaction>>
    /** Ends the open transaction; its cost and its ledger, if available. */
    readonly end: (
      hash: string,
      state: "landed" | "failed" | "expired",
      feeStroops: bigint | null,
      ledger: number | null
    ) => Sql<void>
    /** The hash of the newest transaction, and the newest ledger that included any of them, or 0. */
    readonly last: Sql<{ readonly hash: string | undefined; readonly ledger: number }>
    /** The number of expired transactions in a row, among the last two; None shortly after a failure. */
    readonly expiredOfLate: Sql<Option.Option<number>>
    /**
     * Records a transaction and claims the channels it merges: they can be neither leased nor required again, and an
     * existing lease of one is lost. False if another transaction is open or came in between, or a channel is not idle.
     */
    readonly record: (transaction: NewTransaction) => Sql<boolean>
  }
>()("tollkeeper/settlement/channels/SponsorJournal") {
  static readonly layer = Layer.effect(
    SponsorJournal,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const network = yield* Network
      const signer = yield* Signer
      const own = () => sql`network = ${network.id} and sponsor = ${signer.sponsor}`

      const claim = Effect.fnUntraced(function* (merged: ReadonlyArray<string>) {
        if (merged.length === 0) return
        const claimed = yield* sql`update kernel_channels set state = 'merging', fence = fence + 1
          where address in ${sql.in(merged)} and state = 'retiring' and settlement is null
            and (leased_until is null or leased_until < clock_timestamp()) returning 1`
        if (claimed.length < merged.length) return yield* new Superseded()
      })
      const insert = ({ after, envelope, hash, ledgerMax, purpose }: NewTransaction) =>
        sql`insert into kernel_sponsor_transactions (hash, network, sponsor, purpose, envelope, ledger_max)
          select ${hash}, ${network.id}, ${signer.sponsor}, ${purpose}, ${envelope}::bytea, ${ledgerMax}::int8
          where ${after ?? null}::text is not distinct from
            (select hash from kernel_sponsor_transactions where ${own()} order by recorded_at desc limit 1)
          on conflict do nothing returning 1`

      return SponsorJournal.of({
        open: Effect.map(
          Effect.suspend(
            () => sql<OpenTransaction>`select hash, envelope, ledger_max from kernel_sponsor_transactions
            where ${own()} and state = 'open' order by recorded_at limit 1`
          ),
          ([row]) => Option.fromUndefinedOr(row)
        ),
        end: (hash, state, feeStroops, ledger) =>
          Effect.asVoid(sql`update kernel_sponsor_transactions
            set state = ${state}, fee_charged_stroops = ${feeStroops}::int8, ledger = ${ledger}::int8
            where hash = ${hash} and state = 'open'`),
        last: Effect.map(
          Effect.suspend(
            () => sql<{ hash: string; ledger: bigint | null }>`select hash,
              (select max(ledger) from kernel_sponsor_transactions where ${own()}) as ledger
            from kernel_sponsor_transactions where ${own()} order by recorded_at desc limit 1`
          ),
          ([row]) => ({ hash: row?.hash, ledger: Number(row?.ledger ?? 0n) })
        ),
        expiredOfLate: Effect.map(
          Effect.suspend(
            () => sql<{ state: string; fresh: boolean }>`select state,
              recorded_at > clock_timestamp() - make_interval(secs => ${restSeconds}) as fresh
            from kernel_sponsor_transactions where ${own()} order by recorded_at desc limit 2`
          ),
          (last) => {
            if (last[0]?.state === "failed" && last[0].fresh) return Option.none()
            const other = last.findIndex(({ state }) => state !== "expired")
            return Option.some(other < 0 ? last.length : other)
          }
        ),
        record: (transaction) =>
          inTransaction(
            Effect.gen(function* () {
              yield* claim(transaction.merged)
              if ((yield* insert(transaction)).length === 0) return yield* new Superseded()
              return true
            })
          ).pipe(
            Effect.provideService(SqlClient.SqlClient, sql),
            Effect.catchTag("Superseded", () => Effect.succeed(false))
          )
      })
    })
  )
}
