// Balances for tests, read as ledger entries, so that a test does not compare the facilitator's figures with
// themselves.
import { Keypair, xdr } from "@stellar/stellar-sdk"
import type { RpcCall } from "./rpcCall.ts"

/** Issuer of the test network's USDC, and of the local ledger's. */
export const testnetUsdcIssuer = "GBBD47IF6LWK7P7MDEVSCWR7DPUWV3NY3DTQEVFL4NAT4AQH3ZLLFLA5"

const accountId = (address: string) => xdr.PublicKey.publicKeyTypeEd25519(Keypair.fromPublicKey(address).rawPublicKey())

/** Atomic units of USDC on the trustline of `address`; 0 without a trustline. */
export const usdcBalance = async (rpc: RpcCall, address: string, issuer = testnetUsdcIssuer): Promise<bigint> => {
  const key = xdr.LedgerKey.trustline(
    new xdr.LedgerKeyTrustLine({
      accountId: accountId(address),
      asset: xdr.TrustLineAsset.assetTypeCreditAlphanum4(
        new xdr.AlphaNum4({ assetCode: new TextEncoder().encode("USDC"), issuer: accountId(issuer) })
      )
    })
  )
  const { entries } = await rpc("getLedgerEntries", { keys: [key.toXdr("base64")] })
  if (entries.length === 0) return 0n
  const data = xdr.LedgerEntryData.fromXdr(entries[0].xdr, "base64")
  if (data.type !== "trustline") throw new Error(`the ledger answered a ${data.type} for a trustline`)
  return data.trustLine.balance
}
