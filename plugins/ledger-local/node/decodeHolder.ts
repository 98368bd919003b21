// A `G…` or `C…` address as the account or contract it names; undefined for anything else.
import { decodeStrKey } from "../engine/xdr/StrKey.ts"
import { accountAddress, contractAddress, publicKey, type ScAddress } from "../engine/xdr/Xdr.ts"

export const decodeHolder = (text: string): ScAddress | undefined => {
  const account = decodeStrKey("account", text)
  if (account !== undefined) return accountAddress(publicKey(account))
  const contract = decodeStrKey("contract", text)
  return contract && contractAddress(contract)
}
