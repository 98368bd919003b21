// The sponsor's own transactions, journaled before they are sent and followed to their outcome like settlements. A
// unique index allows only one open transaction at a time, so the sponsor's sequence number is never guessed and two
// replicas never both use it. If no ledger of a transaction's life includes it, the next one bids higher; after a
// failure there is a pause.
import { Context, Effect, Layer, Option, Result } from "effect"
import { Base64 } from "effect/encoding"
import type { SqlError } from "effect/sql"
import { LedgerClock } from "../../ledger/LedgerClock.ts"
import { LedgerRpc, type LedgerUnavailable } from "../../ledger/LedgerRpc.ts"
import { withinLedgerBound } from "../../ledger/withinLedgerBound.ts"
import { Signer, type SignerRefused, sponsorStroopsPerOperationMax } from "../../signer/Signer.ts"
import { decodeEnvelope, plainIn, type SponsorOperation, sponsorTransaction } from "../../stellar/Envelope.ts"
import { type OpenTransaction, SponsorJournal } from "./SponsorJournal.ts"
import { withSpanIfSampled } from "../../effect/withSpanIfSampled.ts"

/** Ledgers that a sponsor transaction may wait for its inclusion. */
const lifeLedgers = 30
/**
 * Bid for each operation: ten times the network's minimum, ten times more after each expired transaction, up to the
 * signer's limit.
 */
const feeStroopsMin = 1_000n

const bidAfter = (expired: number): bigint => {
  const stroops = feeStroopsMin * 10n ** BigInt(expired)
  return stroops < sponsorStroopsPerOperationMax ? stroops : sponsorStroopsPerOperationMax
}

const sequenceOf = ({ envelope }: OpenTransaction) =>
  Effect.map(Effect.orDie(decodeEnvelope(Base64.encode(envelope))), (decoded) => {
    const transaction = plainIn(decoded)
    return transaction === undefined ? undefined : BigInt(transaction.seqNum)
  })

const failedWarning = Effect.logWarning(
  "a transaction of the sponsor failed on the ledger and cost its fee; it is repeated after a pause, and channels " +
    "that it creates or funds are not ready until one succeeds"
)

type ErrorBody = SqlError.SqlError | LedgerUnavailable | SignerRefused

export class SponsorTransactions extends Context.Service<
  SponsorTransactions,
  {
    /** Follows the open transaction, if any; returns true once none is open. Sends it again while it may still land. */
    readonly settleOpen: Effect.Effect<boolean, ErrorBody>
    readonly last: SponsorJournal["Service"]["last"]
    /**
     * Records and sends a transaction. Does nothing while another is open, soon after a failure, if a channel to merge
     * is in use, or if a transaction newer than `after` exists: then the decision was made without its effect.
     */
    readonly submit: (
      purpose: string,
      operations: ReadonlyArray<SponsorOperation>,
      after: string | undefined
    ) => Effect.Effect<void, ErrorBody>
  }
>()("tollkeeper/settlement/channels/SponsorTransactions") {
  static readonly layer = Layer.effect(
    SponsorTransactions,
    Effect.gen(function* () {
      const journal = yield* SponsorJournal
      const rpc = yield* LedgerRpc
      const signer = yield* Signer
      const clock = yield* LedgerClock
      const believed = (latestLedger: number) => withinLedgerBound(clock, latestLedger)

      /** Older than the node's history: the sponsor's number shows whether it landed. Its cost stays unknown. */
      const endForgotten = Effect.fnUntraced(function* (open: OpenTransaction) {
        const own = yield* sequenceOf(open)
        const { accounts, latestLedger } = yield* rpc.accounts([signer.sponsor])
        const sequence = accounts.get(signer.sponsor)?.sequence
        if (own === undefined || (yield* believed(latestLedger)) < Number(open.ledger_max)) return false
        const isUsed = sequence !== undefined && sequence >= own
        yield* isUsed ? journal.end(open.hash, "landed", null, null) : journal.end(open.hash, "expired", 0n, null)
        return true
      })

      const follow = Effect.fnUntraced(function* (open: OpenTransaction) {
        const answer = yield* rpc.transaction(open.hash)
        if (answer._tag === "Included") {
          const { feeChargedStroops, ledger, succeeded } = answer.executed
          yield* journal.end(open.hash, succeeded ? "landed" : "failed", feeChargedStroops, ledger)
          if (!succeeded) yield* Effect.annotateLogs(failedWarning, { transaction: open.hash, ledger })
          return true
        }
        const ledgerMax = Number(open.ledger_max)
        const hasPassed = (yield* believed(answer.latestLedger)) >= ledgerMax
        if (hasPassed && answer.oldestLedger <= ledgerMax - lifeLedgers) {
          yield* journal.end(open.hash, "expired", 0n, null)
          return true
        }
        if (hasPassed) return yield* endForgotten(open)
        yield* rpc.send(Base64.encode(open.envelope), open.hash)
        return false
      })

      const settleOpen = Effect.flatMap(
        journal.open,
        Option.match({ onNone: () => Effect.succeed(true), onSome: follow })
      ).pipe(withSpanIfSampled("SponsorTransactions.settleOpen"))

      const submit = Effect.fnUntraced(function* (
        purpose: string,
        operations: ReadonlyArray<SponsorOperation>,
        after: string | undefined
      ) {
        const { accounts, latestLedger } = yield* rpc.accounts([signer.sponsor])
        const account = Option.fromUndefinedOr(accounts.get(signer.sponsor))
        const expired = yield* journal.expiredOfLate
        if (Option.isNone(account) || Option.isNone(expired)) return
        const ledgerMax = (yield* believed(latestLedger)) + lifeLedgers
        const transaction = sponsorTransaction({
          channel: signer.sponsor,
          sequence: account.value.sequence + 1n,
          bounds: { ledgerMax, timeMax: 0n },
          feeStroopsPerOperation: bidAfter(expired.value),
          operations
        })
        const signed = yield* signer.signSponsor(transaction)
        const merged = operations.flatMap((one) => (one._tag === "Merge" ? [one.account] : []))
        const envelope = Result.getOrThrow(Base64.decode(signed.envelope))
        // Another replica may have an open transaction, and this one would use the same number.
        if (yield* journal.record({ hash: signed.hash, purpose, envelope, ledgerMax, merged, after }))
          yield* rpc.send(signed.envelope, signed.hash)
      }, withSpanIfSampled("SponsorTransactions.submit"))

      return SponsorTransactions.of({ settleOpen, last: journal.last, submit })
    })
  ).pipe(Layer.provide(SponsorJournal.layer))
}
