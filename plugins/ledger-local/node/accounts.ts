// The local ledger's accounts. Their keys derive from fixed seeds and are therefore public: never fund them on another
// network. The USDC issuer is the test network's account, and we do not have its key; on this ledger it has a second
// signer, the local USDC administrator.
import type { EngineCrypto } from "../engine/host/Random.ts"
import { encodeStrKey } from "../engine/xdr/StrKey.ts"
import { accountOfStrKey, type Asset, type PublicKey, publicKey } from "../engine/xdr/Xdr.ts"

export interface LocalAccount {
  readonly name: string
  readonly seed: Uint8Array
  readonly id: PublicKey
  readonly address: string
  readonly secret: string
}

const utf8 = new TextEncoder()

const ofSeed = (crypto: EngineCrypto, name: string, seed: Uint8Array): LocalAccount => {
  const key = crypto.ed25519PublicKey(seed)
  return {
    name,
    seed,
    id: publicKey(key),
    address: encodeStrKey("account", key),
    secret: encodeStrKey("seed", seed)
  }
}

/** The account of a word, such as `buyer`. */
export const localAccount = (crypto: EngineCrypto, name: string): LocalAccount =>
  ofSeed(crypto, name, crypto.sha256(utf8.encode(`tollkeeper local ledger account: ${name}`)))

/** The account that a network's passphrase implies and that holds everything at its genesis. */
export const rootAccount = (crypto: EngineCrypto, networkId: Uint8Array): LocalAccount =>
  ofSeed(crypto, "root", networkId)

export const friendbotAccount = (crypto: EngineCrypto): LocalAccount => localAccount(crypto, "friendbot")
/** May sign for the USDC issuer on this ledger. */
export const usdcAdminAccount = (crypto: EngineCrypto): LocalAccount => localAccount(crypto, "usdc administrator")

/** Issuer of USDC on the test network. */
export const USDC_ISSUER = "GBBD47IF6LWK7P7MDEVSCWR7DPUWV3NY3DTQEVFL4NAT4AQH3ZLLFLA5"
/** Its contract on the test network; the same here, because it follows from passphrase, code and issuer. */
export const USDC_CONTRACT = "CBIELTK6YBZJU5UP2WWQEUCYKLPU6AUNZ2BQ4WWFEIE3USCIHMXQDAMA"
/** The contract of native XLM on the test network, and here. */
export const NATIVE_CONTRACT = "CDLZFC3SYJYDZT7K67VZ75HPJVIEUVNIXF47ZG2FB2RMQQVU2HHGCYSC"

export const usdcIssuerId: PublicKey = accountOfStrKey(USDC_ISSUER)
export const usdc: Asset = { type: 1, alphaNum4: { assetCode: utf8.encode("USDC"), issuer: usdcIssuerId } }

/** Names of the accounts that `--seed-accounts` funds, for demonstrations and tests. */
export const demoNames = ["buyer", "seller", "agent", "merchant"] as const
