// Every network setting that the engine computes with, as data: protocol version, fees, times to live, limits, reserve.
// Money is `bigint` stroops, ledgers and sizes are numbers. `testnet` has the test network's values at protocol 27;
// `withConfigSettings` applies the network's configuration entries to a profile, which lets a replay follow upgrades.
import { type CpuCosts, cpuCosts, withCpuCosts } from "./cpuCosts.ts"
import type { KeyString } from "./LedgerKeys.ts"
import { type ConfigSettingEntry, latin1 } from "../xdr/Xdr.ts"

export interface FeeRates {
  /** Per 10,000 instructions or part. */
  readonly instructionsPer10kStroops: bigint
  readonly diskReadEntryStroops: bigint
  readonly writeEntryStroops: bigint
  readonly diskRead1KbStroops: bigint
  readonly write1KbStroops: bigint
  readonly historical1KbStroops: bigint
  readonly events1KbStroops: bigint
  readonly bandwidth1KbStroops: bigint
  /** Rent of 1 KB at an empty state, below the target size; may be negative (the rate has a floor). */
  readonly rent1KbLowStroops: bigint
  /** Rent of 1 KB at the target size of the state. */
  readonly rent1KbHighStroops: bigint
  readonly stateTargetSizeBytes: bigint
  readonly rentGrowthFactor: bigint
  /** Average size of the live contract state, which determines the rent rate. */
  readonly stateSizeBytes: bigint
  readonly persistentRentDenominator: bigint
  readonly temporaryRentDenominator: bigint
}

interface TtlSettings {
  readonly minTemporaryLedgers: number
  readonly minPersistentLedgers: number
  /** An entry lives at most this many ledgers, the current one counted. */
  readonly maxEntryLedgers: number
}

interface Limits {
  readonly txInstructionsMax: number
  readonly txMemoryBytesMax: number
  readonly txDiskReadEntriesMax: number
  readonly txDiskReadBytesMax: number
  readonly txWriteEntriesMax: number
  readonly txWriteBytesMax: number
  readonly txFootprintEntriesMax: number
  readonly txSizeBytesMax: number
  readonly txEventsBytesMax: number
  readonly contractCodeBytesMax: number
  readonly dataKeyBytesMax: number
  readonly dataEntryBytesMax: number
}

/** Memory of a parsed contract module: a base, and a rate per counted item in 128ths of a byte. */
interface ModuleMemory {
  readonly baseBytes: bigint
  readonly instruction128: bigint
  readonly function128: bigint
  readonly global128: bigint
  readonly tableEntry128: bigint
  readonly type128: bigint
  readonly dataSegment128: bigint
  readonly elemSegment128: bigint
  readonly import128: bigint
  readonly export128: bigint
  readonly dataSegmentByte128: bigint
}

export interface NetworkSettings {
  readonly protocolVersion: number
  readonly baseFeeStroops: bigint
  readonly baseReserveStroops: bigint
  readonly fees: FeeRates
  readonly ttl: TtlSettings
  readonly limits: Limits
  readonly moduleMemory: ModuleMemory
  readonly cpuCosts: CpuCosts
  /** The flags of the ledger's header, with which validators disable operations of liquidity pools; 0: no flag. */
  readonly ledgerFlags: number
  /** Keys, in the store's form, of frozen entries; empty on every network today. */
  readonly frozenKeys: ReadonlySet<KeyString>
  /** Hashes of transactions, a character per byte, that may touch them all the same. */
  readonly freezeBypass: ReadonlySet<string>
}

/** The test network at protocol 27 (fees of SLP-4 and SLP-5), with the rent rate at its floor. */
export const testnet: NetworkSettings = {
  protocolVersion: 27,
  baseFeeStroops: 100n,
  baseReserveStroops: 5_000_000n,
  fees: {
    instructionsPer10kStroops: 7n,
    diskReadEntryStroops: 1_563n,
    writeEntryStroops: 2_500n,
    diskRead1KbStroops: 447n,
    write1KbStroops: 875n,
    historical1KbStroops: 4_059n,
    events1KbStroops: 5_000n,
    bandwidth1KbStroops: 406n,
    rent1KbLowStroops: -17_000n,
    rent1KbHighStroops: 10_000n,
    stateTargetSizeBytes: 4_000_000_000n,
    rentGrowthFactor: 5_000n,
    stateSizeBytes: 1_000_000_000n,
    persistentRentDenominator: 1_215n,
    temporaryRentDenominator: 2_430n
  },
  ttl: { minTemporaryLedgers: 720, minPersistentLedgers: 120_960, maxEntryLedgers: 3_110_400 },
  limits: {
    txInstructionsMax: 400_000_000,
    txMemoryBytesMax: 41_943_040,
    txDiskReadEntriesMax: 200,
    txDiskReadBytesMax: 200_000,
    txWriteEntriesMax: 200,
    txWriteBytesMax: 132_096,
    txFootprintEntriesMax: 400,
    txSizeBytesMax: 132_096,
    txEventsBytesMax: 16_384,
    contractCodeBytesMax: 131_072,
    dataKeyBytesMax: 250,
    dataEntryBytesMax: 65_536
  },
  moduleMemory: {
    baseBytes: 17_564n,
    instruction128: 6_457n,
    function128: 47_464n,
    global128: 13_420n,
    tableEntry128: 6_285n,
    type128: 64_670n,
    dataSegment128: 29_074n,
    elemSegment128: 48_095n,
    import128: 103_229n,
    export128: 36_394n,
    dataSegmentByte128: 257n
  },
  cpuCosts,
  ledgerFlags: 0,
  frozenKeys: new Set(),
  freezeBypass: new Set()
}

/** Position of the module parsing costs (instructions first) in the network's list of cost parameters. */
const PARSE_INSTRUCTIONS = 23

type Setting<Id extends ConfigSettingEntry["configSettingID"]> = Extract<ConfigSettingEntry, { configSettingID: Id }>
type Reader<Id extends ConfigSettingEntry["configSettingID"]> = (
  settings: NetworkSettings,
  entry: Setting<Id>
) => Partial<NetworkSettings>

const compute: Reader<1> = ({ fees, limits }, { contractCompute: value }) => ({
  fees: { ...fees, instructionsPer10kStroops: value.feeRatePerInstructionsIncrement },
  limits: { ...limits, txInstructionsMax: Number(value.txMaxInstructions), txMemoryBytesMax: value.txMemoryLimit }
})

const ledgerCost: Reader<2> = ({ fees, limits }, { contractLedgerCost: value }) => ({
  fees: {
    ...fees,
    diskReadEntryStroops: value.feeDiskReadLedgerEntry,
    writeEntryStroops: value.feeWriteLedgerEntry,
    diskRead1KbStroops: value.feeDiskRead1Kb,
    rent1KbLowStroops: value.rentFee1KbSorobanStateSizeLow,
    rent1KbHighStroops: value.rentFee1KbSorobanStateSizeHigh,
    stateTargetSizeBytes: value.sorobanStateTargetSizeBytes,
    rentGrowthFactor: BigInt(value.sorobanStateRentFeeGrowthFactor)
  },
  limits: {
    ...limits,
    txDiskReadEntriesMax: value.txMaxDiskReadEntries,
    txDiskReadBytesMax: value.txMaxDiskReadBytes,
    txWriteEntriesMax: value.txMaxWriteLedgerEntries,
    txWriteBytesMax: value.txMaxWriteBytes
  }
})

const historical: Reader<3> = ({ fees }, { contractHistoricalData: value }) => ({
  fees: { ...fees, historical1KbStroops: value.feeHistorical1Kb }
})

const eventsSetting: Reader<4> = ({ fees, limits }, { contractEvents: value }) => ({
  fees: { ...fees, events1KbStroops: value.feeContractEvents1Kb },
  limits: { ...limits, txEventsBytesMax: value.txMaxContractEventsSizeBytes }
})

const bandwidth: Reader<5> = ({ fees, limits }, { contractBandwidth: value }) => ({
  fees: { ...fees, bandwidth1KbStroops: value.feeTxSize1Kb },
  limits: { ...limits, txSizeBytesMax: value.txMaxSizeBytes }
})

const memoryCosts: Reader<7> = (_, { contractCostParamsMemBytes: costs }) => {
  const [base, ...rest] = costs.slice(PARSE_INSTRUCTIONS, PARSE_INSTRUCTIONS + 10)
  if (base === undefined || rest.length < 9) return {}
  const rate = (i: number): bigint => rest[i]!.linearTerm
  return {
    moduleMemory: {
      baseBytes: base.constTerm,
      instruction128: base.linearTerm,
      function128: rate(0),
      global128: rate(1),
      tableEntry128: rate(2),
      type128: rate(3),
      dataSegment128: rate(4),
      elemSegment128: rate(5),
      import128: rate(6),
      export128: rate(7),
      dataSegmentByte128: rate(8)
    }
  }
}

const archival: Reader<10> = ({ fees }, { stateArchivalSettings: value }) => ({
  fees: {
    ...fees,
    persistentRentDenominator: value.persistentRentRateDenominator,
    temporaryRentDenominator: value.tempRentRateDenominator
  },
  ttl: {
    minTemporaryLedgers: value.minTemporaryTtl,
    minPersistentLedgers: value.minPersistentTtl,
    maxEntryLedgers: value.maxEntryTtl
  }
})

const stateSize: Reader<12> = ({ fees }, { liveSorobanStateSizeWindow: window }) =>
  window.length === 0
    ? {}
    : { fees: { ...fees, stateSizeBytes: window.reduce((sum, size) => sum + size, 0n) / BigInt(window.length) } }

const ledgerCostMore: Reader<15> = ({ fees, limits }, { contractLedgerCostExt: value }) => ({
  fees: { ...fees, write1KbStroops: value.feeWrite1Kb },
  limits: { ...limits, txFootprintEntriesMax: value.txMaxFootprintEntries }
})

/** By the number of the configuration entry; entries that the engine does not use are absent. */
const readers: { readonly [Id in ConfigSettingEntry["configSettingID"]]?: Reader<Id> } = {
  0: ({ limits }, { contractMaxSizeBytes }) => ({ limits: { ...limits, contractCodeBytesMax: contractMaxSizeBytes } }),
  1: compute,
  2: ledgerCost,
  3: historical,
  4: eventsSetting,
  5: bandwidth,
  6: ({ cpuCosts }, { contractCostParamsCpuInsns }) => ({
    cpuCosts: withCpuCosts(cpuCosts, contractCostParamsCpuInsns)
  }),
  7: memoryCosts,
  8: ({ limits }, entry) => ({ limits: { ...limits, dataKeyBytesMax: entry.contractDataKeySizeBytes } }),
  9: ({ limits }, entry) => ({ limits: { ...limits, dataEntryBytesMax: entry.contractDataEntrySizeBytes } }),
  10: archival,
  12: stateSize,
  15: ledgerCostMore,
  17: (_, { frozenLedgerKeys }) => ({ frozenKeys: new Set(frozenLedgerKeys.keys.map(latin1)) }),
  19: (_, { freezeBypassTxs }) => ({ freezeBypass: new Set(freezeBypassTxs.txHashes.map(latin1)) })
}

const withConfigSetting = (settings: NetworkSettings, entry: ConfigSettingEntry): NetworkSettings => {
  const read = readers[entry.configSettingID] as Reader<typeof entry.configSettingID> | undefined
  return read === undefined ? settings : { ...settings, ...read(settings, entry as never) }
}

/** The settings with the network's own configuration entries read over them, in the order given. */
export const withConfigSettings = (
  settings: NetworkSettings,
  entries: Iterable<ConfigSettingEntry>
): NetworkSettings => {
  let result = settings
  for (const entry of entries) result = withConfigSetting(result, entry)
  return result
}
