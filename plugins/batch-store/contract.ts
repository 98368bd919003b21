// How long a channel whose claim failed by itself is left alone, for the store's claimer and for sellers that claim by
// themselves: shortly while its payer withdraws, else for a tenth of the time that its charges have waited; and the
// fact of what was lost. Pure.

/** At least, and while a withdrawal is started, seconds. */
const pauseMin = 60
/** At most, seconds. */
const pauseMax = 3_600

export const claimPauseSeconds = (isWithdrawing: boolean, waitedSeconds: number): number =>
  isWithdrawing ? pauseMin : Math.min(pauseMax, Math.max(pauseMin, waitedSeconds / 10))

/** The fact that a payer has withdrawn what was charged: one for a channel and an amount. Its data is `ChannelLost`. */
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
