// A closed ledger as a node streams it: header, transaction set, results and meta. Built on request from the history.
import { keyOfString } from "../engine/state/LedgerKeys.ts"
import type { NetworkSettings } from "../engine/state/NetworkSettings.ts"
import { changesOf } from "../node/recordOf.ts"
import { headerOf } from "../node/Header.ts"
import type { LedgerRecord } from "../node/History.ts"
import { type Phase, transactionSetBytes } from "../node/transactionSet.ts"
import { codecs, type LedgerCloseMeta } from "../transaction/Wire.ts"

const hexBytes = (hex: string): Uint8Array =>
  Uint8Array.from({ length: hex.length / 2 }, (_, i) => parseInt(hex.slice(2 * i, 2 * i + 2), 16))

const phaseOf = (record: LedgerRecord, soroban: boolean): Phase => {
  const transactions = record.transactions.filter(({ isSoroban }) => isSoroban === soroban)
  return {
    envelopes: transactions.map(({ envelope }) => envelope),
    baseFeeStroops: transactions[0]?.inclusionFeeStroops ?? 0n
  }
}

/** Header with its hash, as ledger lists carry it. */
export const headerEntry = (settings: NetworkSettings, record: LedgerRecord) => ({
  hash: record.hash,
  header: headerOf(settings, record),
  ext: { v: 0 as const }
})

export const ledgerCloseMeta = (settings: NetworkSettings, record: LedgerRecord): LedgerCloseMeta => {
  const entry = headerEntry(settings, record)
  return {
    v: 2,
    v2: {
      ext: { v: 0 },
      ledgerHeader: entry,
      txSet: codecs.GeneralizedTransactionSet.decode(
        transactionSetBytes(record.previousHash, phaseOf(record, false), phaseOf(record, true))
      ),
      txProcessing: record.transactions.map((transaction) => ({
        ext: { v: 0 as const },
        result: {
          transactionHash: hexBytes(transaction.hash),
          result: codecs.TransactionResult.decode(transaction.result)
        },
        feeProcessing: changesOf(transaction.feeChanges),
        txApplyProcessing: codecs.TransactionMeta.decode(transaction.meta),
        postTxApplyFeeProcessing: changesOf(transaction.refundChanges)
      })),
      upgradesProcessing: [],
      scpInfo: [],
      // The average of the network's samples, as nodes report it and as the configuration entry has it.
      totalByteSizeOfLiveSorobanState: settings.fees.stateSizeBytes,
      evictedKeys: record.evicted.map(keyOfString)
    }
  }
}
