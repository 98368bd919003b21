// The payer of the reserve of a new entry: its owner, or the account that began to sponsor the owner earlier in the
// same transaction. Sponsorships in effect end with the transaction; the sponsored entries keep a record of them. Every
// function either changes all accounts concerned or none, and returns the reason for a refusal.
import { AssetType, EntryType } from "../engine/xdr/types.ts"
import type { AccountEntry, LedgerEntry, PublicKey } from "../engine/xdr/Xdr.ts"
import {
  availableBalance,
  minimumBalance,
  numSponsored,
  signerSponsors,
  sponsoringFits,
  subentriesFit,
  withExtV2
} from "./Accounts.ts"
import { type ApplyContext, outer } from "./Context.ts"
import { OpCode, type OperationResult, type Signer } from "./Wire.ts"

export type ReserveOutcome = "ok" | "lowReserve" | "tooManySubentries" | "tooManySponsoring"

/** The result of an operation that could not create an entry; `lowReserve` is the operation's own code. */
export const reserveFailure = (outcome: Exclude<ReserveOutcome, "ok">, lowReserve: OperationResult): OperationResult =>
  outcome === "lowReserve"
    ? lowReserve
    : outer(outcome === "tooManySubentries" ? OpCode.tooManySubentries : OpCode.tooManySponsoring)

/** Base reserves that an entry takes: two an account or a pool share, one each claimant of a balance, otherwise one. */
export const reservesOf = ({ data }: LedgerEntry): number => {
  switch (data.type) {
    case EntryType.account:
      return 2
    case EntryType.trustLine:
      return data.trustLine.asset.type === AssetType.poolShare ? 2 : 1
    case EntryType.claimableBalance:
      return data.claimableBalance.claimants.length
    default:
      return 1
  }
}

export const sponsorOf = (entry: LedgerEntry): PublicKey | null =>
  entry.ext.v === 1 ? entry.ext.v1.sponsoringId : null

/** The account with one of its two counts of sponsored reserves changed. */
export const counted = (account: AccountEntry, key: "numSponsoring" | "numSponsored", by: number): AccountEntry =>
  withExtV2(account, (v2) => ({ ...v2, [key]: v2[key] + by }))

const sponsoredBy = (sponsoringId: PublicKey): LedgerEntry["ext"] => ({ v: 1, v1: { sponsoringId, ext: { v: 0 } } })

/** True if an account can pay `count` more reserves of others. */
export const canSponsor = (context: ApplyContext, sponsor: AccountEntry, reserves: number): ReserveOutcome => {
  const reserve = context.ledger.settings.baseReserveStroops
  if (availableBalance(sponsor, reserve) < BigInt(reserves) * reserve) return "lowReserve"
  return sponsoringFits(sponsor, reserves) ? "ok" : "tooManySponsoring"
}

/** Creates an account entry; its own balance must cover its reserve unless it is sponsored. */
export const createAccount = (context: ApplyContext, account: AccountEntry): ReserveOutcome => {
  const { txn } = context
  const entry: LedgerEntry = { lastModifiedLedgerSeq: txn.ledgerSeq, data: { type: 0, account }, ext: { v: 0 } }
  const sponsorId = context.sponsorships.sponsorOf(account.accountId)
  if (sponsorId === undefined) {
    if (account.balance < minimumBalance(account, context.ledger.settings.baseReserveStroops)) return "lowReserve"
    txn.put(entry)
    return "ok"
  }
  const sponsor = txn.loadAccount(sponsorId)!
  const able = canSponsor(context, sponsor, 2)
  if (able !== "ok") return able
  txn.putAccount(counted(sponsor, "numSponsoring", 2))
  txn.put({
    ...entry,
    data: { type: 0, account: counted(account, "numSponsored", 2) },
    ext: sponsoredBy(sponsorId)
  })
  return "ok"
}

/** Creates a trustline, an offer or a data entry of `owner`, which must have been loaded. */
export const createSubentry = (context: ApplyContext, owner: AccountEntry, entry: LedgerEntry): ReserveOutcome => {
  const { txn } = context
  const reserve = context.ledger.settings.baseReserveStroops
  const reserves = reservesOf(entry)
  if (!subentriesFit(owner, reserves)) return "tooManySubentries"
  const larger = { ...owner, numSubEntries: owner.numSubEntries + reserves }
  const sponsorId = context.sponsorships.sponsorOf(owner.accountId)
  if (sponsorId === undefined) {
    if (availableBalance(owner, reserve) < BigInt(reserves) * reserve) return "lowReserve"
    txn.putAccount(larger)
    txn.put(entry)
    return "ok"
  }
  const sponsor = txn.loadAccount(sponsorId)!
  const able = canSponsor(context, sponsor, reserves)
  if (able !== "ok") return able
  txn.putAccount(counted(sponsor, "numSponsoring", reserves))
  txn.putAccount(counted(larger, "numSponsored", reserves))
  txn.put({ ...entry, ext: sponsoredBy(sponsorId) })
  return "ok"
}

/** Gives back the reserve of a subentry that is about to be erased. */
export const removeSubentry = (context: ApplyContext, owner: AccountEntry, entry: LedgerEntry): void => {
  const { txn } = context
  const reserves = reservesOf(entry)
  const smaller = { ...owner, numSubEntries: owner.numSubEntries - reserves }
  const sponsorId = sponsorOf(entry)
  if (sponsorId === null) {
    txn.putAccount(smaller)
    return
  }
  txn.putAccount(counted(smaller, "numSponsored", -reserves))
  txn.putAccount(counted(txn.loadAccount(sponsorId)!, "numSponsoring", -reserves))
}

/**
 * Creates a claimable balance, which does not have an owner: its creator sponsors it, or its creator's sponsor does.
 */
export const createBalance = (context: ApplyContext, creator: PublicKey, entry: LedgerEntry): ReserveOutcome => {
  const sponsor = context.txn.loadAccount(context.sponsorships.sponsorOf(creator) ?? creator)!
  const able = canSponsor(context, sponsor, reservesOf(entry))
  if (able === "ok") putSponsored(context, sponsor, entry)
  return able
}

/** Writes an entry without an owner with its sponsor, without asking whether the sponsor can pay. */
export const putSponsored = ({ txn }: ApplyContext, sponsor: AccountEntry, entry: LedgerEntry): void => {
  txn.putAccount(counted(sponsor, "numSponsoring", reservesOf(entry)))
  txn.put({ ...entry, ext: sponsoredBy(sponsor.accountId) })
}

/** Gives back what sponsoring an entry without another owner took: an account's own, or a claimable balance's. */
export const removeSponsored = ({ txn }: ApplyContext, entry: LedgerEntry): void => {
  const sponsorId = sponsorOf(entry)
  if (sponsorId !== null) txn.putAccount(counted(txn.loadAccount(sponsorId)!, "numSponsoring", -reservesOf(entry)))
}

/** Adds a signer at `at`; the account must have been loaded. */
export const createSigner = (
  context: ApplyContext,
  owner: AccountEntry,
  signer: Signer,
  at: number
): ReserveOutcome => {
  const { txn } = context
  const reserve = context.ledger.settings.baseReserveStroops
  if (!subentriesFit(owner, 1)) return "tooManySubentries"
  const sponsorId = context.sponsorships.sponsorOf(owner.accountId)
  const sponsors = [...signerSponsors(owner)]
  sponsors.splice(at, 0, sponsorId ?? null)
  const signers = [...owner.signers]
  signers.splice(at, 0, signer)
  const larger = { ...owner, signers, numSubEntries: owner.numSubEntries + 1 }
  const hasV2 = owner.ext.v === 1 && owner.ext.v1.ext.v === 2
  if (sponsorId === undefined) {
    if (availableBalance(owner, reserve) < reserve) return "lowReserve"
    txn.putAccount(hasV2 ? withExtV2(larger, (v2) => ({ ...v2, signerSponsoringIDs: sponsors })) : larger)
    return "ok"
  }
  const sponsor = txn.loadAccount(sponsorId)!
  const able = canSponsor(context, sponsor, 1)
  if (able !== "ok") return able
  txn.putAccount(counted(sponsor, "numSponsoring", 1))
  txn.putAccount(
    withExtV2(larger, (v2) => ({ ...v2, numSponsored: v2.numSponsored + 1, signerSponsoringIDs: sponsors }))
  )
  return "ok"
}

/** The account without the signer at `at`, its sponsor released. The caller writes the account. */
export const withoutSigner = (txn: ApplyContext["txn"], owner: AccountEntry, at: number): AccountEntry => {
  const sponsors = signerSponsors(owner)
  const sponsorId = sponsors[at] ?? null
  const smaller = {
    ...owner,
    signers: owner.signers.filter((_, i) => i !== at),
    numSubEntries: owner.numSubEntries - 1
  }
  const rest = sponsors.filter((_, i) => i !== at)
  if (sponsorId !== null) {
    const sponsor = txn.loadAccount(sponsorId)!
    txn.putAccount(counted(sponsor, "numSponsoring", -1))
  }
  return owner.ext.v === 1 && owner.ext.v1.ext.v === 2
    ? withExtV2(smaller, (v2) => ({
        ...v2,
        signerSponsoringIDs: rest,
        numSponsored: numSponsored(owner) - (sponsorId === null ? 0 : 1)
      }))
    : smaller
}
