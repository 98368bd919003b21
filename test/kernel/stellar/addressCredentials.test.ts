// The written version of credentials depends on the protocol of the receiving network.
import { Address, buildAuthorizationEntryPreimage, Keypair, xdr } from "@stellar/stellar-sdk/base"
import { describe, expect, it } from "vitest"
import { addressCredentials } from "../../../kernel/stellar/AuthEntry.ts"
import { entryWith } from "../../../plugins/mcp-tools-pay/payer/authorization.ts"

const payer = Keypair.random().publicKey()
const asset = "CBIELTK6YBZJU5UP2WWQEUCYKLPU6AUNZ2BQ4WWFEIE3USCIHMXQDAMA"
const credentials = new xdr.SorobanAddressCredentials({
  address: new Address(payer).toScAddress(),
  nonce: 1n,
  signatureExpirationLedger: 10,
  signature: xdr.ScVal.scvVoid()
})

describe("credentials of our own authorizations", () => {
  it("credentials are version 2 if the network supports it, else version 1", () => {
    expect(addressCredentials(credentials, 26).type).toBe("sorobanCredentialsAddress")
    expect(addressCredentials(credentials, 27).type).toBe("sorobanCredentialsAddressV2")
    expect(addressCredentials(credentials, 28).type).toBe("sorobanCredentialsAddressV2")
  })

  it("credentials determine the payload that a wallet signs", () => {
    const transfer = { asset, payTo: Keypair.random().publicKey(), amount: 5n }
    const preimage = (protocolVersion: number): string => {
      const authorization = { payer, nonce: 1n, expirationLedger: 10, protocolVersion }
      const entry = entryWith(transfer, authorization, xdr.ScVal.scvVoid())
      return buildAuthorizationEntryPreimage(entry, 10, "a network").type
    }
    expect(preimage(26)).toBe("envelopeTypeSorobanAuthorization")
    expect(preimage(27)).toBe("envelopeTypeSorobanAuthorizationWithAddress")
  })
})
