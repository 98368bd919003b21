// Ledger headers of the embedded ledger: a true chain of hashes over this ledger's data. Fields that it does not use
// (the bucket list, consensus values) are zero, so a header decodes everywhere and proves only order and content.
// Headers are built on request; the history keeps only their parts.
import type { EngineCrypto } from "../engine/host/Random.ts"
import type { NetworkSettings } from "../engine/state/NetworkSettings.ts"
import type { LedgerHeader } from "../transaction/Wire.ts"
import { codecs } from "../transaction/Wire.ts"
import type { LedgerRecord } from "./History.ts"

export const ZERO_HASH = new Uint8Array(32)
/** All the native stroops there are, as on the public network after 2019. */
export const TOTAL_STROOPS = 50_001_806_812_0000000n

/** The parts of a header: a ledger without its hash, transactions and evictions. */
type HeaderParts = Omit<LedgerRecord, "hash" | "transactions" | "evicted">

export const headerOf = (settings: NetworkSettings, parts: HeaderParts): LedgerHeader => ({
  ledgerVersion: settings.protocolVersion,
  previousLedgerHash: parts.previousHash,
  scpValue: { txSetHash: parts.transactionSetHash, closeTime: parts.closeTime, upgrades: [], ext: { v: 0 } },
  txSetResultHash: parts.resultHash,
  bucketListHash: ZERO_HASH,
  ledgerSeq: parts.sequence,
  totalCoins: TOTAL_STROOPS,
  feePool: parts.feePoolStroops,
  inflationSeq: 0,
  idPool: parts.lastOfferId,
  baseFee: Number(settings.baseFeeStroops),
  baseReserve: Number(settings.baseReserveStroops),
  maxTxSetSize: 1_000,
  skipList: [ZERO_HASH, ZERO_HASH, ZERO_HASH, ZERO_HASH],
  ext: settings.ledgerFlags === 0 ? { v: 0 } : { v: 1, v1: { flags: settings.ledgerFlags, ext: { v: 0 } } }
})

export const headerBytes = (settings: NetworkSettings, parts: HeaderParts): Uint8Array =>
  codecs.LedgerHeader.encode(headerOf(settings, parts))

export const seal = (
  crypto: EngineCrypto,
  settings: NetworkSettings,
  parts: HeaderParts,
  transactions: LedgerRecord["transactions"],
  evicted: LedgerRecord["evicted"] = []
): LedgerRecord => ({ ...parts, transactions, evicted, hash: crypto.sha256(headerBytes(settings, parts)) })
