// Entries that the network has frozen (CAP-77), and the transactions that therefore may not enter a ledger: those that
// act for a frozen account, list a frozen key in their footprint, or move the balance of a frozen account or trustline.
// A transaction that the network has excepted by its hash may enter. Facts that appear only during application, such as
// the offers that an operation meets, are checked there.
import { AssetType } from "../engine/xdr/types.ts"
import { accountKeyString, keyString, type KeyString, trustLineKey } from "../engine/state/LedgerKeys.ts"
import type { NetworkSettings } from "../engine/state/NetworkSettings.ts"
import { type Asset, latin1, type PublicKey, type TrustLineAsset } from "../engine/xdr/Xdr.ts"
import { accountOf, type Frame, operationSource } from "./Frame.ts"
import { footprintKeysOf, sourceKeysOf } from "./keysOf.ts"
import { allowedAsset } from "./operations/trustFlags.ts"
import { type Operation, OperationType } from "./Wire.ts"

const line = (holder: PublicKey, asset: Asset | TrustLineAsset): ReadonlyArray<KeyString> =>
  asset.type === AssetType.native || asset.type === AssetType.poolShare
    ? []
    : [keyString(trustLineKey(holder, asset as TrustLineAsset))]

const account = (id: PublicKey): ReadonlyArray<KeyString> => [accountKeyString(id)]

/** Where something arrives: at the account, or on its trustline. */
const arrival = (holder: PublicKey, asset: Asset): ReadonlyArray<KeyString> =>
  asset.type === AssetType.native ? account(holder) : line(holder, asset)

/** The keys that an operation of `source` moves something at. */
const movedAt = ({ body }: Operation, source: PublicKey): ReadonlyArray<KeyString> => {
  switch (body.type) {
    case OperationType.createAccount:
      return account(body.createAccountOp.destination)
    case OperationType.payment: {
      const { asset, destination } = body.paymentOp
      return [...line(source, asset), ...arrival(accountOf(destination), asset)]
    }
    case OperationType.pathPaymentStrictReceive:
    case OperationType.pathPaymentStrictSend: {
      const { destAsset, destination, sendAsset } =
        body.type === OperationType.pathPaymentStrictSend
          ? body.pathPaymentStrictSendOp
          : body.pathPaymentStrictReceiveOp
      return [...line(source, sendAsset), ...arrival(accountOf(destination), destAsset)]
    }
    case OperationType.manageSellOffer:
      return [...line(source, body.manageSellOfferOp.selling), ...line(source, body.manageSellOfferOp.buying)]
    case OperationType.manageBuyOffer:
      return [...line(source, body.manageBuyOfferOp.selling), ...line(source, body.manageBuyOfferOp.buying)]
    case OperationType.createPassiveSellOffer: {
      const { buying, selling } = body.createPassiveSellOfferOp
      return [...line(source, selling), ...line(source, buying)]
    }
    case OperationType.changeTrust: {
      const { line: asset } = body.changeTrustOp
      return asset.type === AssetType.poolShare ? [] : line(source, asset)
    }
    case OperationType.allowTrust:
      return line(body.allowTrustOp.trustor, allowedAsset(body, source))
    case OperationType.setTrustLineFlags:
      return line(body.setTrustLineFlagsOp.trustor, body.setTrustLineFlagsOp.asset)
    case OperationType.accountMerge:
      return account(accountOf(body.destination))
    case OperationType.createClaimableBalance:
      return line(source, body.createClaimableBalanceOp.asset)
    case OperationType.clawback:
      return line(accountOf(body.clawbackOp.from), body.clawbackOp.asset)
    case OperationType.revokeSponsorship: {
      const { revokeSponsorshipOp: op } = body
      return op.type === 0 ? [keyString(op.ledgerKey)] : account(op.signer.accountId)
    }
    default:
      return []
  }
}

const isExcepted = ({ freezeBypass }: NetworkSettings, hash: Uint8Array): boolean => freezeBypass.has(latin1(hash))

/** True when the network's freeze keeps the transaction, the inner one of a fee bump, out of every ledger. */
export const isFrozenOut = (frame: Frame, settings: NetworkSettings): boolean => {
  const { frozenKeys } = settings
  if (frozenKeys.size === 0 || isExcepted(settings, frame.innerHash)) return false
  const isFrozen = (key: KeyString): boolean => frozenKeys.has(key)
  return (
    sourceKeysOf(frame).some(isFrozen) ||
    footprintKeysOf(frame).some(isFrozen) ||
    frame.tx.operations.some((operation) =>
      movedAt(operation, accountOf(operationSource(frame, operation))).some(isFrozen)
    )
  )
}

/** True when the payer of a fee bump is frozen. */
export const isPayerFrozen = (frame: Frame, settings: NetworkSettings): boolean =>
  settings.frozenKeys.has(accountKeyString(frame.feeSource)) && !isExcepted(settings, frame.hash)
