// RevokeSponsorship: the payer of an entry's or a signer's reserve stops paying. The reserve passes to the source's
// sponsor at this point of the transaction, otherwise to the owner; a claimable balance does not have an owner and can
// only be transferred.
import { AssetType, EntryType } from "../../engine/xdr/types.ts"
import type { LedgerKey } from "../../engine/xdr/Xdr.ts"
import { isAssetValid, isTextValid } from "../assetRules.ts"
import { isIssuer } from "../ClassicEvents.ts"
import { inner, type OperationRules } from "../Context.ts"
import { reserveFailure } from "../reserves.ts"
import { Threshold } from "../Signatures.ts"
import { handOverEntry, handOverSigner } from "../sponsorshipTransfer.ts"
import { OperationType } from "../Wire.ts"

const Code = {
  success: 0,
  doesNotExist: -1,
  notSponsor: -2,
  lowReserve: -3,
  onlyTransferable: -4,
  malformed: -5
} as const
const result = (code: number) => inner(OperationType.revokeSponsorship, code)

const Subject = { entry: 0, signer: 1 } as const

const isKeyValid = (key: LedgerKey): boolean => {
  switch (key.type) {
    case EntryType.account:
    case EntryType.claimableBalance:
      return true
    case EntryType.trustLine: {
      const { accountId, asset } = key.trustLine
      if (asset.type === AssetType.poolShare) return true
      return asset.type !== AssetType.native && isAssetValid(asset) && !isIssuer(accountId, asset)
    }
    case EntryType.offer:
      return key.offer.offerId > 0n
    case EntryType.data:
      return key.data.dataName.bytes.length >= 1 && isTextValid(key.data.dataName.bytes)
    default:
      return false
  }
}

export const revokeSponsorship: OperationRules<18> = {
  threshold: Threshold.medium,
  check: ({ revokeSponsorshipOp: op }) =>
    op.type === Subject.entry && !isKeyValid(op.ledgerKey) ? Code.malformed : Code.success,
  apply: ({ revokeSponsorshipOp: op }, context) => {
    const entry = op.type === Subject.entry ? context.txn.load(op.ledgerKey) : undefined
    const outcome =
      op.type === Subject.signer
        ? handOverSigner(context, op.signer.accountId, op.signer.signerKey)
        : entry && handOverEntry(context, entry, op.ledgerKey)
    switch (outcome) {
      case undefined:
        return result(Code.doesNotExist)
      case "ok":
        return result(Code.success)
      case "notSponsor":
        return result(Code.notSponsor)
      case "onlyTransferable":
        return result(Code.onlyTransferable)
      default:
        return reserveFailure(outcome, result(Code.lowReserve))
    }
  }
}
