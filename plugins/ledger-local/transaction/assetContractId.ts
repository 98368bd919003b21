// The address of an asset's contract, which depends only on the network and the asset. Results are cached (bounded),
// since every payment event needs one.
import type { EngineCrypto } from "../engine/host/Random.ts"
import { type Asset, codec, latin1 } from "../engine/xdr/Xdr.ts"
import { codecs } from "./Wire.ts"

const contractIds = new Map<string, Uint8Array>()
const KNOWN_MAX = 1_024

/** The 32-byte contract id of `asset` on the network with the passphrase hash `networkId`. */
export const assetContractId = (crypto: EngineCrypto, networkId: Uint8Array, asset: Asset): Uint8Array => {
  const name = latin1(networkId) + latin1(codecs.Asset.encode(asset))
  const cachedId = contractIds.get(name)
  if (cachedId !== undefined) return cachedId
  const id = crypto.sha256(
    codec.HashIdPreimage.encode({
      type: 8,
      contractId: { networkId, contractIdPreimage: { type: 1, fromAsset: asset } }
    })
  )
  if (contractIds.size >= KNOWN_MAX) contractIds.clear()
  contractIds.set(name, id)
  return id
}
