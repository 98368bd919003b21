// Who pays the reserve of a new entry: its owner, or the account that began to sponsor the owner earlier in the same
// transaction. Sponsorships in effect live only as long as the transaction; what they sponsored stays recorded in the
// entries. Every function either changes all accounts concerned or none, and says why not.
import type { AccountEntry, LedgerEntry } from "../engine/xdr/Xdr.ts"
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

const changed = (account: AccountEntry, key: "numSponsoring" | "numSponsored", by: number): AccountEntry =>
  withExtV2(account, (v2) => ({ ...v2, [key]: v2[key] + by }))

const canSponsor = (context: ApplyContext, sponsor: AccountEntry, reserves: number): ReserveOutcome => {
  const reserve = context.ledger.settings.baseReserveStroops
  if (availableBalance(sponsor, reserve) < BigInt(reserves) * reserve) return "lowReserve"
  return sponsoringFits(sponsor, reserves) ? "ok" : "tooManySponsoring"
}

/** Creates an account entry; its own balance must cover its reserve unless somebody sponsors it. */
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
  txn.putAccount(changed(sponsor, "numSponsoring", 2))
  txn.put({
    ...entry,
    data: { type: 0, account: changed(account, "numSponsored", 2) },
    ext: { v: 1, v1: { sponsoringId: sponsorId, ext: { v: 0 } } }
  })
  return "ok"
}

/** Creates a trustline or data entry of `owner`, which must have been loaded. */
export const createSubentry = (context: ApplyContext, owner: AccountEntry, entry: LedgerEntry): ReserveOutcome => {
  const { txn } = context
  const reserve = context.ledger.settings.baseReserveStroops
  if (!subentriesFit(owner, 1)) return "tooManySubentries"
  const sponsorId = context.sponsorships.sponsorOf(owner.accountId)
  if (sponsorId === undefined) {
    if (availableBalance(owner, reserve) < reserve) return "lowReserve"
    txn.putAccount({ ...owner, numSubEntries: owner.numSubEntries + 1 })
    txn.put(entry)
    return "ok"
  }
  const sponsor = txn.loadAccount(sponsorId)!
  const able = canSponsor(context, sponsor, 1)
  if (able !== "ok") return able
  txn.putAccount(changed(sponsor, "numSponsoring", 1))
  txn.putAccount(changed({ ...owner, numSubEntries: owner.numSubEntries + 1 }, "numSponsored", 1))
  txn.put({ ...entry, ext: { v: 1, v1: { sponsoringId: sponsorId, ext: { v: 0 } } } })
  return "ok"
}

/** Gives back the reserve of a subentry that is about to be erased. */
export const removeSubentry = (context: ApplyContext, owner: AccountEntry, entry: LedgerEntry): void => {
  const { txn } = context
  const smaller = { ...owner, numSubEntries: owner.numSubEntries - 1 }
  const sponsorId = entry.ext.v === 1 ? entry.ext.v1.sponsoringId : null
  if (sponsorId === null) {
    txn.putAccount(smaller)
    return
  }
  txn.putAccount(changed(smaller, "numSponsored", -1))
  txn.putAccount(changed(txn.loadAccount(sponsorId)!, "numSponsoring", -1))
}

/** Gives back the two reserves of an account entry that is about to be erased. */
export const removeAccount = (context: ApplyContext, entry: LedgerEntry): void => {
  const sponsorId = entry.ext.v === 1 ? entry.ext.v1.sponsoringId : null
  if (sponsorId !== null) context.txn.putAccount(changed(context.txn.loadAccount(sponsorId)!, "numSponsoring", -2))
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
  txn.putAccount(changed(sponsor, "numSponsoring", 1))
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
    txn.putAccount(changed(sponsor, "numSponsoring", -1))
  }
  return owner.ext.v === 1 && owner.ext.v1.ext.v === 2
    ? withExtV2(smaller, (v2) => ({
        ...v2,
        signerSponsoringIDs: rest,
        numSponsored: numSponsored(owner) - (sponsorId === null ? 0 : 1)
      }))
    : smaller
}
