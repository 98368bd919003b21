import { readFileSync } from "node:fs"
import { Keypair, StrKey } from "@stellar/stellar-sdk"
import { Result } from "effect"
import { describe, expect, it } from "vitest"
import { verifyEd25519 } from "../../../kernel/ledger/Ed25519.ts"
import { symbolValue, u64Value } from "../../../kernel/stellar/Value.ts"
import * as calls from "../../../plugins/x402-batch/batchCalls.ts"
import * as codec from "../../../plugins/x402-batch/batchCodec.ts"
import { batchErrorOf, batchErrors } from "../../../plugins/x402-batch/batchErrors.ts"
import { engineCrypto } from "../../support/engineCrypto.ts"
import { vectors, vectorsFile, vectorsText } from "./vectors.ts"

const first = vectors().vectors[0]!

describe("the vectors", () => {
  it("the file has what the general encoder gives", () => {
    expect(readFileSync(vectorsFile, "utf8")).toBe(vectorsText())
  })

  it("ids and digests are those of the vectors, and their signatures verify", () => {
    for (const one of vectors().vectors) {
      const at = { networkId: codec.networkIdOf(one.passphrase), address: one.contract }
      const [max, total] = [BigInt(one.maxClaimableAmount), BigInt(one.totalClaimed)]
      const id = codec.channelIdOf(at, one.config)
      expect(id).toBe(one.channel.id)
      const voucher = codec.voucherDigest(at, id, max)
      const claim = codec.claimDigest(
        at,
        [{ channelId: id, maxClaimableAmount: max, totalClaimed: total }],
        one.expiresAt
      )
      const refund = codec.refundDigest(at, id, BigInt(one.refundAmount), BigInt(one.refundNonce), one.expiresAt)
      for (const [digest, vector, signer] of [
        [voucher, one.voucher, one.config.payerAuthorizer],
        [claim, one.claim, one.config.receiverAuthorizer],
        [refund, one.refund, one.config.receiverAuthorizer]
      ] as const) {
        expect(codec.hexOfBytes(digest)).toBe(vector.digest)
        const key = codec.authorizerKeyOf(signer)
        expect(verifyEd25519(engineCrypto as never, key, digest, codec.bytesOfHex(vector.signature))).toBe(true)
      }
    }
  })

  it("no two vectors share an id or a digest", () => {
    const all = vectors().vectors.flatMap((one) => [
      one.channel.id,
      one.voucher.digest,
      one.claim.digest,
      one.refund.digest
    ])
    expect(new Set(all).size).toBe(all.length)
  })

  it("each member of the config is part of the id", () => {
    const at = { networkId: codec.networkIdOf(first.passphrase), address: first.contract }
    const other = {
      payer: first.config.receiver,
      payerAuthorizer: first.config.payer,
      receiver: first.config.payer,
      receiverAuthorizer: first.config.payer,
      token: first.contract,
      withdrawDelay: 901,
      salt: "01".repeat(32)
    }
    const ids = Object.entries(other).map(([name, value]) =>
      codec.channelIdOf(at, { ...first.config, [name]: value } as codec.ChannelConfig)
    )
    expect(new Set([...ids, first.channel.id]).size).toBe(8)
  })
})

describe("the wire", () => {
  it("a config is read as it was sent, and nothing more of it", () => {
    const read = codec.decodeChannelConfig({ ...first.config, more: 1 })
    expect(Result.getOrUndefined(read)).toEqual(first.config)
    expect(codec.configOfValue(codec.configValue(first.config))).toEqual(first.config)
  })

  it.each<readonly [name: keyof codec.ChannelConfig, value: unknown]>([
    ["payer", `M${first.config.payer.slice(1)}`],
    ["payer", first.config.payer.toLowerCase()],
    ["payerAuthorizer", first.contract],
    ["receiver", 5],
    ["receiverAuthorizer", first.contract],
    ["token", first.config.payer],
    ["withdrawDelay", "900"],
    ["withdrawDelay", 900.5],
    ["withdrawDelay", -1],
    ["salt", "00".repeat(31)],
    ["salt", `0x${"00".repeat(32)}`],
    ["salt", "AA".repeat(32)]
  ])("a config whose %s is %s is refused by name", (name, value) => {
    const read = codec.decodeChannelConfig({ ...first.config, [name]: value })
    expect(Result.isFailure(read) && read.failure.reason).toContain(`channelConfig.${name}`)
  })

  it("a config that is no object is refused", () => {
    for (const value of [undefined, null, "x", 5]) expect(Result.isFailure(codec.decodeChannelConfig(value))).toBe(true)
  })

  it("an amount has one spelling", () => {
    for (const [text, amount] of [
      ["0", 0n],
      ["7", 7n],
      [String(codec.amountMax), codec.amountMax],
      [String(codec.amountMax + 1n), undefined],
      ["-1", undefined],
      ["01", undefined],
      ["1.0", undefined],
      ["", undefined],
      ["9".repeat(60), undefined],
      [5, undefined]
    ] as const)
      expect(codec.decodeAmount(text)).toBe(amount)
  })
})

describe("calls and entries", () => {
  it("claims are read as they were made", () => {
    const entry = {
      config: first.config,
      maxClaimableAmount: 5n,
      signature: first.voucher.signature,
      totalClaimed: 3n
    }
    expect(calls.claimsOfValue(calls.claimsValue([entry, entry]))).toEqual([entry, entry])
    expect(calls.claimsOfValue(calls.claimsValue([]))).toEqual([])
    expect(calls.claimsOfValue(u64Value(1n))).toBeUndefined()
    expect(calls.claimsOfValue(calls.claimsValue([{ ...entry, signature: "00" }]))).toBeUndefined()
  })

  it("events of other contracts and of other forms are none", () => {
    const event = {
      ext: { v: 0 },
      contractId: StrKey.decodeContract(first.contract),
      type: 1,
      body: { v: 0, v0: { topics: [symbolValue("batch_settled")], data: u64Value(1n) } }
    } as never
    expect(calls.batchEventOf(first.contract, event)).toBeUndefined()
    expect(calls.batchEventOf(StrKey.encodeContract(new Uint8Array(32)), event)).toBeUndefined()
  })

  it("an error's number names the entry of a claim", () => {
    expect(batchErrorOf(batchErrors.ChannelNotFound)).toEqual({ name: "ChannelNotFound", entry: undefined })
    expect(batchErrorOf(10_000 + batchErrors.ChannelNotFound)).toEqual({ name: "ChannelNotFound", entry: 0 })
    expect(batchErrorOf(400_000 + batchErrors.TotalAboveMaximum)).toEqual({ name: "TotalAboveMaximum", entry: 39 })
    expect(batchErrorOf(10)).toBeUndefined()
  })

  it("authorizers are keys, not accounts that must exist", () => {
    const key = Keypair.random()
    expect(codec.authorizerKeyOf(key.publicKey())).toEqual(Uint8Array.from(key.rawPublicKey()))
  })
})
