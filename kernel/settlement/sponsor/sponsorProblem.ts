// Whether the sponsor could pay for one more settlement, from its last reading. Pure. Its account must cover, above its
// reserve and the maximum cost of open settlements, the maximum cost of another; a usable channel must exist; and the
// network's inclusion fee must be within the bid's ceiling (rules 1).
import { bidCeiling, type FeeCeilings } from "../../config/Network.ts"

/** The last reading of the sponsor, and its open costs. All amounts in stroops. */
export interface SponsorStatus {
  /** Absent if the account is not on the ledger. */
  readonly account: { readonly balanceStroops: bigint; readonly reserveStroops: bigint } | undefined
  /** Maximum remaining cost of the open settlements. */
  readonly owedStroops: bigint
  /** Channels with a key and a known sequence number, and those of them with an account on the ledger. */
  readonly channelsReady: number
  readonly channelsUsable: number
  /** The smallest balance among the usable channels; absent without any. */
  readonly channelStroopsLeast: bigint | undefined
  /** Open settlements of all sponsors. */
  readonly open: number
  /** Seconds since the oldest open settlement was recorded; absent without one. */
  readonly oldestOpenSeconds: number | undefined
}

/** The amount that the sponsor may still spend; negative if it owes more than it has. */
export const spendable = ({ account, owedStroops }: SponsorStatus): bigint =>
  account === undefined ? 0n : account.balanceStroops - account.reserveStroops - owedStroops

/**
 * Whether the missing parts will arrive by themselves, as after a first start: the channels that this sponsor is about
 * to open, or its own account if a faucet funds it.
 */
export const isOpening = (status: SponsorStatus, ceilings: FeeCeilings, isFundedByFaucet: boolean): boolean =>
  status.account === undefined
    ? isFundedByFaucet
    : status.channelsUsable === 0 && spendable(status) >= ceilings.totalStroopsMax

/** The reason why a sponsor cannot pay for one more transaction, with the address to fund; undefined if it can. */
export const fundingProblem = (
  status: SponsorStatus,
  { totalStroopsMax }: FeeCeilings,
  sponsor: string
): string | undefined => {
  if (status.account === undefined) return `the sponsor's account is not on the ledger; send XLM to ${sponsor}`
  if (spendable(status) >= totalStroopsMax) return undefined
  return `the sponsor's balance does not cover another transaction; send XLM to ${sponsor}`
}

/** The reason why no settlement under these ceilings can be paid for now, as a sentence; undefined if one can. */
export const sponsorProblem = (
  status: SponsorStatus,
  askedStroops: bigint,
  ceilings: FeeCeilings,
  sponsor: string,
  openMax: number
): string | undefined => {
  const unfunded = fundingProblem(status, ceilings, sponsor)
  if (unfunded !== undefined) return unfunded
  if (status.channelsUsable === 0) return "no channel can be used"
  if (status.open >= openMax) return "too many settlements are open"
  return askedStroops > bidCeiling(ceilings, 0n) ? "the network asks more for inclusion than may be bid" : undefined
}
