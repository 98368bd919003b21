// A transaction of ours whose record was lost, known again by what it did. When the ledger says that an authorization
// is spent and no settlement is stored for it, the ledger in which its nonce was used is looked through; a transaction
// that is ours is stored as the settlement it was. Anything else was somebody else's doing. What used a nonce does not
// change, so it is remembered for a while, whatever authorizations are shown for that nonce; and nobody's looks crowd
// out another principal's.
import { Effect, Option, Semaphore } from "effect"
import { accountText } from "../stellar/Address.ts"
import { bumpIn, encodeEnvelope, ledgerMaxOf, resourceFeeOf, sourceOf, type Transaction } from "../stellar/Envelope.ts"
import { LedgerRpc } from "../ledger/LedgerRpc.ts"
import { LedgerUnavailable } from "../ledger/LedgerUnavailable.ts"
import { Signer } from "../signer/Signer.ts"
import { Authorizations, type Nonce, type Promised } from "./Authorizations.ts"
import { findSpending, ofOurs, type OwnAccounts, readSpending, type Spending } from "./findSpending.ts"
import { type AdoptAnswer, type AdoptedSettlement, Settlements } from "./Settlements.ts"
import { spanned } from "../spanned.ts"

/** A payment whose authorization is spent. */
export type AdoptionRequest = Pick<
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

/** Nonces of which it is remembered what used them. */
const rememberedMax = 1_000
/** Ledgers looked through at a time: such a look is dear, and asking for it is not. */
const looksMax = 2
/** Looks that one principal may wait for. */
const looksOfPrincipalMax = 4

const unknown = (message: string) => new LedgerUnavailable({ operation: "getTransactions", message })

/** The settlement that a transaction of ours was. */
const settlementOf = (
  request: AdoptionRequest,
  { envelope, executed }: Spending,
  inner: Transaction,
  moved: bigint
): AdoptedSettlement => {
  const resourceFeeStroops = resourceFeeOf(inner) ?? 0n
  const bump = bumpIn(envelope)
  return {
    ...request,
    authorizationExpiresLedger: (ledgerMaxOf(inner) ?? executed.ledger + 1) - 1,
    innerHash: executed.innerHash,
    outerHash: executed.outerHash,
    envelope: encodeEnvelope(envelope),
    sponsor: bump === undefined ? "" : accountText(bump.feeSource),
    channel: sourceOf(inner),
    channelSequence: BigInt(inner.seqNum),
    resourceFeeStroops,
    inclusionStroops: BigInt(bump?.fee ?? 0) - resourceFeeStroops,
    ledger: executed.ledger,
    closedAtSeconds: executed.closedAtSeconds,
    feeChargedStroops: executed.feeChargedStroops,
    moved
  }
}

/** What used a nonce, as the ledger shows it now. Not being shown it is no verdict. */
const lookUp = Effect.fnUntraced(function* (promised: Promised, nonce: Nonce, own: OwnAccounts) {
  const rpc = yield* LedgerRpc
  const { inLedger } = yield* rpc.nonceSpent(nonce.address, nonce.nonce)
  // The node that refused it as spent knew more than this one.
  if (Option.isNone(inLedger)) return yield* unknown("the node does not know yet where the authorization was used")
  const ledger = inLedger.value
  const { spending } = yield* findSpending({ promised, own, fromLedger: ledger, toLedger: ledger })
  return spending ?? (yield* unknown("the node does not show the transaction that used the authorization"))
}, spanned("settlement.lookUpSpending"))

/** The answer is `undefined` when the authorization was spent elsewhere. */
export const makeAdopter = Effect.gen(function* () {
  const signer = yield* Signer
  const settlements = yield* Settlements
  const authorizations = yield* Authorizations
  const services = yield* Effect.context<LedgerRpc | Authorizations>()
  const looking = yield* Semaphore.make(looksMax)
  const own = (): OwnAccounts => ({
    sponsor: signer.sponsor,
    channels: new Set([...signer.channels, ...signer.formerChannels])
  })
  const remembered = new Map<string, Spending>()
  const waiting = new Map<string, number>()

  const remember = (key: string, spending: Spending) => {
    const [oldest] = remembered.keys()
    if (remembered.size >= rememberedMax && oldest !== undefined) remembered.delete(oldest)
    remembered.set(key, spending)
  }

  const spendingOf = Effect.fnUntraced(function* (promised: Promised, nonce: Nonce, key: string, principal: string) {
    const mine = waiting.get(principal) ?? 0
    if (mine >= looksOfPrincipalMax) return yield* unknown("too many spent authorizations are being looked up")
    waiting.set(principal, mine + 1)
    const look = Effect.suspend(() => {
      const known = remembered.get(key)
      return known === undefined
        ? Effect.provideContext(lookUp(promised, nonce, own()), services)
        : Effect.succeed(known)
    })
    return yield* looking
      .withPermits(1)(look)
      .pipe(
        Effect.tap((spending) => Effect.sync(() => remember(key, spending))),
        Effect.ensuring(
          Effect.sync(() => {
            const left = (waiting.get(principal) ?? 1) - 1
            if (left === 0) waiting.delete(principal)
            else waiting.set(principal, left)
          })
        )
      )
  })

  return Effect.fnUntraced(function* (request: AdoptionRequest) {
    const nonce = authorizations.nonceOf(request)
    if (nonce === undefined) return undefined
    const key = `${request.network} ${nonce.address} ${nonce.nonce}`
    const found = remembered.get(key) ?? (yield* spendingOf(request, nonce, key, request.principal.source))
    // Read anew for each authorization: two of them may share a nonce, and at most one is what was used.
    const moved = readSpending(authorizations, found, request, own())?.moved
    const inner = ofOurs(found.envelope, own())
    if (moved === undefined || inner === undefined) return undefined
    const adopted = settlementOf(request, found, inner, moved)
    const answer: AdoptAnswer = yield* settlements.adopt(adopted)
    if (answer === "Adopted") {
      yield* Effect.logWarning("a payment whose record was lost was found on the ledger and stored again").pipe(
        Effect.annotateLogs({ settlement: adopted.id, transaction: adopted.innerHash })
      )
    }
    return answer === "TransactionTaken" ? undefined : answer
  }, spanned("settlement.adopt"))
})
