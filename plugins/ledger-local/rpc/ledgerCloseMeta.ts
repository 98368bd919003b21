// A closed ledger in the form in which a node streams it: header, transaction set, results and meta. Built when asked
// for, from what the history keeps.
import { codec } from "../engine/xdr/Xdr.ts"
import { keyOfString } from "../engine/state/LedgerKeys.ts"
import type { NetworkSettings } from "../engine/state/NetworkSettings.ts"
import { changesOf } from "../node/changesBytes.ts"
import { headerOf } from "../node/Header.ts"
import type { LedgerRecord, TransactionRecord } from "../node/History.ts"
import { codecs, type LedgerCloseMeta } from "../transaction/Wire.ts"

const hexBytes = (hex: string): Uint8Array =>
  Uint8Array.from({ length: hex.length / 2 }, (_, i) => parseInt(hex.slice(2 * i, 2 * i + 2), 16))

const envelopes = (transactions: ReadonlyArray<TransactionRecord>) =>
  transactions.map(({ envelope }) => codec.TransactionEnvelope.decode(envelope))

/** Header with its hash, as ledger lists carry it. */
export const headerEntry = (settings: NetworkSettings, record: LedgerRecord) => ({
  hash: record.hash,
  header: headerOf(settings, record),
  ext: { v: 0 as const }
})

export const ledgerCloseMeta = (settings: NetworkSettings, record: LedgerRecord): LedgerCloseMeta => {
  const entry = headerEntry(settings, record)
  const classic = record.transactions.filter(({ isSoroban }) => !isSoroban)
  const soroban = record.transactions.filter(({ isSoroban }) => isSoroban)
  return {
    v: 2,
    v2: {
      ext: { v: 0 },
      ledgerHeader: entry,
      txSet: {
        v: 1,
        v1TxSet: {
          previousLedgerHash: entry.header.previousLedgerHash,
          phases: [
            {
              v: 0,
              v0Components:
                classic.length === 0
                  ? []
                  : [
                      {
                        type: 0,
                        txsMaybeDiscountedFee: { baseFee: classic[0]!.inclusionFeeStroops, txs: envelopes(classic) }
                      }
                    ]
            },
            {
              v: 1,
              parallelTxsComponent: {
                baseFee: soroban[0]?.inclusionFeeStroops ?? null,
                executionStages: soroban.length === 0 ? [] : [[envelopes(soroban)]]
              }
            }
          ]
        }
      },
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
      totalByteSizeOfLiveSorobanState: 0n,
      evictedKeys: record.evicted.map(keyOfString)
    }
  }
}
