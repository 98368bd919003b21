// Signatures of `batch-settlement`: vouchers by the payer's key, claims and refunds by the receiver's authorizer, all
// raw ed25519 over 32-byte digests that name purpose, network, contract and channel. The platform's own ed25519 signs
// and verifies: a voucher costs a seller a tenth of a millisecond.
import { Keypair, Networks } from "@stellar/stellar-sdk"
import { createPrivateKey, createPublicKey, type KeyObject, sign, verify } from "node:crypto"
import {
  type BatchContract,
  channelIdOf,
  claimDigest,
  decodeAmount,
  networkIdOf,
  refundDigest,
  voucherDigest
} from "../../plugins/x402-batch/contract.ts"
import { hasLedgerForm } from "../../kernel/ledger/Ed25519.ts"
import type { ChannelConfig, Voucher } from "./channels.ts"

const pkcs8Prefix = Buffer.from("302e020100300506032b657004220420", "hex")
const spkiPrefix = Buffer.from("302a300506032b6570032100", "hex")

const passphraseOf = (network: string): string => {
  if (/^(stellar|ledger):testnet$/.test(network)) return Networks.TESTNET
  if (/^(stellar|ledger):pubnet$/.test(network)) return Networks.PUBLIC
  throw new Error(`no network ${network}`)
}

const contracts = new Map<string, BatchContract>()

/** The network and contract of a channel, from the terms. */
export const placeOf = (network: string, contract: string): BatchContract => {
  const name = `${network} ${contract}`
  const cached = contracts.get(name)
  if (cached !== undefined) return cached
  const batchContract = { networkId: networkIdOf(passphraseOf(network)), address: contract }
  contracts.set(name, batchContract)
  return batchContract
}

/** The terms' contract; throws without one. */
export const contractOf = (requirements: { readonly extra?: any }): string => {
  const contract = requirements.extra?.batchContract
  if (typeof contract !== "string") throw new Error("the terms name no batchContract")
  return contract
}

export const channelIdIn = (network: string, contract: string, config: ChannelConfig): string =>
  channelIdOf(placeOf(network, contract), config)

/** A key that signs digests. */
export interface Signer {
  /** G… */
  readonly address: string
  /** 64 bytes as hex. */
  readonly sign: (digest: Uint8Array) => string
}

export const signerOf = (secret: string): Signer => {
  const keypair = Keypair.fromSecret(secret)
  const key = createPrivateKey({
    key: Buffer.concat([pkcs8Prefix, keypair.rawSecretKey()]),
    format: "der",
    type: "pkcs8"
  })
  return { address: keypair.publicKey(), sign: (digest) => sign(null, digest, key).toString("hex") }
}

/** Number of cached keys, for the next voucher of the same buyer. */
const keysMax = 10_000
const keys = new Map<string, KeyObject>()

const keyOf = (address: string): KeyObject => {
  const cachedKey = keys.get(address)
  if (cachedKey !== undefined) return cachedKey
  const raw = Keypair.fromPublicKey(address).rawPublicKey()
  const key = createPublicKey({ key: Buffer.concat([spkiPrefix, raw]), format: "der", type: "spki" })
  if (keys.size >= keysMax) keys.delete(keys.keys().next().value!)
  keys.set(address, key)
  return key
}

export const signVoucher = (signer: Signer, contract: BatchContract, channelId: string, max: bigint): Voucher => ({
  channelId,
  maxClaimableAmount: String(max),
  signature: signer.sign(voucherDigest(contract, channelId, max))
})

/** Whether a key signed a digest, as the ledger decides: some runtimes accept more. */
export const isSignedBy = (address: string, digest: Uint8Array, signatureHex: string): boolean => {
  if (!/^[0-9a-f]{128}$/.test(signatureHex)) return false
  const signature = Buffer.from(signatureHex, "hex")
  return (
    hasLedgerForm(Keypair.fromPublicKey(address).rawPublicKey(), signature) &&
    verify(null, digest, keyOf(address), signature)
  )
}

/** Whether a key signed a voucher of this channel. */
export const isVoucherOf = (address: string, contract: BatchContract, voucher: Voucher): boolean =>
  decodeAmount(voucher.maxClaimableAmount) !== undefined &&
  isSignedBy(address, voucherDigest(contract, voucher.channelId, BigInt(voucher.maxClaimableAmount)), voucher.signature)

/** An entry of a claim on the wire. */
export interface WireClaim {
  readonly voucher: { readonly channel: ChannelConfig; readonly maxClaimableAmount: string }
  readonly signature: string
  readonly totalClaimed: string
}

export const signClaims = (
  signer: Signer,
  contract: BatchContract,
  claims: ReadonlyArray<WireClaim>,
  expiresAt: number
): string =>
  signer.sign(
    claimDigest(
      contract,
      claims.map(({ totalClaimed, voucher }) => ({
        channelId: channelIdOf(contract, voucher.channel),
        maxClaimableAmount: BigInt(voucher.maxClaimableAmount),
        totalClaimed: BigInt(totalClaimed)
      })),
      expiresAt
    )
  )

export const signRefund = (
  signer: Signer,
  contract: BatchContract,
  channelId: string,
  refund: { readonly amount: string; readonly refundNonce: number; readonly expiresAt: number }
): string =>
  signer.sign(refundDigest(contract, channelId, BigInt(refund.amount), BigInt(refund.refundNonce), refund.expiresAt))
