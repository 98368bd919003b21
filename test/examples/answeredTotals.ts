// Answers to a voucher for 400 in all at a price of 100, in the channel "ab", for every buyer: what they may say, with
// the total that follows, and what contradicts the voucher.

export const fittings: ReadonlyArray<readonly [object, bigint]> = [
  [{ chargedAmount: "100", channelState: { channelId: "ab", chargedCumulativeAmount: "400" } }, 400n],
  [{ chargedAmount: "40", channelState: { channelId: "ab", chargedCumulativeAmount: "340" } }, 340n],
  [{ chargedAmount: "0", channelState: { channelId: "ab", chargedCumulativeAmount: "300" } }, 300n],
  [{ chargedAmount: "40", channelState: { channelId: "ab" } }, 340n],
  [{ channelState: { chargedCumulativeAmount: "340" } }, 340n],
  // Without a total the whole voucher counts as charged.
  [{ channelState: { channelId: "ab", balance: "1000" } }, 400n],
  [{}, 400n]
]

export const contradictions: ReadonlyArray<readonly [object, RegExp]> = [
  [{ chargedAmount: "101", channelState: { channelId: "ab", chargedCumulativeAmount: "401" } }, /charges 101/],
  [{ chargedAmount: "-1" }, /charges -1/],
  [
    { chargedAmount: "40", channelState: { channelId: "ab", chargedCumulativeAmount: "400" } },
    /total is 400, after 300/
  ],
  [{ chargedAmount: "40", channelState: { channelId: "ab", chargedCumulativeAmount: "40" } }, /total is 40, after 300/],
  [{ channelState: { channelId: "ab", chargedCumulativeAmount: "401" } }, /total is 401/],
  [{ channelState: { channelId: "ab", chargedCumulativeAmount: "299" } }, /total is 299/],
  [{ channelState: { channelId: "ab", chargedCumulativeAmount: "0340" } }, /total is 0340/],
  [{ chargedAmount: "100", channelState: { channelId: "cd", chargedCumulativeAmount: "400" } }, /another channel/]
]
