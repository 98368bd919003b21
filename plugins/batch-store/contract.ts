// The backoff of a channel after a failed single claim, for the store's claimer and for sellers that claim by
// themselves. It is short while the payer withdraws, otherwise a tenth of the time that the channel's charges have
// waited. Also the fact that reports a lost amount. Pure.

/** Minimum, and the value while a withdrawal is started, seconds. */
const pauseMin = 60
/** Maximum, seconds. */
const pauseMax = 3_600

export const claimPauseSeconds = (isWithdrawing: boolean, waitedSeconds: number): number =>
  isWithdrawing ? pauseMin : Math.min(pauseMax, Math.max(pauseMin, waitedSeconds / 10))

/** Fact: a payer has withdrawn charged funds. One fact for each channel and amount. Its data is `ChannelLost`. */
export const channelLostType = "channel.lost"

export interface ChannelLost {
  readonly network: string
  readonly channelId: string
  readonly payer: string
  readonly payTo: string
  readonly asset: string
  /** Charged amount in atomic units, like the lost amount. */
  readonly charged: string
  readonly lost: string
}
