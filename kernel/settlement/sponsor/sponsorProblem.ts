// Whether the sponsor could pay for one more settlement, from its last reading. Pure. Its account must cover, above its
// reserve and the maximum cost of open settlements, the maximum cost of another; a usable channel must exist; and the
// network's inclusion fee must be within the bid's ceiling (rules 1).
import { bidCeiling, type FeeCeilings } from "../../config/Network.ts"

/** What was last read of the sponsor and what it owes. All amounts in stroops. */
export interface SponsorStatus {
  /** Absent when the account is not on the ledger. */
  readonly account: { readonly balanceStroops: bigint; readonly reserveStroops: bigint } | undefined
  /** The most that the open settlements may still cost. */
  readonly owedStroops: bigint
  /** Channels with a key and a known number, and those of them whose account is on the ledger. */
  readonly channelsReady: number
  readonly channelsUsable: number
  /** The least that one of the usable channels has; absent when there is none. */
  readonly channelStroopsLeast: bigint | undefined
  /** Settlements that are open, of all sponsors. */
  readonly open: number
  /** Seconds since the oldest open settlement was recorded; absent when none is open. */
  readonly oldestOpenSeconds: number | undefined
}

/** What the sponsor may still spend; below zero when it owes more than it has. */
export const spendable = ({ account, owedStroops }: SponsorStatus): bigint =>
  account === undefined ? 0n : account.balanceStroops - account.reserveStroops - owedStroops

/**
 * Whether all that is missing is on its way, as it is after a first start: the channels that this sponsor is about to
 * open, or its own account where a faucet funds it.
 */
export const isOpening = (status: SponsorStatus, ceilings: FeeCeilings, isFundedByFaucet: boolean): boolean =>
  status.account === undefined
    ? isFundedByFaucet
    : status.channelsUsable === 0 && spendable(status) >= ceilings.totalStroopsMax

/** Why a sponsor cannot pay for one more transaction, with the address to fund; nothing when it can. */
export const fundingProblem = (
  status: SponsorStatus,
  { totalStroopsMax }: FeeCeilings,
  sponsor: string
): string | undefined => {
  if (status.account === undefined) return `the sponsor's account is not on the ledger; send XLM to ${sponsor}`
  if (spendable(status) >= totalStroopsMax) return undefined
  return `the sponsor's balance does not cover another transaction; send XLM to ${sponsor}`
}

/** Why no settlement under these ceilings can be paid for now, as a sentence; nothing when one can. */
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
