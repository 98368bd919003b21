// Plans the sponsor's operations for its channels, from the table's rows and the ledger's accounts. Pure.
import type { SponsorOperation } from "../../stellar/Envelope.ts"
import type { LedgerAccount } from "../../stellar/LedgerEntry.ts"
import type { ChannelRow } from "./ChannelRows.ts"

const operationsMax = 100
/**
 * Maximum merges of a transaction. Each merged account signs it too, and a transaction has at most twenty signatures.
 */
const mergesMax = 19

export interface MaintenanceSnapshot {
  readonly kept: ReadonlyArray<ChannelRow>
  /** Channels to merge back, and channels with an open merge. */
  readonly leaving: ReadonlyArray<ChannelRow>
  /** Their accounts on the ledger, by address, as of a ledger. */
  readonly accounts: ReadonlyMap<string, LedgerAccount>
  readonly asOf: number
}

/** Creates missing accounts and funds low ones. Otherwise merges superfluous channels. */
export const planMaintenance = (
  { accounts, asOf, kept, leaving }: MaintenanceSnapshot,
  sponsor: string,
  balanceStroopsMin: bigint
): ReadonlyArray<SponsorOperation> => {
  const upkeep = kept.flatMap(({ address }): ReadonlyArray<SponsorOperation> => {
    const account = accounts.get(address)
    if (account === undefined) return [{ _tag: "Create", account: address, balanceStroops: balanceStroopsMin }]
    return account.balanceStroops < balanceStroopsMin / 2n
      ? [{ _tag: "Fund", account: address, amountStroops: balanceStroopsMin - account.balanceStroops }]
      : []
  })
  if (upkeep.length > 0) return upkeep.slice(0, operationsMax)
  // Before the bound of its last use, a transaction of the channel could still land.
  const idle = leaving.filter(
    (row) => !row.held && !row.leased && accounts.has(row.address) && asOf >= Number(row.sequence_ledger)
  )
  return idle.slice(0, mergesMax).map(({ address }) => ({ _tag: "Merge", account: address, into: sponsor }))
}

/** The balance that the operations spend. Merges return their balance. */
export const costOf = (chores: ReadonlyArray<SponsorOperation>): bigint =>
  chores.reduce(
    (sum, one) => sum + (one._tag === "Create" ? one.balanceStroops : one._tag === "Fund" ? one.amountStroops : 0n),
    0n
  )
