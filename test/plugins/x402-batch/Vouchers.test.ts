import { Keypair } from "@stellar/stellar-sdk"
import { describe, expect, it } from "vitest"
import {
  amountMax,
  type ChannelConfig,
  channelIdOf,
  hexOfBytes,
  networkIdOf,
  voucherDigest
} from "../../../plugins/x402-batch/batchCodec.ts"
import { makeVoucherPreimage, makeVouchers } from "../../../plugins/x402-batch/Vouchers.ts"
import { testnetUsdc } from "../../../runtime/redteam/buyer.ts"
import { engineCrypto } from "../../support/engineCrypto.ts"

const payer = Keypair.random()
const at = { networkId: networkIdOf("Test SDF Network ; September 2015"), address: testnetUsdc }
const config: ChannelConfig = {
  payer: payer.publicKey(),
  payerAuthorizer: payer.publicKey(),
  receiver: Keypair.random().publicKey(),
  receiverAuthorizer: Keypair.random().publicKey(),
  token: testnetUsdc,
  withdrawDelay: 900,
  salt: hexOfBytes(Keypair.random().rawPublicKey())
}
const channelId = channelIdOf(at, config)
const voucherOf = (key: Keypair, max: bigint, id = channelId) => ({
  channelId,
  maxClaimableAmount: max,
  signature: hexOfBytes(key.sign(voucherDigest(at, id, max)))
})

describe("vouchers", () => {
  it("are signed over the codec's digest, for every channel and amount", () => {
    const preimage = makeVoucherPreimage(at)
    const amounts = [0n, 1n, 255n, (1n << 63n) - 1n, 1n << 63n, (1n << 64n) - 1n, 1n << 64n, amountMax]
    for (const max of amounts) {
      const id = hexOfBytes(Keypair.random().rawPublicKey())
      expect(engineCrypto.sha256(preimage(id, max))).toEqual(Uint8Array.from(voucherDigest(at, id, max)))
    }
  })

  it("hold by the payer's authorizer alone, before and after the channel is known", () => {
    const vouchers = makeVouchers(at, engineCrypto)
    const stranger = Keypair.random()
    const holds = () => [
      vouchers.isSigned(config, voucherOf(payer, 5n)),
      vouchers.isSigned(config, { ...voucherOf(payer, 5n), maxClaimableAmount: 6n }),
      vouchers.isSigned(config, voucherOf(stranger, 5n)),
      vouchers.isSigned(config, voucherOf(payer, 5n, "00".repeat(32)))
    ]
    expect(holds()).toEqual([true, false, false, false])
    expect(vouchers.isOf(config, channelId)).toBe(true)
    expect(holds()).toEqual([true, false, false, false])
  })

  it("of a known channel are not decoded again, and of a configuration that differs in any member they are", () => {
    const vouchers = makeVouchers(at, engineCrypto)
    expect(vouchers.known({ ...config }, channelId)).toBe(undefined)
    expect(vouchers.isOf(config, "00".repeat(32))).toBe(false)
    expect(vouchers.isOf(config, channelId)).toBe(true)
    expect(vouchers.known({ ...config }, channelId)).toBe(config)
    for (const name of Object.keys(config))
      expect(vouchers.known({ ...config, [name]: "other" }, channelId)).toBe(undefined)
    expect(vouchers.known(null, channelId)).toBe(undefined)
    expect(vouchers.isOf({ ...config, withdrawDelay: 901 }, channelId)).toBe(false)
  })
})
