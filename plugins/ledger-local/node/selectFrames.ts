// Selects the transactions of the next ledger from the queue: the best bids first, up to the limits in number and in
// instructions, and the price that all of them pay.
import type { NetworkSettings } from "../engine/state/NetworkSettings.ts"
import type { Frame } from "../transaction/Frame.ts"
import { type CloseLimit, instructionsOf } from "./CloseLimit.ts"

interface Selection {
  /** Classic transactions before those of contracts. */
  readonly frames: ReadonlyArray<Frame>
  /** What would have fitted, had the ledgers before not run out of time. */
  readonly deferred: ReadonlyArray<Frame>
  /** There was no room for all. */
  readonly isFull: boolean
}

/** Selects `candidates` in order; `mayGo` checks each one for which there is room. */
export const selectFrames = (
  candidates: ReadonlyArray<Frame>,
  limit: CloseLimit,
  { transactionsPerLedgerMax }: { readonly transactionsPerLedgerMax: number },
  mayGo: (frame: Frame) => boolean
): Selection => {
  const selected: Array<Frame> = []
  const deferred: Array<Frame> = []
  let isFull = false
  let instructions = 0
  for (const frame of candidates) {
    if (selected.length >= transactionsPerLedgerMax) {
      isFull = true
      break
    }
    if (frame.isSoroban && !limit.admits(instructions, frame)) {
      isFull = true
      if (limit.defers(instructions, frame)) deferred.push(frame)
      continue
    }
    if (!mayGo(frame)) continue
    selected.push(frame)
    instructions += instructionsOf(frame)
  }
  const frames = [...selected.filter(({ isSoroban }) => !isSoroban), ...selected.filter(({ isSoroban }) => isSoroban)]
  return { frames, deferred, isFull }
}

/** The least included bid if the ledger is full, otherwise the base fee; stroops an operation. */
export const priceOf = (
  frames: ReadonlyArray<Frame>,
  isFull: boolean,
  { settings }: { readonly settings: NetworkSettings }
): bigint => {
  const { baseFeeStroops } = settings
  if (!isFull || frames.length === 0) return baseFeeStroops
  const bids = frames.map((frame) => frame.inclusionFeeStroops / BigInt(frame.feeOperations))
  const least = bids.reduce((low, bid) => (bid < low ? bid : low))
  return least > baseFeeStroops ? least : baseFeeStroops
}
