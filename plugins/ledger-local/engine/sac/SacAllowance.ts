// Allowances of the asset contract: temporary entries with the amount that a spender may take from an owner, and the
// last ledger. After its last ledger an allowance reads as zero. Spending rewrites the remainder under the same expiry.
import { EntryType } from "../xdr/types.ts"
import type { ContractHost } from "../host/HostTypes.ts"
import { HostError } from "../host/HostError.ts"
import { contractDataKey, Durability } from "../state/LedgerKeys.ts"
import { SacError } from "./SacBalances.ts"
import { address, field, i128, readI128, readMap, readU32, structMap, sym, u32, vec } from "../xdr/ScVal.ts"
import { contractAddress, type LedgerKey, type ScAddress, type ScVal } from "../xdr/Xdr.ts"

interface Allowance {
  readonly amount: bigint
  readonly liveUntil: number
}

const valueKey = (from: ScAddress, spender: ScAddress): ScVal =>
  vec([sym("Allowance"), structMap({ from: address(from), spender: address(spender) })])

const keyOf = (host: ContractHost, from: ScAddress, spender: ScAddress): LedgerKey =>
  contractDataKey(contractAddress(host.frame.contractId), valueKey(from, spender), Durability.temporary)

const read = (host: ContractHost, key: LedgerKey): Allowance | undefined => {
  const entry = host.storage.get(key)
  if (entry?.data.type !== EntryType.contractData) return undefined
  const map = readMap(entry.data.contractData.val)
  const amount = field(map, "amount")
  const liveUntil = field(map, "live_until_ledger")
  if (amount === undefined || liveUntil === undefined)
    throw HostError.of("Value", "InvalidInput", "allowance is malformed")
  return { amount: readI128(amount), liveUntil: readU32(liveUntil) }
}

/** What `spender` may still take from `from`; 0 when absent or expired. */
export const allowanceOf = (host: ContractHost, from: ScAddress, spender: ScAddress): bigint => {
  const allowance = read(host, keyOf(host, from, spender))
  return allowance === undefined || allowance.liveUntil < host.input.ledgerSeq ? 0n : allowance.amount
}

/** Sets an allowance. A positive one must expire at or after the current ledger, none later than the maximum. */
export const writeAllowance = (
  host: ContractHost,
  from: ScAddress,
  spender: ScAddress,
  amount: bigint,
  liveUntil: number
): void => {
  const { ledgerSeq, settings } = host.input
  if (liveUntil > host.storage.maxLiveUntil) {
    throw HostError.contract(SacError.allowance, "live_until is greater than max", [
      u32(liveUntil),
      u32(settings.ttl.maxEntryLedgers)
    ])
  }
  if (amount > 0n && liveUntil < ledgerSeq) {
    throw HostError.contract(SacError.allowance, "live_until must be >= ledger sequence", [
      u32(liveUntil),
      u32(ledgerSeq)
    ])
  }
  const key = keyOf(host, from, spender)
  const known = read(host, key)
  if (known === undefined && amount <= 0n) return
  const val = structMap({ amount: i128(amount), live_until_ledger: u32(liveUntil) })
  const contract = contractAddress(host.frame.contractId)
  host.storage.put(key, {
    type: 6,
    contractData: { ext: { v: 0 }, contract, key: valueKey(from, spender), durability: 0, val }
  })
  if (amount > 0n && (known?.liveUntil ?? 0) < liveUntil) {
    const ledgers = Math.max(0, liveUntil - ledgerSeq)
    host.storage.extend(key, ledgers, ledgers)
  }
}

export const spendAllowance = (host: ContractHost, from: ScAddress, spender: ScAddress, amount: bigint): void => {
  const allowed = allowanceOf(host, from, spender)
  if (allowed < amount) {
    throw HostError.contract(SacError.allowance, "not enough allowance to spend", [i128(allowed), i128(amount)])
  }
  if (amount === 0n) return
  const known = read(host, keyOf(host, from, spender))
  if (known === undefined) throw HostError.of("Storage", "MissingValue", "allowance is missing")
  writeAllowance(host, from, spender, allowed - amount, known.liveUntil)
}
