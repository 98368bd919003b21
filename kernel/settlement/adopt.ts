// A transaction of ours whose record was lost, known again by what it did. When the ledger says that an authorization
// is spent and no settlement is stored for it, the ledger in which it was spent is looked through; a successful
// transaction of one of our channels that carries exactly this authorization and moved what was promised is stored as
// the settlement it was (decisions 3). Anything else was somebody else's doing. The ledger does not change its mind, so
// a "no" is remembered for a while.
import { StrKey, xdr } from "@stellar/stellar-sdk/base"
import { Effect, Option, Semaphore } from "effect"
import { type Envelope, encodeEnvelope } from "../ledger/Envelope.ts"
import type { ExecutedTransaction } from "../ledger/Executed.ts"
import { LedgerRpc } from "../ledger/LedgerRpc.ts"
import { LedgerUnavailable } from "../ledger/LedgerUnavailable.ts"
import { Signer } from "../signer/Signer.ts"
import { type AdoptedSettlement, Settlements } from "./Settlements.ts"

/** A payment whose authorization is spent, and how its scheme reads the ledger. */
export interface AdoptionRequest {
  readonly settlement: Pick<
    AdoptedSettlement,
    | "id"
    | "network"
    | "scheme"
    | "authorizationKey"
    | "fingerprint"
    | "principal"
    | "identifier"
    | "payer"
    | "payTo"
    | "asset"
    | "amount"
    | "resourceUrl"
  >
  readonly usedIn: Effect.Effect<Option.Option<number>, LedgerUnavailable>
  readonly keysIn: (operationXdr: Uint8Array) => ReadonlyArray<string>
  readonly moved: (executed: ExecutedTransaction) => bigint | undefined
}

/** Authorizations remembered as spent elsewhere. */
const elsewhereMax = 1_000
/** Ledgers looked through at a time: such a look is dear, and asking for it is not. */
const looksMax = 2

/** The inner transaction of a fee bump, when one of our channels is its source. */
const ofOurs = (envelope: Envelope, channels: ReadonlyArray<string>) => {
  if (envelope.type !== 5) return undefined
  const { tx } = envelope.feeBump.tx.innerTx.v1
  if (tx.sourceAccount.type !== 0) return undefined
  const channel = StrKey.encodeEd25519PublicKey(tx.sourceAccount.ed25519 as Uint8Array)
  return channels.includes(channel) ? { tx, channel, feeStroops: envelope.feeBump.tx.fee } : undefined
}

const ledgerMaxOf = (cond: xdr.PreconditionsWire): number | undefined =>
  cond.type === 2 ? cond.v2.ledgerBounds?.maxLedger : undefined

export const makeAdopter = Effect.gen(function* () {
  const rpc = yield* LedgerRpc
  const signer = yield* Signer
  const settlements = yield* Settlements
  const looking = yield* Semaphore.make(looksMax)
  const elsewhere = new Set<string>()

  const look = Effect.fnUntraced(function* ({ keysIn, moved, settlement, usedIn }: AdoptionRequest) {
    const ledger = yield* usedIn
    // The node that refused it as spent knew more than this one: nothing can be said now.
    const behind = new LedgerUnavailable({
      operation: "getTransactions",
      message: "the node does not know yet where the authorization was used"
    })
    if (Option.isNone(ledger)) return yield* behind
    const { found, scannedTo } = yield* rpc.scan({
      fromLedger: ledger.value,
      toLedger: ledger.value,
      wanted: () => true
    })
    if (scannedTo < ledger.value) return yield* behind
    for (const { envelope, executed } of found) {
      const ours = ofOurs(envelope, signer.channels)
      const [operation] = ours?.tx.operations ?? []
      const amount = moved(executed)
      if (ours === undefined || operation === undefined || !executed.succeeded || amount === undefined) continue
      if (!keysIn(xdr.Operation.schema.encode(operation)).includes(settlement.authorizationKey)) continue
      const resourceFeeStroops = ours.tx.ext.v === 1 ? ours.tx.ext.sorobanData.resourceFee : 0n
      const adopted: AdoptedSettlement = {
        ...settlement,
        authorizationExpiresLedger: (ledgerMaxOf(ours.tx.cond) ?? executed.ledger + 1) - 1,
        innerHash: executed.innerHash,
        outerHash: executed.outerHash,
        envelope: encodeEnvelope(envelope),
        sponsor: signer.sponsor,
        channel: ours.channel,
        channelSequence: BigInt(ours.tx.seqNum),
        resourceFeeStroops,
        inclusionStroops: BigInt(ours.feeStroops) - resourceFeeStroops,
        ledger: executed.ledger,
        closedAtSeconds: executed.closedAtSeconds,
        feeChargedStroops: executed.feeChargedStroops,
        moved: amount
      }
      return adopted
    }
    return undefined
  })

  /**
   * True when a settlement of ours was found on the ledger and stored; false when the authorization was spent
   * elsewhere.
   */
  return Effect.fn("settlement.adopt")(function* (request: AdoptionRequest) {
    const { authorizationKey, network, scheme } = request.settlement
    const key = `${network} ${scheme} ${authorizationKey}`
    if (elsewhere.has(key)) return false
    const adopted = yield* looking.withPermits(1)(look(request))
    if (adopted !== undefined && (yield* settlements.adopt(adopted))) {
      yield* Effect.logWarning("a payment whose record was lost was found on the ledger and stored again").pipe(
        Effect.annotateLogs({ settlement: adopted.id, transaction: adopted.innerHash })
      )
      return true
    }
    const [oldest] = elsewhere
    if (elsewhere.size >= elsewhereMax && oldest !== undefined) elsewhere.delete(oldest)
    elsewhere.add(key)
    return false
  })
})
