// Clawback: an issuer takes its asset back from a trustline that was opened under its clawback flag, authorized or not.
import { AccountType, AssetType } from "../../engine/xdr/types.ts"
import { TrustFlag, trustLiabilities } from "../Accounts.ts"
import { isAssetValid } from "../assetRules.ts"
import { isIssuer } from "../ClassicEvents.ts"
import { inner, type OperationRules } from "../Context.ts"
import { accountOf } from "../Frame.ts"
import { Threshold } from "../Signatures.ts"
import { OperationType } from "../Wire.ts"
import { equalBytes } from "../../engine/xdr/Xdr.ts"

const Code = { success: 0, malformed: -1, notEnabled: -2, noTrust: -3, underfunded: -4 } as const
const result = (code: number) => inner(OperationType.clawback, code)

export const clawback: OperationRules<19> = {
  threshold: Threshold.medium,
  check: ({ clawbackOp: { asset, amount, from } }, { source }) => {
    const bad =
      (from.type === AccountType.ed25519 && equalBytes(from.ed25519, source.ed25519)) ||
      amount < 1n ||
      asset.type === AssetType.native ||
      !isAssetValid(asset) ||
      !isIssuer(source, asset)
    return bad ? Code.malformed : 0
  },
  apply: ({ clawbackOp: { asset, amount, from } }, { txn, events }) => {
    const holder = accountOf(from)
    const line = txn.loadTrustLine(holder, asset)
    if (line === undefined) return result(Code.noTrust)
    if ((line.flags & TrustFlag.clawbackEnabled) === 0) return result(Code.notEnabled)
    const balance = line.balance - amount
    if (balance < trustLiabilities(line).selling) return result(Code.underfunded)
    txn.putTrustLine({ ...line, balance })
    events.clawedBack(asset, from, amount)
    return result(Code.success)
  }
}
