// The network's settings as chosen for a local ledger: its protocol, the maximum size of contract transactions, and the
// lifetime of new contract entries. All other settings are the test network's.
import { type NetworkSettings, testnet } from "../engine/state/NetworkSettings.ts"

/** The protocols that the engine supports. */
export const PROTOCOL_MIN = 23
export const PROTOCOL_MAX = 28

/** Instructions that one transaction may use without limits: about the deadline of a contract's call. */
const UNLIMITED_INSTRUCTIONS = 4_000_000_000
const UNLIMITED = 0xffff_ffff

/** Without limits: only the size of a request's body then bounds a transaction. */
const unlimited: NetworkSettings["limits"] = {
  txInstructionsMax: UNLIMITED_INSTRUCTIONS,
  txMemoryBytesMax: 1_073_741_824,
  txDiskReadEntriesMax: UNLIMITED,
  txDiskReadBytesMax: UNLIMITED,
  txWriteEntriesMax: UNLIMITED,
  txWriteBytesMax: UNLIMITED,
  txFootprintEntriesMax: UNLIMITED,
  txSizeBytesMax: UNLIMITED,
  txEventsBytesMax: UNLIMITED,
  contractCodeBytesMax: UNLIMITED,
  dataKeyBytesMax: UNLIMITED,
  dataEntryBytesMax: UNLIMITED
}

export interface ChosenSettings {
  readonly protocol?: number
  /** `testnet`, or `unlimited`: as large as the protocol's own fields and this machine allow. */
  readonly limits?: string
  /** Ledgers that a new contract entry lives at least, the first one counted. */
  readonly minTtlLedgers?: number
}

/** Ledgers of the longest life there is. */
const MIN_TTL_MAX = testnet.ttl.maxEntryLedgers

/** Which choice cannot be, in a sentence; undefined when all can. */
export const choiceProblem = ({ limits, minTtlLedgers, protocol }: ChosenSettings): string | undefined => {
  if (protocol !== undefined && (protocol < PROTOCOL_MIN || protocol > PROTOCOL_MAX))
    return `the protocol is ${PROTOCOL_MIN} to ${PROTOCOL_MAX}`
  if (limits !== undefined && limits !== "testnet" && limits !== "unlimited")
    return "the limits are testnet or unlimited"
  if (minTtlLedgers !== undefined && (minTtlLedgers < 1 || minTtlLedgers > MIN_TTL_MAX))
    return `the least life of an entry is 1 to ${MIN_TTL_MAX} ledgers`
  return undefined
}

export const withChoices = (
  network: NetworkSettings,
  { limits, minTtlLedgers, protocol }: ChosenSettings
): NetworkSettings => {
  const { limits: given, protocolVersion, ttl } = network
  return {
    ...network,
    protocolVersion: protocol ?? protocolVersion,
    limits: limits === "unlimited" ? unlimited : limits === "testnet" ? testnet.limits : given,
    ttl: {
      ...ttl,
      minPersistentLedgers: minTtlLedgers ?? ttl.minPersistentLedgers,
      minTemporaryLedgers: Math.min(minTtlLedgers ?? ttl.minTemporaryLedgers, ttl.minTemporaryLedgers)
    }
  }
}
