// Claimable balances as entries: amounts without a holder until one of up to ten claimants takes them. The payer of the
// reserve is the entry's sponsor. A balance of an asset that its issuer may claw back is marked so when created.
import { EntryType } from "../engine/xdr/types.ts"
import { codec, type LedgerEntry, type LedgerKey } from "../engine/xdr/Xdr.ts"
import type { ApplyContext } from "./Context.ts"
import type { ClaimableBalanceEntry, ClaimableBalanceId } from "./Wire.ts"

const CLAWBACK_ENABLED = 1

export const balanceKey = (balanceId: ClaimableBalanceId): LedgerKey => ({ type: 4, claimableBalance: { balanceId } })

/** The id of the balance that this operation creates: it follows from the transaction's source, number and place. */
export const createdBalanceId = ({ ledger, frame, index }: ApplyContext): ClaimableBalanceId => ({
  type: 0,
  v0: ledger.crypto.sha256(
    codec.HashIdPreimage.encode({
      type: 6,
      operationId: { sourceAccount: frame.source, seqNum: frame.tx.seqNum, opNum: index }
    })
  )
})

/** The entry of a new balance, which its sponsor completes. */
export const balanceEntry = (
  lastModifiedLedgerSeq: number,
  balance: Omit<ClaimableBalanceEntry, "ext">,
  isClawbackEnabled: boolean
): LedgerEntry => ({
  lastModifiedLedgerSeq,
  data: {
    type: 4,
    claimableBalance: {
      ...balance,
      ext: isClawbackEnabled ? { v: 1, v1: { ext: { v: 0 }, flags: CLAWBACK_ENABLED } } : { v: 0 }
    }
  },
  ext: { v: 0 }
})

export const balanceOf = (entry: LedgerEntry | undefined): ClaimableBalanceEntry | undefined =>
  entry?.data.type === EntryType.claimableBalance ? entry.data.claimableBalance : undefined

export const mayBeClawedBack = ({ ext }: ClaimableBalanceEntry): boolean =>
  ext.v === 1 && (ext.v1.flags & CLAWBACK_ENABLED) !== 0
