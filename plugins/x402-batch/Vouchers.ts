// Checks channel ids and voucher signatures, at the cost of one hash and one signature check. A configuration is cached
// by its id once the id was computed, so a returning buyer's configuration is compared member by member instead of
// hashed. The signed bytes of a voucher are built once, with slots for channel and amount. The settle of a voucher does
// not repeat the signature check of its verify. Nothing here reads a ledger.
import { LruCache } from "../../kernel/cache/LruCache.ts"
import { verifyEd25519 } from "../../kernel/ledger/Ed25519.ts"
import type { Crypto } from "../../kernel/platform/Crypto.ts"
import {
  authorizerKeyOf,
  type BatchContract,
  bytesOfHex,
  type ChannelConfig,
  channelIdOf,
  domains
} from "./batchCodec.ts"
import type { Voucher } from "./BatchWire.ts"
import { addressValue, bytesValue, encodeValue, i128Value, symbolValue, vecValue } from "../../kernel/stellar/Value.ts"

/** Capacity of the cache of configurations: buyers come back. */
const configsMax = 20_000

const members = [
  "payer",
  "payerAuthorizer",
  "receiver",
  "receiverAuthorizer",
  "token",
  "withdrawDelay",
  "salt"
] as const satisfies ReadonlyArray<keyof ChannelConfig>

/** A configuration with a verified id, and the key of its vouchers. */
interface Proven {
  readonly config: ChannelConfig
  readonly key: Uint8Array
  /** The last voucher that verified: a settle follows its verify with the same one. */
  signed: Pick<Voucher, "maxClaimableAmount" | "signature"> | undefined
}

/** An id on the ledger's wire: its type, its length, 32 bytes. */
const idBytes = 32
/** An i128 on the ledger's wire: 16 bytes after its type. */
const amountBytes = 16
const typeBytes = 4

/** Builds the bytes that a voucher's signature hashes and signs; equal to the input of the codec's `voucherDigest`. */
export const makeVoucherPreimage = (at: BatchContract) => {
  const template = encodeValue(
    vecValue([
      symbolValue(domains.voucher),
      bytesValue(at.networkId),
      addressValue(at.address),
      bytesValue(new Uint8Array(idBytes)),
      i128Value(0n)
    ])
  )
  const amountAt = template.length - amountBytes
  const idAt = amountAt - typeBytes - idBytes
  return (channelId: string, maxClaimableAmount: bigint): Uint8Array => {
    const bytes = Uint8Array.from(template)
    bytes.set(bytesOfHex(channelId), idAt)
    const view = new DataView(bytes.buffer, amountAt, amountBytes)
    view.setBigInt64(0, maxClaimableAmount >> 64n)
    view.setBigUint64(8, BigInt.asUintN(64, maxClaimableAmount))
    return bytes
  }
}

export interface Vouchers {
  /** The configuration of a channel with a proven id, if the received one equals it. */
  readonly known: (sent: unknown, channelId: unknown) => ChannelConfig | undefined
  /** The proven configuration of a channel, while it is kept. */
  readonly configOf: (channelId: string) => ChannelConfig | undefined
  /** Whether a configuration has this id, on this network and contract. */
  readonly isOf: (config: ChannelConfig, channelId: string) => boolean
  /** Whether the payer's authorizer signed a voucher of a channel. */
  readonly isSigned: (config: ChannelConfig, voucher: Voucher) => boolean
}

export const makeVouchers = (at: BatchContract, crypto: Crypto["Service"]): Vouchers => {
  const proven = new LruCache<string, Proven>({ name: "batch-channel-configs", capacity: configsMax })
  const preimage = makeVoucherPreimage(at)
  return {
    known: (sent, channelId) => {
      if (typeof sent !== "object" || sent === null || typeof channelId !== "string") return undefined
      const config = proven.get(channelId)?.config
      const fields = sent as Readonly<Record<string, unknown>>
      return config !== undefined && members.every((name) => fields[name] === config[name]) ? config : undefined
    },
    configOf: (channelId) => proven.peek(channelId)?.config,
    isOf: (config, channelId) => {
      if (proven.peek(channelId)?.config === config) return true
      if (channelIdOf(at, config) !== channelId) return false
      proven.set(channelId, { config, key: authorizerKeyOf(config.payerAuthorizer), signed: undefined })
      return true
    },
    isSigned: (config, { channelId, maxClaimableAmount, signature }) => {
      const found = proven.peek(channelId)
      const known = found?.config === config ? found : undefined
      if (known?.signed?.signature === signature && known.signed.maxClaimableAmount === maxClaimableAmount) return true
      const key = known?.key ?? authorizerKeyOf(config.payerAuthorizer)
      const digest = crypto.sha256(preimage(channelId, maxClaimableAmount))
      const isSigned = verifyEd25519(crypto, key, digest, bytesOfHex(signature))
      if (isSigned && known !== undefined) known.signed = { maxClaimableAmount, signature }
      return isSigned
    }
  }
}
