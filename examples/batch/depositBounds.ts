// A buyer's own limits on deposits by `batch-settlement`: it follows a seller's announcement within them, or refuses
// it.
import { leastTimes } from "../client/preparedBatch.mjs"
import { usualAssets } from "../client/preparedBytes.mjs"

export interface DepositBounds {
  /** A deposit is this many times the price, or a seller's announced minimum, up to ten times that. Default 100. */
  readonly depositTimes?: number
  /** Maximum of one deposit, atomic units; larger ones are refused. Default 10,000,000: one USDC. */
  readonly depositMax?: bigint
  /** Maximum seconds until a buyer gets its money back without the seller. Default a day. */
  readonly withdrawDelayMax?: number
  /** Contracts of the assets to deposit. Default USDC and XLM of the terms' network. */
  readonly assets?: ReadonlyArray<string>
}

const depositMaxDefault = 10_000_000n
const withdrawDelayMin = 900
const withdrawDelayMaxDefault = 86_400

/** Throws for terms for which this buyer opens no channel. */
export const checkDepositTerms = (
  { asset, extra, network }: any,
  { assets, withdrawDelayMax }: DepositBounds
): void => {
  if (!(assets ?? usualAssets(network)).includes(asset))
    throw new Error(`${asset} is not an asset that this buyer pays in`)
  const { withdrawDelay } = extra
  const most = withdrawDelayMax ?? withdrawDelayMaxDefault
  if (!Number.isSafeInteger(withdrawDelay) || withdrawDelay < withdrawDelayMin || withdrawDelay > most)
    throw new Error(`a withdraw delay of ${withdrawDelay} seconds is not of ${withdrawDelayMin} to ${most}`)
}

/** The deposit in atomic units if `missing` are needed. Throws above the buyer's limits. */
export const depositFor = ({ amount: price, extra }: any, bounds: DepositBounds, missing: bigint): bigint => {
  const { depositMax = depositMaxDefault, depositTimes = 100 } = bounds
  const announced = /^\d{1,39}$/.test(extra.minDeposit ?? "") ? BigInt(extra.minDeposit) : 0n
  const least = announced > missing ? announced : missing
  if (least > depositMax || announced > BigInt(price) * BigInt(depositTimes * leastTimes))
    throw new Error(`a deposit of ${least} is above this buyer's limit`)
  const wished = BigInt(price) * BigInt(depositTimes)
  const bounded = wished > depositMax ? depositMax : wished
  return bounded > least ? bounded : least
}

/** The terms that the buyer accepted, without the additions of a corrective answer. */
export const plain = ({ extra, ...terms }: any): any => {
  const { channelState: _, voucherState: __, ...rest } = extra ?? {}
  return { ...terms, extra: rest }
}
