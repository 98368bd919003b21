// The ledgers and seconds of an `upto` authorization's validity.
import type { LedgerTime } from "../../kernel/ledger/LedgerClock.ts"
import { credentialsOf } from "../../kernel/stellar/AuthEntry.ts"
import type { CheckError } from "./refusals.ts"
import type { SettleArgs, SettleCall } from "./UptoWire.ts"

/** Ledgers that must remain for a transaction to be built, sent and included. */
const ledgersLeftMin = 2

/**
 * The first ledger for which an authorization is valid. A window in seconds begins with the first ledger that closes in
 * it, estimated from the ledger's mean close interval.
 */
export const firstLedgerOf = ({ beginsAt, validAfter = 0 }: SettleArgs, time: LedgerTime): number => {
  if (beginsAt === undefined || beginsAt <= BigInt(time.closedAtSeconds)) return validAfter
  const seconds = Number(beginsAt - BigInt(time.closedAtSeconds))
  return Math.max(validAfter, time.sequence + Math.ceil(seconds / time.secondsPerLedger))
}

/** The last second for which an authorization is valid; undefined if its window is in ledgers only. */
export const lastSecondOf = ({ args: { endsAt }, profile }: SettleCall): bigint | undefined =>
  endsAt === undefined ? undefined : profile.lastSecondCounts ? endsAt : endsAt - 1n

/** The last ledger for which an authorization is valid: the contract's deadline or the signature's end. */
export const lastLedgerOf = ({ args, auth }: SettleCall): number =>
  Math.min(args.deadline ?? 0, credentialsOf(auth[0]!)?.signatureExpirationLedger ?? 0)

export const checkExpiry = (lastLedger: number, lastSecond: bigint | undefined, time: LedgerTime): CheckError => {
  const ledger = time.sequence + ledgersLeftMin
  const second = BigInt(Math.ceil(time.closedAtSeconds + ledgersLeftMin * time.secondsPerLedger))
  if (lastLedger < ledger)
    return ["invalid_upto_ledger_settlement_expired", `the authorization ends before ledger ${ledger}`]
  return lastSecond !== undefined && lastSecond < second
    ? ["invalid_upto_ledger_settlement_expired", `the authorization ends before second ${second}`]
    : undefined
}
