// The sponsor's own transactions, journaled before they are sent and followed to their end like settlements. At most
// one is open at a time, by a unique index, so the sponsor's sequence number is never guessed and two replicas never
// use it both. One that found no room in the ledgers of its life is bid for higher the next time; after one that failed
// there is a rest.
import { Context, Data, Effect, Layer, Option, Result } from "effect"
import { Base64 } from "effect/encoding"
import { SqlClient, type SqlError } from "effect/sql"
import { Network } from "../../config/Network.ts"
import { inTransaction } from "../../database/Database.ts"
import { decodeEnvelope, plainIn, type SponsorOperation, sponsorTransaction } from "../../stellar/Envelope.ts"
import { LedgerClock } from "../../ledger/LedgerClock.ts"
import { LedgerRpc } from "../../ledger/LedgerRpc.ts"
import type { LedgerUnavailable } from "../../ledger/LedgerUnavailable.ts"
import { notBeyond } from "../../ledger/notBeyond.ts"
import { Signer, type SignerRefused, sponsorStroopsPerOperationMax } from "../../signer/Signer.ts"

/** Ledgers a sponsor transaction may wait for its inclusion. */
const lifeLedgers = 30
/**
 * Offered for each operation: ten times the network's minimum, ten times more after each that expired, as far as this.
 */
const feeStroopsMin = 1_000n
/** What failed would fail again: the next attempt waits. */
const restSeconds = 60

/** Something else is open, or a channel to merge is used again. */
class Superseded extends Data.TaggedError("Superseded")<{}> {}

interface OpenRow {
  readonly hash: string
  readonly envelope: Uint8Array
  readonly ledger_max: bigint
}

type Fault = SqlError.SqlError | LedgerUnavailable | SignerRefused

export class SponsorTransactions extends Context.Service<
  SponsorTransactions,
  {
    /** Follows the open one, if any: true when none is open any more. Sends it again while it may still land. */
    readonly settleOpen: Effect.Effect<boolean, Fault>
    /** The newest one: its hash, and the newest ledger that any of them is known to have landed in, else 0. */
    readonly last: Effect.Effect<{ readonly hash: string | undefined; readonly ledger: number }, SqlError.SqlError>
    /**
     * Records and sends a transaction; does nothing while another is open, soon after one failed, when a channel to
     * merge is not idle, or when `after` is not the newest one any more: whoever decided has not seen what it did.
     */
    readonly submit: (
      purpose: string,
      operations: ReadonlyArray<SponsorOperation>,
      after: string | undefined
    ) => Effect.Effect<void, Fault>
  }
>()("tollkeeper/settlement/channels/SponsorTransactions") {
  static readonly layer = Layer.effect(
    SponsorTransactions,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const network = yield* Network
      const rpc = yield* LedgerRpc
      const signer = yield* Signer
      const clock = yield* LedgerClock
      const believed = (latestLedger: number) => Effect.provideService(notBeyond(latestLedger), LedgerClock, clock)

      const end = (
        hash: string,
        state: "landed" | "failed" | "expired",
        feeStroops: bigint | null,
        ledger: number | null
      ) =>
        sql`update kernel_sponsor_transactions
          set state = ${state}, fee_charged_stroops = ${feeStroops}::int8, ledger = ${ledger}::int8
          where hash = ${hash} and state = 'open'`

      /**
       * The node no longer remembers; the sponsor's sequence number tells whether it landed. What it cost is then not
       * known.
       */
      const endForgotten = Effect.fnUntraced(function* (open: OpenRow) {
        const envelope = yield* Effect.orDie(decodeEnvelope(Base64.encode(open.envelope)))
        const { accounts, latestLedger } = yield* rpc.accounts([signer.sponsor])
        const sequence = accounts.get(signer.sponsor)?.sequence
        const transaction = plainIn(envelope)
        if (transaction === undefined || (yield* believed(latestLedger)) < Number(open.ledger_max)) return false
        const isUsed = sequence !== undefined && sequence >= BigInt(transaction.seqNum)
        yield* isUsed ? end(open.hash, "landed", null, null) : end(open.hash, "expired", 0n, null)
        return true
      })

      const settleOpen = Effect.gen(function* () {
        const [open] = yield* sql<OpenRow>`select hash, envelope, ledger_max from kernel_sponsor_transactions
          where network = ${network.id} and sponsor = ${signer.sponsor} and state = 'open' order by recorded_at limit 1`
        if (open === undefined) return true
        const answer = yield* rpc.transaction(open.hash)
        if (answer._tag === "Included") {
          const { feeChargedStroops, ledger, succeeded } = answer.executed
          yield* end(open.hash, succeeded ? "landed" : "failed", feeChargedStroops, ledger)
          return true
        }
        const ledgerMax = Number(open.ledger_max)
        const hasPassed = (yield* believed(answer.latestLedger)) >= ledgerMax
        if (hasPassed && answer.oldestLedger <= ledgerMax - lifeLedgers) {
          yield* end(open.hash, "expired", 0n, null)
          return true
        }
        if (hasPassed) return yield* endForgotten(open)
        yield* rpc.send(Base64.encode(open.envelope), open.hash)
        return false
      }).pipe(Effect.withSpan("SponsorTransactions.settleOpen"))

      const last = Effect.map(
        sql<{ hash: string; ledger: bigint | null }>`select hash, (select max(ledger) from kernel_sponsor_transactions
            where network = ${network.id} and sponsor = ${signer.sponsor}) as ledger
          from kernel_sponsor_transactions where network = ${network.id} and sponsor = ${signer.sponsor}
          order by recorded_at desc limit 1`,
        ([row]) => ({ hash: row?.hash, ledger: Number(row?.ledger ?? 0n) })
      )

      /** What to offer for an operation; None while the last failure is fresh. */
      const bid = Effect.gen(function* () {
        const last = yield* sql<{
          state: string
          fresh: boolean
        }>`select state, recorded_at > clock_timestamp() - make_interval(secs => ${restSeconds}) as fresh
          from kernel_sponsor_transactions where network = ${network.id} and sponsor = ${signer.sponsor}
          order by recorded_at desc limit 2`
        if (last[0]?.state === "failed" && last[0].fresh) return Option.none()
        const landed = last.findIndex(({ state }) => state !== "expired")
        const stroops = feeStroopsMin * 10n ** BigInt(landed < 0 ? last.length : landed)
        return Option.some(stroops < sponsorStroopsPerOperationMax ? stroops : sponsorStroopsPerOperationMax)
      })

      /**
       * A channel that is being merged can be neither lent nor wanted again, and whoever still has a lease has lost it.
       */
      const claimMerged = Effect.fnUntraced(function* (operations: ReadonlyArray<SponsorOperation>) {
        const merged = operations.flatMap((one) => (one._tag === "Merge" ? [one.account] : []))
        if (merged.length === 0) return
        const claimed = yield* sql`update kernel_channels set state = 'merging', fence = fence + 1
          where address in ${sql.in(merged)} and state = 'retiring' and settlement is null
            and (leased_until is null or leased_until < clock_timestamp()) returning 1`
        if (claimed.length < merged.length) return yield* new Superseded()
      })

      const submit = Effect.fn("SponsorTransactions.submit")(function* (
        purpose: string,
        operations: ReadonlyArray<SponsorOperation>,
        after: string | undefined
      ) {
        const { accounts, latestLedger } = yield* rpc.accounts([signer.sponsor])
        const account = Option.fromUndefinedOr(accounts.get(signer.sponsor))
        const feeStroopsPerOperation = yield* bid
        if (Option.isNone(account) || Option.isNone(feeStroopsPerOperation)) return
        const ledgerMax = (yield* believed(latestLedger)) + lifeLedgers
        const transaction = sponsorTransaction({
          channel: signer.sponsor,
          sequence: account.value.sequence + 1n,
          bounds: { ledgerMax, timeMax: 0n },
          feeStroopsPerOperation: feeStroopsPerOperation.value,
          operations
        })
        const { envelope, hash } = yield* signer.signSponsor(transaction)
        const bytes = Result.getOrThrow(Base64.decode(envelope))
        const record = sql`insert into kernel_sponsor_transactions
            (hash, network, sponsor, purpose, envelope, ledger_max)
          select ${hash}, ${network.id}, ${signer.sponsor}, ${purpose}, ${bytes}::bytea, ${ledgerMax}::int8
          where ${after ?? null}::text is not distinct from (select hash from kernel_sponsor_transactions
            where network = ${network.id} and sponsor = ${signer.sponsor} order by recorded_at desc limit 1)
          on conflict do nothing returning 1`
        // Another replica may have one open, and this one would use the same number.
        yield* inTransaction(
          Effect.gen(function* () {
            yield* claimMerged(operations)
            if ((yield* record).length === 0) return yield* new Superseded()
          })
        ).pipe(
          Effect.provideService(SqlClient.SqlClient, sql),
          Effect.andThen(rpc.send(envelope, hash)),
          Effect.catchTag("Superseded", () => Effect.void)
        )
      })

      return SponsorTransactions.of({ settleOpen, last, submit })
    })
  )
}
