// Prepare, sign, record: a verified payment becomes a settlement on a leased channel. One transaction stores the signed
// envelope and everything else before it can be sent; until then there is nothing to undo.
import { Clock, Effect } from "effect"
import { Limits } from "../../config/Limits.ts"
import { bidCeiling, Network } from "../../config/Network.ts"
import { settlementTransaction } from "../../stellar/Envelope.ts"
import { LedgerClock, type LedgerTime } from "../../ledger/LedgerClock.ts"
import { LedgerUnavailable } from "../../ledger/LedgerRpc.ts"
import { currentTraceParent } from "../../TraceParent.ts"
import { Crypto, newId } from "../../platform/Crypto.ts"
import type { QueueTicket } from "../../settlement/channels/ChannelPool.ts"
import type { ChannelLease } from "../../settlement/channels/ChannelStore.ts"
import { CrashPoints } from "../../settlement/CrashPoints.ts"
import { OwnerTags } from "../../settlement/OwnerTags.ts"
import { firstBid } from "../../settlement/follower/rebid.ts"
import { Settlements } from "../../settlement/store/Settlements.ts"
import { Signer } from "../../signer/Signer.ts"
import type { Payment } from "../Payment.ts"
import { isRefusal } from "../Refusal.ts"
import type { Prepared, Scheme, Verified } from "../Scheme.ts"
import { type RequestStart, deadlineOf } from "./waitForOutcome.ts"
import { withSpanIfSampled } from "../../effect/withSpanIfSampled.ts"

export interface SettlementContext {
  readonly payment: Payment
  readonly scheme: Scheme
  readonly verified: Verified
  /** The payment's place in the queue for a channel. */
  readonly ticket: QueueTicket
  readonly startedAt: RequestStart
  /** Time of the scheme's verification, Unix milliseconds. */
  readonly verifiedAt: number
}

/**
 * A second bound behind the ledger bound, seconds of the ledger's own time: even after a halt of some hours the network
 * still accepts the transaction.
 */
const timeNetSeconds = 86_400

const rotatedAway = new LedgerUnavailable({ operation: "sign", message: "the channel was retired by a key rotation" })

/** Builds and signs the envelope on the channel, with a first bid below the maximum bid. */
const makeSign = Effect.gen(function* () {
  const clock = yield* LedgerClock
  const crypto = yield* Crypto
  const ownerTags = yield* OwnerTags
  const signer = yield* Signer

  return Effect.fnUntraced(function* (
    settling: SettlementContext,
    prepared: Prepared,
    lease: ChannelLease,
    ledger: LedgerTime,
    mostBid: bigint
  ) {
    const { payment, scheme, verified } = settling
    const { fingerprint, principal, requirements } = payment
    // Identifies the owner later, if the record is lost.
    const preimage = ownerTags.preimageFor({ network: requirements.network, owner: principal.owner, fingerprint })
    const transaction = settlementTransaction({
      channel: lease.address,
      sequence: lease.sequence,
      operationXdr: prepared.operationXdr,
      sorobanDataXdr: prepared.sorobanDataXdr,
      bounds: {
        ledgerMax: verified.authorizationExpiresLedger + 1,
        timeMax: BigInt(ledger.closedAtSeconds + timeNetSeconds)
      },
      hashSigner: crypto.sha256(preimage)
    })
    const inclusionStroops = firstBid(yield* clock.fees, mostBid)
    // Keys were rotated since the lease, and the channel's key was removed.
    if (!signer.isOurs(lease.address)) return yield* rotatedAway
    const signed = yield* (
      signer
        .signSettlement({
          transaction,
          channel: lease.address,
          scheme: scheme.scheme,
          inclusionStroops,
          preimage
        })
        // A remote key that does not sign is an ordinary error before the record: nothing has happened.
        .pipe(
          Effect.catchTag("SignerRefused", (refused) => Effect.die(refused)),
          withSpanIfSampled("signer.sign")
        )
    )
    return { kind: "payment" as const, inclusionStroops, recordedLedger: ledger.sequence, ...signed }
  })
})

/** The fields of a new settlement that its payment determines. */
const termsOf = ({ payment, scheme, verified }: SettlementContext) => ({
  network: payment.requirements.network,
  scheme: scheme.scheme,
  authorizationKey: verified.authorizationKey,
  authorizationExpiresLedger: verified.authorizationExpiresLedger,
  fingerprint: payment.fingerprint,
  principal: payment.principal,
  identifier: payment.identifier,
  payer: verified.payer,
  payTo: verified.payTo,
  asset: verified.asset,
  amountMax: verified.amountMax,
  amount: verified.amount,
  resourceUrl: payment.resourceUrl,
  books: verified.books,
  resourceFeeStroops: verified.resourceFeeStroops
})

/**
 * A refusal if the payment has become too old by now; otherwise the result of recording it, and the envelope to send.
 */
export const makeRecordSettlement = Effect.gen(function* () {
  const clock = yield* LedgerClock
  const crypto = yield* Crypto
  const limits = yield* Limits
  const network = yield* Network
  const reached = yield* CrashPoints
  const settlements = yield* Settlements
  const sign = yield* makeSign

  return Effect.fnUntraced(function* (settling: SettlementContext, lease: ChannelLease) {
    const { payment, scheme, startedAt, verified, verifiedAt } = settling
    const leasedAt = yield* Clock.currentTimeMillis
    yield* reached("afterLease")
    const ledger = yield* clock.now
    const prepared = yield* scheme.prepare(payment, verified).pipe(withSpanIfSampled("payment.prepare"))
    if (isRefusal(prepared)) return prepared
    const mostBid = bidCeiling(network.feeCeilings(scheme.scheme), verified.resourceFeeStroops)
    const attempt = yield* sign(settling, prepared, lease, ledger, mostBid)
    const id = newId(crypto)
    yield* reached("beforeRecord")
    const recorded = yield* settlements
      .record({
        ...termsOf(settling),
        id,
        innerHash: attempt.innerHash,
        sponsor: attempt.sponsor,
        channel: lease,
        recordedLedger: ledger.sequence,
        deadlineAt: deadlineOf(startedAt.at, limits.settleTimeout),
        budgetStroops: verified.resourceFeeStroops + mostBid,
        attempt,
        steps: { askedAt: startedAt.at, verifiedAt, leasedAt },
        traceparent: yield* currentTraceParent
      })
      .pipe(withSpanIfSampled("settlement.record"))
    return { recorded, id, attempt: { ...attempt, number: 1 } }
  })
})
