// The backoff of a channel whose claim failed by itself, for the store's claimer and for sellers that claim by
// themselves: short while its payer withdraws, otherwise a tenth of the time that its charges have waited. Also the
// fact that reports a lost amount. Pure.

/** At least, and while a withdrawal is started, seconds. */
const pauseMin = 60
/** At most, seconds. */
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
  /** Atomic units, like what of it is lost. */
  readonly charged: string
  readonly lost: string
}
