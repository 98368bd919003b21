// Begin and end of a sponsorship of future reserves, within one transaction. An account cannot sponsor while being
// sponsored, or the reverse; a sponsorship still open when the operations are done fails the transaction.
import { inner, type OperationRules } from "../Context.ts"
import { Threshold } from "../Signatures.ts"
import { OperationType } from "../Wire.ts"
import { equalBytes } from "../../engine/xdr/Xdr.ts"

const Begin = { success: 0, malformed: -1, alreadySponsored: -2, recursive: -3 } as const
const beginResult = (code: number) => inner(OperationType.beginSponsoring, code)

export const beginSponsoring: OperationRules<16> = {
  threshold: Threshold.medium,
  check: ({ beginSponsoringFutureReservesOp: { sponsoredId } }, { source }) =>
    equalBytes(sponsoredId.ed25519, source.ed25519) ? Begin.malformed : 0,
  apply: ({ beginSponsoringFutureReservesOp: { sponsoredId } }, { sponsorships, source }) => {
    if (sponsorships.sponsorOf(sponsoredId) !== undefined) return beginResult(Begin.alreadySponsored)
    if (sponsorships.sponsorOf(source) !== undefined || sponsorships.isSponsoring(sponsoredId))
      return beginResult(Begin.recursive)
    sponsorships.begin(sponsoredId, source)
    return beginResult(Begin.success)
  }
}

const End = { success: 0, notSponsored: -1 } as const

export const endSponsoring: OperationRules<17> = {
  threshold: Threshold.medium,
  check: () => 0,
  apply: (_body, { sponsorships, source }) =>
    inner(OperationType.endSponsoring, sponsorships.end(source) ? End.success : End.notSponsored)
}
