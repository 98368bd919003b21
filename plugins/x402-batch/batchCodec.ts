// The data that payer, seller and facilitator of `batch-settlement` sign and compare: a channel's configuration on the
// wire, its id, and the digests of a voucher, of a claim and of a refund. Pure and without a clock. Every digest is
// sha256 over the XDR of one vector that begins with a domain, the network's id and the contract's address. So a
// signature is never valid for another purpose, network, contract or channel. README.md, "Ids and digests", is the
// definition.
import { hash, StrKey } from "@stellar/stellar-sdk/base"
import { Result } from "effect"
import { Hex } from "effect/encoding"
import { objectSlot } from "../../kernel/cache/objectSlot.ts"
import { accountTextOf } from "../../kernel/stellar/Address.ts"
import { joinedBytes } from "../../kernel/stellar/joinBytes.ts"
import {
  addressOf,
  addressValue,
  bytesOf,
  bytesValue,
  encodeValue,
  u64Of,
  u64Value,
  type Value,
  vecOf,
  vecValue
} from "../../kernel/stellar/Value.ts"
import { addressXdr, bytesXdr, i128Xdr, symbolXdr, u64Xdr, vecHeadXdr } from "../../kernel/stellar/valueXdr.ts"

/** A channel's terms, as in `payload.channelConfig`. They never change: other terms are another channel. */
export interface ChannelConfig {
  /** The payer: receives unclaimed funds back, and may withdraw; G… or C…. Any account may deposit for it. */
  readonly payer: string
  /** The ed25519 key that signs the vouchers, as G…: the payer's account key, or a session key. */
  readonly payerAuthorizer: string
  /** Receives the claimed amounts: G… or C…. */
  readonly receiver: string
  /** The ed25519 key that allows claims and refunds, as G…. */
  readonly receiverAuthorizer: string
  /** The token's contract, C…. */
  readonly token: string
  /** Seconds between a withdrawal's start and its end, `withdrawDelayMin` to `withdrawDelayMax`. */
  readonly withdrawDelay: number
  /** 32 bytes, hex. Distinguishes channels with equal terms. */
  readonly salt: string
}

/** The bounds of `withdrawDelay`, seconds, both included; the contract enforces them too. */
export const withdrawDelayMin = 900
export const withdrawDelayMax = 2_592_000

/** Network and contract of a channel: every signature covers both. */
export interface BatchContract {
  /** sha256 of the network's passphrase, 32 bytes. */
  readonly networkId: Uint8Array
  /** The contract's address, C…. */
  readonly address: string
}

/** A channel's entry in the contract. Amounts are atomic units of the channel's token. */
export interface ChannelState {
  /** All deposits minus refunds and withdrawals; a claim does not lower it. */
  readonly balance: bigint
  /** Everything claimed so far, never above `balance`. */
  readonly totalClaimed: bigint
  /** The ledger close time of a started withdrawal, Unix seconds; 0 without a started withdrawal. */
  readonly withdrawRequestedAt: number
  /** The nonce that the next refund must name. */
  readonly refundNonce: bigint
}

export interface ClaimEntry {
  readonly config: ChannelConfig
  /** The signed cumulative maximum. */
  readonly maxClaimableAmount: bigint
  /** The payer authorizer's signature of the voucher, 64 bytes, hex. */
  readonly signature: string
  /** The seller's claimed total, cumulative, at most the maximum. */
  readonly totalClaimed: bigint
}

/** The part of an entry that the receiver's authorizer signs. */
export interface ClaimedTotal {
  readonly channelId: string
  readonly maxClaimableAmount: bigint
  readonly totalClaimed: bigint
}

/** The first word of each signed vector, a symbol. */
export const domains = {
  channel: "x402_batch_channel",
  voucher: "x402_batch_voucher",
  claim: "x402_batch_claim",
  refund: "x402_batch_refund"
} as const

/** The largest amount of an i128. */
export const amountMax = (1n << 127n) - 1n

const utf8 = new TextEncoder()

/** sha256 of the passphrase: the network's id. */
export const networkIdOf = (passphrase: string): Uint8Array => hash(utf8.encode(passphrase))

/** Lower-case hex without prefix. We accept no other spelling, so that equal ids are equal texts. */
export const isHex = (text: unknown, bytes: number): text is string =>
  typeof text === "string" && text.length === bytes * 2 && /^[0-9a-f]*$/.test(text)

export const bytesOfHex = (text: string): Uint8Array => Result.getOrThrow(Hex.decode(text))
export const hexOfBytes = (bytes: Uint8Array): string => Hex.encode(bytes)

const keyValue = (account: string): Value => bytesValue(StrKey.decodeEd25519PublicKey(account))

/** The configuration as the contract takes it: a vector of seven in the wire's order, the two keys as 32 bytes. */
export const configValue = (config: ChannelConfig): Value =>
  vecValue([
    addressValue(config.payer),
    keyValue(config.payerAuthorizer),
    addressValue(config.receiver),
    keyValue(config.receiverAuthorizer),
    addressValue(config.token),
    u64Value(BigInt(config.withdrawDelay)),
    bytesValue(bytesOfHex(config.salt))
  ])

const sized = (value: Value | undefined, length: number): Uint8Array | undefined => {
  const bytes = bytesOf(value)
  return bytes?.length === length ? bytes : undefined
}

/** The configuration in a contract value; undefined for anything that `configValue` does not make. */
export const configOfValue = (value: Value | undefined): ChannelConfig | undefined => {
  const items = vecOf(value)
  if (items?.length !== 7) return undefined
  const [payer, receiver, token] = [addressOf(items[0]), addressOf(items[2]), addressOf(items[4])]
  const [payerKey, receiverKey, salt] = [sized(items[1], 32), sized(items[3], 32), sized(items[6], 32)]
  const delay = u64Of(items[5])
  if (payer === undefined || receiver === undefined || token === undefined || delay === undefined) return undefined
  if (payerKey === undefined || receiverKey === undefined || salt === undefined) return undefined
  if (delay > BigInt(Number.MAX_SAFE_INTEGER)) return undefined
  return {
    payer,
    payerAuthorizer: accountTextOf(payerKey),
    receiver,
    receiverAuthorizer: accountTextOf(receiverKey),
    token,
    withdrawDelay: Number(delay),
    salt: hexOfBytes(salt)
  }
}

const isAddress = (text: unknown): text is string =>
  typeof text === "string" && (StrKey.isValidEd25519PublicKey(text) || StrKey.isValidContract(text))
const isAccount = (text: unknown): text is string => typeof text === "string" && StrKey.isValidEd25519PublicKey(text)
const isContract = (text: unknown): text is string => typeof text === "string" && StrKey.isValidContract(text)

const fields: ReadonlyArray<readonly [name: keyof ChannelConfig, is: (value: unknown) => boolean, form: string]> = [
  ["payer", isAddress, "an address G… or C…"],
  ["payerAuthorizer", isAccount, "an ed25519 key as G…"],
  ["receiver", isAddress, "an address G… or C…"],
  ["receiverAuthorizer", isAccount, "an ed25519 key as G…"],
  ["token", isContract, "a contract's address C…"],
  ["withdrawDelay", (value) => Number.isSafeInteger(value) && (value as number) >= 0, "a whole number of seconds"],
  ["salt", (value) => isHex(value, 32), "32 bytes in lower-case hex"]
]

/**
 * Decodes the configuration from the wire; a failure names the member and its required form, never the received value.
 * The caller checks the range of the delay, which has a separate reason.
 */
export const decodeChannelConfig = (value: unknown): Result.Result<ChannelConfig, { readonly reason: string }> => {
  if (typeof value !== "object" || value === null) return Result.fail({ reason: "channelConfig is not an object" })
  const sent = value as Record<keyof ChannelConfig, unknown>
  const wrong = fields.find(([name, is]) => !is(sent[name]))
  if (wrong !== undefined) return Result.fail({ reason: `channelConfig.${wrong[0]} is not ${wrong[2]}` })
  return Result.succeed(Object.fromEntries(fields.map(([name]) => [name, sent[name]])) as unknown as ChannelConfig)
}

/** A cumulative amount on the wire: a decimal string without sign or leading zero, at most `amountMax`. */
export const decodeAmount = (value: unknown): bigint | undefined => {
  if (typeof value !== "string" || value.length > 39 || !/^(?:0|[1-9][0-9]*)$/.test(value)) return undefined
  const amount = BigInt(value)
  return amount <= amountMax ? amount : undefined
}

const idXdr = (channelId: string): Uint8Array => bytesXdr(bytesOfHex(channelId))

/** The prefix of every digest of one contract, after the domain. */
const placeXdr = ({ address, networkId }: BatchContract): Uint8Array =>
  joinedBytes(bytesXdr(networkId), addressXdr(address))

/** A facilitator has one object for each of its contracts. Without this a voucher's digest takes twice as long. */
const places = objectSlot<BatchContract, Uint8Array>()
const placeOf = (at: BatchContract): Uint8Array => {
  const known = places.get(at)
  if (known !== undefined) return known
  const made = placeXdr(at)
  places.set(at, made)
  return made
}

/**
 * sha256 over the vector's XDR, written word by word (`valueXdr.ts`). The general encoder takes 0.16 ms for a voucher,
 * and every call verifies one. A test compares both.
 */
const digest = (domain: string, at: BatchContract, rest: ReadonlyArray<Uint8Array>): Uint8Array =>
  hash(joinedBytes(vecHeadXdr(3 + rest.length), symbolXdr(domain), placeOf(at), ...rest))

/** Ids by configuration: the checks of a claim use each eight times. */
const ids = objectSlot<ChannelConfig, { readonly at: BatchContract; readonly id: string }>()

/** The channel's id, 32 bytes, hex. */
export const channelIdOf = (at: BatchContract, config: ChannelConfig): string => {
  const known = ids.get(config)
  if (known?.at === at) return known.id
  const id = hexOfBytes(digest(domains.channel, at, [encodeValue(configValue(config))]))
  if (known === undefined) ids.set(config, { at, id })
  return id
}

/** The 32 bytes that the payer's authorizer signs: at most `maxClaimableAmount` of this channel, cumulative. */
export const voucherDigest = (at: BatchContract, channelId: string, maxClaimableAmount: bigint): Uint8Array =>
  digest(domains.voucher, at, [idXdr(channelId), i128Xdr(maxClaimableAmount)])

/**
 * The 32 bytes that the receiver's authorizer signs for a claim: its entries in their order, and the last close time at
 * which the signature is valid, Unix seconds.
 */
export const claimDigest = (at: BatchContract, entries: ReadonlyArray<ClaimedTotal>, expiresAt: number): Uint8Array =>
  digest(domains.claim, at, [
    joinedBytes(
      vecHeadXdr(entries.length),
      ...entries.flatMap(({ channelId, maxClaimableAmount, totalClaimed }) => [
        vecHeadXdr(3),
        idXdr(channelId),
        i128Xdr(maxClaimableAmount),
        i128Xdr(totalClaimed)
      ])
    ),
    u64Xdr(BigInt(expiresAt))
  ])

/**
 * The 32 bytes that the receiver's authorizer signs for a refund: the maximum amount, the channel's nonce, and the last
 * close time at which the signature is valid, Unix seconds.
 */
export const refundDigest = (
  at: BatchContract,
  channelId: string,
  amount: bigint,
  nonce: bigint,
  expiresAt: number
): Uint8Array =>
  digest(domains.refund, at, [idXdr(channelId), i128Xdr(amount), u64Xdr(nonce), u64Xdr(BigInt(expiresAt))])

/** The key behind an authorizer's G-address, 32 bytes. */
export const authorizerKeyOf = (account: string): Uint8Array => StrKey.decodeEd25519PublicKey(account)

/** The totals that a claim's authorizer signs. */
export const claimedTotals = (at: BatchContract, entries: ReadonlyArray<ClaimEntry>): ReadonlyArray<ClaimedTotal> =>
  entries.map(({ config, maxClaimableAmount, totalClaimed }) => ({
    channelId: channelIdOf(at, config),
    maxClaimableAmount,
    totalClaimed
  }))
