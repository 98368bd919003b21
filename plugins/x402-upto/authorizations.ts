// A payer's authorization by its key: its signer, the nonce it uses up on the ledger, and whether an operation on the
// ledger used it for exactly one settlement. Pure.
import { Option } from "effect"
import type { Authorization, PromisedMovement } from "../../kernel/payment/Scheme.ts"
import type { NonceUse } from "../../kernel/settlement/Authorizations.ts"
import { addressText } from "../../kernel/stellar/Address.ts"
import { credentialsOf } from "../../kernel/stellar/AuthEntry.ts"
import { authorizationKeyOf, haveOneNonce } from "../../kernel/stellar/AuthorizationKey.ts"
import { authOf, decodeOperation } from "../../kernel/stellar/ContractCall.ts"
import { type OfferedContract, profileIn } from "./profiles.ts"
import { callIn, type UptoPayload } from "./UptoWire.ts"

/** By payer, nonce and expiry: the ledger's own identity of an authorization. */
export const authorizationOf = ({ call }: UptoPayload): Option.Option<Authorization> => {
  const [entry] = call?.auth ?? []
  const credentials = entry === undefined ? undefined : credentialsOf(entry)
  const payer = credentials === undefined ? undefined : addressText(credentials.address)
  const key = entry === undefined ? undefined : authorizationKeyOf(entry)
  return key === undefined || payer === undefined ? Option.none() : Option.some({ key, payer })
}

/** How an operation uses an authorization's nonce: as exactly this settlement, or otherwise. */
export const useIn = (
  offered: ReadonlyArray<OfferedContract>,
  key: string,
  promise: PromisedMovement,
  operationXdr: Uint8Array
): NonceUse => {
  const keys = authOf(decodeOperation(operationXdr)).flatMap((entry) => authorizationKeyOf(entry) ?? [])
  if (!keys.some((one) => haveOneNonce(one, key))) return "none"
  const call = callIn(operationXdr, profileIn(offered))
  const isSame =
    keys.includes(key) &&
    offered.some(({ contract }) => call?.contract === contract) &&
    call?.functionName === call?.profile.functionName &&
    call?.args.payer === promise.payer &&
    call.args.payTo === promise.payTo &&
    call.args.token === promise.asset &&
    call.args.actual === promise.amount
  return isSame ? "same" : "other"
}
