// Bids for inclusion. A rebid is a new fee bump around the same inner transaction: the settlement's identity stays,
// only the bid rises. The inner transaction comes from the first recorded attempt. On another channel it is a different
// transaction with the same effect.
import { Effect } from "effect"
import { bumpedIn, decodeEnvelope, onAnotherChannel, preimageIn } from "../../stellar/Envelope.ts"
import type { InclusionFees } from "../../ledger/LedgerClock.ts"
import type { Signer } from "../../signer/Signer.ts"
import type { ChannelLease } from "../channels/ChannelStore.ts"
import type { OpenRecord } from "../store/Settlements.ts"

/**
 * First inclusion bid: the bid that recently sufficed for most, or the network's current fee; at least the minimum of a
 * fee bump, at most a tenth of the ceiling. Stroops.
 */
export const firstBid = ({ asked, p90 }: Pick<InclusionFees, "asked" | "p90">, ceiling: bigint): bigint => {
  const due = [2n * p90, asked, 200n].reduce((most, one) => (one > most ? one : most))
  const most = ceiling / 10n > 200n ? ceiling / 10n : 200n
  return due < most ? due : most
}

/** The settlement's recorded transaction, and the preimage of its hash signer: the same on each channel. */
const recordedTransaction = Effect.fnUntraced(function* (record: OpenRecord) {
  const first = record.attempts.find(({ kind }) => kind === "payment")
  if (first === undefined) return yield* Effect.die(new Error("a settlement without a payment attempt"))
  const envelope = yield* Effect.orDie(decodeEnvelope(first.envelope))
  const transaction = bumpedIn(envelope)
  if (transaction === undefined) return yield* Effect.die(new Error("an attempt that is no fee bump"))
  const preimage = preimageIn(envelope)
  return { transaction, ...(preimage && { preimage }) }
})

type SettlementSigner = Pick<Signer["Service"], "signSettlement">

export const rebid = Effect.fnUntraced(function* (
  signer: SettlementSigner,
  record: OpenRecord,
  inclusionStroops: bigint
) {
  return yield* signer.signSettlement({
    ...(yield* recordedTransaction(record)),
    channel: record.channel,
    scheme: record.scheme,
    inclusionStroops
  })
})

/** The settlement on another channel, with the bid of its newest attempt. */
export const signAnew = Effect.fnUntraced(function* (
  signer: SettlementSigner,
  record: OpenRecord,
  lease: ChannelLease
) {
  const recorded = yield* recordedTransaction(record)
  const inclusionStroops = record.attempts.findLast(({ kind }) => kind === "payment")!.inclusionStroops
  const signed = yield* signer.signSettlement({
    ...recorded,
    transaction: onAnotherChannel(recorded.transaction, lease.address, lease.sequence),
    channel: lease.address,
    scheme: record.scheme,
    inclusionStroops
  })
  return { kind: "payment" as const, inclusionStroops, ...signed }
})
