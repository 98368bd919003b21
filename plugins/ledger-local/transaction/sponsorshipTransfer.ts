// Handing the reserve of something that exists from one payer to another: from its owner to a sponsor, back, or from
// one sponsor to the next. The new payer must be able to pay; either all counts move or none.
import { EntryType } from "../engine/xdr/types.ts"
import { equalBytes, type LedgerEntry, type LedgerKey, type PublicKey } from "../engine/xdr/Xdr.ts"
import { availableBalance, signerSponsors, withExtV2 } from "./Accounts.ts"
import type { ApplyContext } from "./Context.ts"
import { canSponsor, counted, type ReserveOutcome, reservesOf, sponsorOf } from "./reserves.ts"
import type { SignerKey } from "./Wire.ts"
import { compareSignerKeys } from "./signerKeys.ts"

/** Reasons for a refused transfer, in addition to a new payer's lack of funds. */
type Handover = ReserveOutcome | "notSponsor" | "onlyTransferable"

interface Reserve {
  /** The payer without a sponsor; absent for a claimable balance. */
  readonly owner: PublicKey | null
  readonly sponsor: PublicKey | null
  readonly reserves: number
}

const same = (a: PublicKey, b: PublicKey): boolean => equalBytes(a.ed25519, b.ed25519)

/** The account that owns an entry; a claimable balance does not have an owner. */
const ownerOf = ({ data }: LedgerEntry): PublicKey | null => {
  switch (data.type) {
    case EntryType.account:
      return data.account.accountId
    case EntryType.trustLine:
      return data.trustLine.accountId
    case EntryType.offer:
      return data.offer.sellerId
    case EntryType.data:
      return data.data.accountId
    default:
      return null
  }
}

/** The new payer: the source's sponsor now, unless that is the owner. */
const nextSponsor = ({ sponsorships, source }: ApplyContext, { owner, sponsor }: Reserve): PublicKey | null => {
  const next = sponsorships.sponsorOf(source)
  return next === undefined || same(next, owner ?? sponsor!) ? null : next
}

/** Moves the counts of accounts; the caller records the sponsor. */
const handOver = (context: ApplyContext, reserve: Reserve, to: PublicKey | null): Handover => {
  const { txn, ledger } = context
  const { owner, sponsor: from, reserves } = reserve
  if (to !== null) {
    const able = canSponsor(context, txn.loadAccount(to)!, reserves)
    if (able !== "ok") return able
    txn.putAccount(counted(txn.loadAccount(to)!, "numSponsoring", reserves))
    if (from === null) txn.putAccount(counted(txn.loadAccount(owner!)!, "numSponsored", reserves))
  } else if (from !== null) {
    const account = txn.loadAccount(owner!)!
    const { baseReserveStroops } = ledger.settings
    if (availableBalance(account, baseReserveStroops) < BigInt(reserves) * baseReserveStroops) return "lowReserve"
    txn.putAccount(counted(account, "numSponsored", -reserves))
  }
  if (from !== null) txn.putAccount(counted(txn.loadAccount(from)!, "numSponsoring", -reserves))
  return "ok"
}

/** Hands over an entry that is part of the unit of change already. */
export const handOverEntry = (context: ApplyContext, entry: LedgerEntry, key: LedgerKey): Handover => {
  const { txn, source } = context
  const reserve = { owner: ownerOf(entry), sponsor: sponsorOf(entry), reserves: reservesOf(entry) }
  if (!same(reserve.sponsor ?? reserve.owner!, source)) return "notSponsor"
  const to = nextSponsor(context, reserve)
  if (to === null && reserve.owner === null) return "onlyTransferable"
  const outcome = handOver(context, reserve, to)
  if (outcome === "ok" && (to !== null || reserve.sponsor !== null))
    txn.put({ ...txn.peek(key)!, ext: { v: 1, v1: { sponsoringId: to, ext: { v: 0 } } } })
  return outcome
}

/** Transfers one signer of an account; undefined when the signer does not exist. */
export const handOverSigner = (context: ApplyContext, owner: PublicKey, key: SignerKey): Handover | undefined => {
  const { txn, source } = context
  const account = txn.loadAccount(owner)
  const at = account?.signers.findIndex((known) => compareSignerKeys(known.key, key) === 0) ?? -1
  if (account === undefined || at < 0) return undefined
  const reserve = { owner, sponsor: signerSponsors(account)[at] ?? null, reserves: 1 }
  if (!same(reserve.sponsor ?? owner, source)) return "notSponsor"
  const to = nextSponsor(context, reserve)
  const outcome = handOver(context, reserve, to)
  if (outcome !== "ok" || (to === null && reserve.sponsor === null)) return outcome
  txn.putAccount(
    withExtV2(txn.loadAccount(owner)!, (v2) => ({
      ...v2,
      signerSponsoringIDs: v2.signerSponsoringIDs.map((id, i) => (i === at ? to : id))
    }))
  )
  return outcome
}
