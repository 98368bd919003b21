// The file that a seller gives to a watchtower: of each channel with unclaimed charges the payer's voucher and one
// claim, signed by the receiver's authorizer. It contains no key. A claim pays its receiver only, at most the charged
// total, until it expires. A reader verifies each entry and trusts nothing else in the file.
import { claimDigest } from "../../plugins/x402-batch/contract.ts"
import { sha256 } from "../seller/outcome.mjs"
import { canonical } from "../seller/sales.mjs"
import type { Channel, ChannelConfig } from "./channels.ts"
import { channelIdIn, isSignedBy, isVoucherOf, placeOf, type Signer, type WireClaim } from "./vouchers.ts"

/** A claim of one channel, ready to submit. */
export interface SignedClaim extends WireClaim {
  /** The claim's last valid close time, Unix seconds. */
  readonly expiresAt: number
  readonly claimAuthorizerSignature: string
}

export interface WatchFile {
  readonly network: string
  readonly contract: string
  /** By channel id; the highest total of each. */
  readonly claims: ReadonlyMap<string, SignedClaim>
  /** Number of entries that were not valid. */
  readonly refused: number
}

const format = "tollkeeper-watch-1"
/** Maximum entries of a file, and characters of its text. */
const claimsMax = 50_000
const lengthMax = 64_000_000
/** Lifetime of an exported claim, seconds: the longest delay of a withdrawal. */
export const exportSeconds = 2_592_000

export const claimOf = ({
  channelConfig,
  chargedCumulativeAmount,
  signature,
  signedMaxClaimable
}: Channel): WireClaim => ({
  voucher: { channel: channelConfig, maxClaimableAmount: signedMaxClaimable },
  signature,
  totalClaimed: chargedCumulativeAmount
})

export const writeWatchFile = (network: string, contract: string, claims: ReadonlyArray<SignedClaim>): string =>
  `${JSON.stringify({ format, network, contract, exportedAt: new Date().toISOString(), claims })}\n`

/** The channel of an entry; undefined unless the payer's and the receiver's authorizers signed it. */
const verifiedId = (network: string, contract: string, one: SignedClaim): string | undefined => {
  try {
    const { claimAuthorizerSignature, expiresAt, signature, totalClaimed, voucher } = one
    const { channel, maxClaimableAmount } = voucher
    const [place, channelId] = [placeOf(network, contract), channelIdIn(network, contract, channel)]
    const totals = { channelId, maxClaimableAmount: BigInt(maxClaimableAmount), totalClaimed: BigInt(totalClaimed) }
    const isSound =
      Number.isSafeInteger(expiresAt) &&
      totals.totalClaimed <= totals.maxClaimableAmount &&
      isVoucherOf(channel.payerAuthorizer, place, { channelId, maxClaimableAmount, signature }) &&
      isSignedBy(channel.receiverAuthorizer, claimDigest(place, [totals], expiresAt), claimAuthorizerSignature)
    return isSound ? channelId : undefined
  } catch {
    return undefined
  }
}

/** Throws for a text of another format. */
export const readWatchFile = (text: string): WatchFile => {
  if (text.length > lengthMax) throw new Error("the file is too large")
  const { claims: entries, contract, format: found, network } = JSON.parse(text)
  if (found !== format || typeof network !== "string" || typeof contract !== "string" || !Array.isArray(entries))
    throw new Error(`the file is not of the format ${format}`)
  if (entries.length > claimsMax) throw new Error(`the file has more than ${claimsMax} claims`)
  const claims = new Map<string, SignedClaim>()
  let refused = 0
  for (const one of entries) {
    const channelId = verifiedId(network, contract, one)
    const known = channelId === undefined ? undefined : claims.get(channelId)
    if (channelId === undefined) refused++
    else if (known === undefined || BigInt(known.totalClaimed) < BigInt(one.totalClaimed)) claims.set(channelId, one)
  }
  return { network, contract, claims, refused }
}

/** A watchtower's statement that it answered a withdrawal. Amounts are atomic units. */
export interface WatchProof {
  readonly format: "tollkeeper-watch-proof-1"
  readonly network: string
  readonly contract: string
  readonly channelId: string
  readonly config: ChannelConfig
  readonly withdrawRequestedAt: number
  readonly claimedBefore: string
  readonly claimedAfter: string
  readonly transaction: string
  readonly ledger: number
  readonly closedAt: number
  /** The watchtower's account, G…; its key signs the proof. */
  readonly watcher: string
  readonly signature: string
}

const proofDigest = ({ signature: _, ...stated }: WatchProof): Uint8Array =>
  Buffer.from(sha256(`tollkeeper-watch-proof-1\n${canonical(stated)}`), "hex")

export const signProof = (signer: Signer, stated: Omit<WatchProof, "format" | "watcher" | "signature">): WatchProof => {
  const unsigned = { ...stated, format: "tollkeeper-watch-proof-1", watcher: signer.address, signature: "" } as const
  return { ...unsigned, signature: signer.sign(proofDigest(unsigned)) }
}

/** Whether the watcher signed the proof. Its transaction on the ledger shows whether the statement is true. */
export const isProof = (proof: WatchProof): boolean => {
  try {
    return isSignedBy(proof.watcher, proofDigest(proof), proof.signature)
  } catch {
    return false
  }
}
