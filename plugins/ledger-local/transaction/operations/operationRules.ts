// The operations that this ledger supports, by kind. An operation that is missing here, or that its validators have
// switched off, is answered "not supported", like an operation that the network's protocol version does not have.
import { OperationType } from "../Wire.ts"
import type { LedgerContext, OperationRules } from "../Context.ts"
import { isSwitchedOff, PoolSwitch } from "../exchange/Pools.ts"
import { Threshold } from "../Signatures.ts"
import type { OperationBody } from "../Wire.ts"
import { accountMerge } from "./accountMerge.ts"
import { bumpSequence } from "./bumpSequence.ts"
import { changeTrust } from "./changeTrust.ts"
import { claimClaimableBalance } from "./claimClaimableBalance.ts"
import { clawback } from "./clawback.ts"
import { clawbackClaimableBalance } from "./clawbackClaimableBalance.ts"
import { createAccount } from "./createAccount.ts"
import { createClaimableBalance } from "./createClaimableBalance.ts"
import { extendFootprintTtl } from "./extendFootprintTtl.ts"
import { invokeHostFunction } from "./invokeHostFunction.ts"
import { liquidityPoolDeposit } from "./liquidityPoolDeposit.ts"
import { liquidityPoolWithdraw } from "./liquidityPoolWithdraw.ts"
import { createPassiveSellOffer, manageBuyOffer, manageSellOffer } from "./manageOffer.ts"
import { manageData } from "./manageData.ts"
import { pathPaymentStrictReceive, pathPaymentStrictSend } from "./pathPayment.ts"
import { payment } from "./payment.ts"
import { restoreFootprint } from "./restoreFootprint.ts"
import { revokeSponsorship } from "./revokeSponsorship.ts"
import { setOptions } from "./setOptions.ts"
import { beginSponsoring, endSponsoring } from "./sponsoring.ts"
import { allowTrust, setTrustLineFlags } from "./trustFlags.ts"

type AnyRules = OperationRules<OperationBody["type"]>

const rules = new Map<OperationBody["type"], unknown>([
  [0, createAccount],
  [1, payment],
  [2, pathPaymentStrictReceive],
  [3, manageSellOffer],
  [4, createPassiveSellOffer],
  [5, setOptions],
  [6, changeTrust],
  [7, allowTrust],
  [8, accountMerge],
  [10, manageData],
  [11, bumpSequence],
  [12, manageBuyOffer],
  [13, pathPaymentStrictSend],
  [14, createClaimableBalance],
  [15, claimClaimableBalance],
  [16, beginSponsoring],
  [17, endSponsoring],
  [18, revokeSponsorship],
  [19, clawback],
  [20, clawbackClaimableBalance],
  [21, setTrustLineFlags],
  [22, liquidityPoolDeposit],
  [23, liquidityPoolWithdraw],
  [24, invokeHostFunction],
  [25, extendFootprintTtl],
  [26, restoreFootprint]
])

const rulesOf = ({ type }: OperationBody): AnyRules | undefined => rules.get(type) as AnyRules | undefined

/** The flag of the ledger's header with which validators switch an operation off. */
const switches = new Map<OperationBody["type"], number>([
  [OperationType.liquidityPoolDeposit, PoolSwitch.deposit],
  [OperationType.liquidityPoolWithdraw, PoolSwitch.withdrawal]
])

/** The rules for an operation, or nothing when this ledger does not support it. */
export const supportedRules = (body: OperationBody, ledger: LedgerContext): AnyRules | undefined =>
  isSwitchedOff(ledger, switches.get(body.type) ?? 0) ? undefined : rulesOf(body)

/** The weight required of the source's signers, also for an operation that this ledger no longer supports. */
export const thresholdOf = (body: OperationBody): Threshold => {
  const unsupported = body.type === OperationType.inflation ? Threshold.low : Threshold.medium
  const threshold = rulesOf(body)?.threshold ?? unsupported
  return typeof threshold === "function" ? threshold(body as never) : threshold
}
