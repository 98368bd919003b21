// The network's configuration entries, as `getLedgerEntries` returns them, built from this ledger's settings. So a
// client reads the fees, limits and lifetimes that really apply. Only transactions and instructions limit a whole
// ledger here. Parameters of memory, of consensus and of eviction are not used here and are absent.
import { cpuCosts } from "../engine/state/cpuCosts.ts"
import type { ConfigSettingEntry } from "../engine/xdr/Xdr.ts"
import { fromLatin1 } from "../engine/xdr/Xdr.ts"
import type { LedgerOptions } from "../node/Ledger.ts"

const UINT32_MAX = 0xffff_ffff

type Make = (options: LedgerOptions) => ConfigSettingEntry

/** The most that all transactions of a ledger may ask for together. */
const ofLedger = ({ transactionsPerLedgerMax }: LedgerOptions, each: number): number =>
  Math.min(UINT32_MAX, each * transactionsPerLedgerMax)

const compute: Make = ({ instructionsPerLedgerMax, settings: { fees, limits } }) => ({
  configSettingID: 1,
  contractCompute: {
    ledgerMaxInstructions: BigInt(instructionsPerLedgerMax),
    txMaxInstructions: BigInt(limits.txInstructionsMax),
    feeRatePerInstructionsIncrement: fees.instructionsPer10kStroops,
    txMemoryLimit: limits.txMemoryBytesMax
  }
})

const ledgerCost: Make = (options) => {
  const { fees, limits } = options.settings
  return {
    configSettingID: 2,
    contractLedgerCost: {
      ledgerMaxDiskReadEntries: ofLedger(options, limits.txDiskReadEntriesMax),
      ledgerMaxDiskReadBytes: ofLedger(options, limits.txDiskReadBytesMax),
      ledgerMaxWriteLedgerEntries: ofLedger(options, limits.txWriteEntriesMax),
      ledgerMaxWriteBytes: ofLedger(options, limits.txWriteBytesMax),
      txMaxDiskReadEntries: limits.txDiskReadEntriesMax,
      txMaxDiskReadBytes: limits.txDiskReadBytesMax,
      txMaxWriteLedgerEntries: limits.txWriteEntriesMax,
      txMaxWriteBytes: limits.txWriteBytesMax,
      feeDiskReadLedgerEntry: fees.diskReadEntryStroops,
      feeWriteLedgerEntry: fees.writeEntryStroops,
      feeDiskRead1Kb: fees.diskRead1KbStroops,
      sorobanStateTargetSizeBytes: fees.stateTargetSizeBytes,
      rentFee1KbSorobanStateSizeLow: fees.rent1KbLowStroops,
      rentFee1KbSorobanStateSizeHigh: fees.rent1KbHighStroops,
      sorobanStateRentFeeGrowthFactor: Number(fees.rentGrowthFactor)
    }
  }
}

const costs: Make = ({ settings }) => ({
  configSettingID: 6,
  contractCostParamsCpuInsns: (Object.keys(cpuCosts) as Array<keyof typeof cpuCosts>).map((name) => ({
    ext: { v: 0 },
    constTerm: BigInt(settings.cpuCosts[name].constant),
    linearTerm: BigInt(settings.cpuCosts[name].linear128)
  }))
})

/** How often the size of the state is sampled, and how many samples count: as on the test network. */
const WINDOW = { samples: 30, period: 64 } as const

const archival: Make = ({ settings: { fees, ttl } }) => ({
  configSettingID: 10,
  stateArchivalSettings: {
    maxEntryTtl: ttl.maxEntryLedgers,
    minTemporaryTtl: ttl.minTemporaryLedgers,
    minPersistentTtl: ttl.minPersistentLedgers,
    persistentRentRateDenominator: fees.persistentRentDenominator,
    tempRentRateDenominator: fees.temporaryRentDenominator,
    maxEntriesToArchive: 1_000,
    liveSorobanStateSizeWindowSampleSize: WINDOW.samples,
    liveSorobanStateSizeWindowSamplePeriod: WINDOW.period,
    evictionScanSize: 500_000,
    startingEvictionScanLevel: 7
  }
})

/** By the number of the entry. */
const makers: ReadonlyMap<number, Make> = new Map<number, Make>([
  [0, ({ settings }) => ({ configSettingID: 0, contractMaxSizeBytes: settings.limits.contractCodeBytesMax })],
  [1, compute],
  [2, ledgerCost],
  [
    3,
    ({ settings }) => ({
      configSettingID: 3,
      contractHistoricalData: { feeHistorical1Kb: settings.fees.historical1KbStroops }
    })
  ],
  [
    4,
    ({ settings: { fees, limits } }) => ({
      configSettingID: 4,
      contractEvents: {
        txMaxContractEventsSizeBytes: limits.txEventsBytesMax,
        feeContractEvents1Kb: fees.events1KbStroops
      }
    })
  ],
  [
    5,
    (options) => ({
      configSettingID: 5,
      contractBandwidth: {
        ledgerMaxTxsSizeBytes: ofLedger(options, options.settings.limits.txSizeBytesMax),
        txMaxSizeBytes: options.settings.limits.txSizeBytesMax,
        feeTxSize1Kb: options.settings.fees.bandwidth1KbStroops
      }
    })
  ],
  [6, costs],
  [8, ({ settings }) => ({ configSettingID: 8, contractDataKeySizeBytes: settings.limits.dataKeyBytesMax })],
  [9, ({ settings }) => ({ configSettingID: 9, contractDataEntrySizeBytes: settings.limits.dataEntryBytesMax })],
  [10, archival],
  [
    11,
    ({ transactionsPerLedgerMax }) => ({
      configSettingID: 11,
      contractExecutionLanes: { ledgerMaxTxCount: transactionsPerLedgerMax }
    })
  ],
  [
    12,
    ({ settings }) => ({
      configSettingID: 12,
      liveSorobanStateSizeWindow: Array.from({ length: WINDOW.samples }, () => settings.fees.stateSizeBytes)
    })
  ],
  [14, () => ({ configSettingID: 14, contractParallelCompute: { ledgerMaxDependentTxClusters: 1 } })],
  [
    15,
    ({ settings: { fees, limits } }) => ({
      configSettingID: 15,
      contractLedgerCostExt: { txMaxFootprintEntries: limits.txFootprintEntriesMax, feeWrite1Kb: fees.write1KbStroops }
    })
  ],
  [
    17,
    ({ settings }) => ({
      configSettingID: 17,
      frozenLedgerKeys: { keys: [...settings.frozenKeys].map(fromLatin1) }
    })
  ],
  [
    19,
    ({ settings }) => ({
      configSettingID: 19,
      freezeBypassTxs: { txHashes: [...settings.freezeBypass].map(fromLatin1) }
    })
  ]
])

/** The entry with this number; undefined for an entry that this ledger does not use. */
export const configSetting = (options: LedgerOptions, id: number): ConfigSettingEntry | undefined =>
  makers.get(id)?.(options)
