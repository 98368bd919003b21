// The network's fee arithmetic for contract transactions: the part that is never refunded, the part charged by use, and
// the rent of new, grown and extended entries. All in `bigint` stroops, rounding as the network rounds (up, toward the
// network). Follows the fee rules of protocol 23 and later (separate disk reads and writes, rent by the size of the
// live state).
import type { FeeRates, NetworkSettings } from "./NetworkSettings.ts"
import type { SorobanResources } from "../xdr/Xdr.ts"
import { isDiskKey } from "./LedgerKeys.ts"

const INSTRUCTIONS_INCREMENT = 10_000n
const KB = 1_024n
/** Added to a transaction's size for the result the archive keeps of it. */
const RESULT_BYTES = 300n
/** Size of a TTL entry, charged as written when a TTL changes. */
const TTL_ENTRY_BYTES = 48n
const RENT_1KB_FLOOR_STROOPS = 1_000n
const CODE_RENT_DISCOUNT = 3n
/** Before this protocol the discounted rent of code is rounded down. */
const CODE_RENT_ROUNDS_UP_SINCE = 26

const ceilDivide = (a: bigint, b: bigint): bigint => (a >= 0n ? (a + b - 1n) / b : a / b)

const per = (amount: bigint, rate: bigint, increment: bigint): bigint => ceilDivide(amount * rate, increment)

/**
 * The rent of 1 KB for one denominator's worth of ledgers, from the size of the live state; never below 1,000 stroops.
 */
export const rent1KbStroops = (fees: FeeRates): bigint => {
  const target = fees.stateTargetSizeBytes > 1n ? fees.stateTargetSizeBytes : 1n
  const slope = fees.rent1KbHighStroops - fees.rent1KbLowStroops
  const rate =
    fees.stateSizeBytes < fees.stateTargetSizeBytes
      ? ceilDivide(slope * fees.stateSizeBytes, target) + fees.rent1KbLowStroops
      : fees.rent1KbHighStroops +
        ceilDivide(slope * (fees.stateSizeBytes - fees.stateTargetSizeBytes) * fees.rentGrowthFactor, target)
  return rate < RENT_1KB_FLOOR_STROOPS ? RENT_1KB_FLOOR_STROOPS : rate
}

/**
 * The non-refundable part of the resource fee: compute, disk reads, writes, history and bandwidth. `txSizeBytes` is the
 * size of the (inner) envelope. Archived entries restored on the way count as disk reads; give their number.
 */
export const nonRefundableFeeStroops = (
  settings: NetworkSettings,
  resources: SorobanResources,
  txSizeBytes: number,
  archivedEntries = 0
): bigint => {
  const { fees } = settings
  const { readOnly, readWrite } = resources.footprint
  let diskEntries = archivedEntries
  for (const key of readOnly) if (isDiskKey(key)) diskEntries++
  for (const key of readWrite) if (isDiskKey(key)) diskEntries++
  const size = BigInt(txSizeBytes)
  return (
    per(BigInt(resources.instructions), fees.instructionsPer10kStroops, INSTRUCTIONS_INCREMENT) +
    fees.diskReadEntryStroops * BigInt(diskEntries) +
    fees.writeEntryStroops * BigInt(readWrite.length) +
    per(BigInt(resources.diskReadBytes), fees.diskRead1KbStroops, KB) +
    per(BigInt(resources.writeBytes), fees.write1KbStroops, KB) +
    per(size + RESULT_BYTES, fees.historical1KbStroops, KB) +
    per(size, fees.bandwidth1KbStroops, KB)
  )
}

export const eventsFeeStroops = (settings: NetworkSettings, bytes: number): bigint =>
  per(BigInt(bytes), settings.fees.events1KbStroops, KB)

/**
 * One entry's change as rent sees it. Sizes are of the whole entry's XDR; a new entry has old size and old live-until
 * 0.
 */
export interface RentChange {
  readonly persistent: boolean
  /** Contract code pays a third of the rent of data. */
  readonly isCode: boolean
  readonly oldSizeBytes: number
  readonly newSizeBytes: number
  readonly oldLiveUntil: number
  readonly newLiveUntil: number
}

/** The rent of extending and growing entries, and of the TTL entries written for it. */
export const rentFeeStroops = (
  settings: NetworkSettings,
  changes: ReadonlyArray<RentChange>,
  ledgerSeq: number
): bigint => {
  const { fees } = settings
  const rate = rent1KbStroops(fees)
  const discounted = (rent: bigint): bigint =>
    settings.protocolVersion < CODE_RENT_ROUNDS_UP_SINCE
      ? rent / CODE_RENT_DISCOUNT
      : ceilDivide(rent, CODE_RENT_DISCOUNT)
  let fee = 0n
  let extended = 0n
  for (const change of changes) {
    const denominator = change.persistent ? fees.persistentRentDenominator : fees.temporaryRentDenominator
    const rentOf = (bytes: number, ledgers: number): bigint =>
      ceilDivide(BigInt(bytes) * rate * BigInt(ledgers), KB * denominator)
    const isNew = change.oldSizeBytes === 0 && change.oldLiveUntil === 0
    const paidUntil = isNew ? ledgerSeq - 1 : change.oldLiveUntil
    let rent = 0n
    if (change.newLiveUntil > paidUntil) rent += rentOf(change.newSizeBytes, change.newLiveUntil - paidUntil)
    if (!isNew && change.newSizeBytes > change.oldSizeBytes && change.oldLiveUntil >= ledgerSeq) {
      rent += rentOf(change.newSizeBytes - change.oldSizeBytes, change.oldLiveUntil - ledgerSeq + 1)
    }
    fee += change.isCode ? discounted(rent) : rent
    if (change.oldLiveUntil < change.newLiveUntil) extended++
  }
  return fee + fees.writeEntryStroops * extended + per(TTL_ENTRY_BYTES * extended, fees.write1KbStroops, KB)
}

/**
 * The least inclusion fee (the bid outside of resources): the base fee per operation, a fee bump counting as one more.
 */
export const minimumInclusionFeeStroops = (settings: NetworkSettings, operations: number, isFeeBump: boolean): bigint =>
  settings.baseFeeStroops * BigInt(operations + (isFeeBump ? 1 : 0))
