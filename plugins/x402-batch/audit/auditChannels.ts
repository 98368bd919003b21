// The channels' part of the audit: sums the contract's holdings and compares them with the records. It reads the
// records first, then the ledger's transactions with the contract's events, then its entries, then the store again. So
// a value that grows during the audit is read after the value that it is compared with.
import { Effect } from "effect"
import { type AuditEndpoint, readEntries } from "../../../kernel/audit/readEntries.ts"
import type { LedgerView } from "../../../kernel/audit/readLedger.ts"
import { Network } from "../../../kernel/config/Network.ts"
import { Crypto } from "../../../kernel/platform/Crypto.ts"
import { networkIdOf } from "../../../kernel/stellar/Envelope.ts"
import { holdingKey, readHeldAsset, readHolding } from "../../../kernel/stellar/Holding.ts"
import { instanceKey, readContractData } from "../../../kernel/stellar/LedgerEntry.ts"
import { batchEventOf, channelKey, channelStateOf, receiverKey, receiverStateOf } from "../batchCalls.ts"
import { batchKeys } from "../Config.ts"
import { type ChannelCall, type NamedChannel, readCalls, readStored, type StoredChannel } from "./channelRecords.ts"
import { type ChannelView, compareChannels, holdingOf } from "./compareChannels.ts"

export interface RecordedChannels {
  readonly networkId: Uint8Array
  /** Contracts that the audit needs events of: the contracts of recorded calls, and the configured contract. */
  readonly contracts: ReadonlySet<string>
  readonly calls: ReadonlyArray<ChannelCall>
  readonly stored: ReadonlyArray<StoredChannel>
}

export const readRecordedChannels = Effect.gen(function* () {
  const network = yield* Network
  const networkId = networkIdOf(yield* Crypto, network.passphrase)
  const { batch_contract: configured } = network.keys(batchKeys)
  const calls = yield* readCalls(network.id, networkId)
  const contracts = new Set([
    ...calls.map(({ contract }) => contract),
    ...(configured === undefined || configured === "" ? [] : [configured])
  ])
  const recorded: RecordedChannels = {
    networkId,
    contracts,
    calls,
    stored: yield* readStored(network.id, networkId, contracts)
  }
  return recorded
})

/** The distinct channels and receivers in the records. */
const namedIn = ({ calls, stored }: RecordedChannels) => {
  const channels = new Map<string, NamedChannel>()
  const receivers = new Map<string, { contract: string; receiver: string; token: string }>()
  const noteReceiver = (contract: string, receiver: string, token: string) =>
    receivers.set(receiverKey(contract, receiver, token), { contract, receiver, token })
  const named = [...stored, ...calls.flatMap(({ channel, claims }) => [...claims, ...(channel ? [channel] : [])])]
  for (const { channelId, config, contract } of named) {
    channels.set(channelKey(contract, channelId), { contract, channelId, config })
    noteReceiver(contract, config.receiver, config.token)
  }
  for (const { contract, swept } of calls) if (swept !== undefined) noteReceiver(contract, swept.receiver, swept.token)
  return { channels, receivers }
}

/** Each contract's balance of each token. Only for the network's assets, because their entries can be read. */
const readHeld = Effect.fn("audit.readHeld")(function* (
  endpoint: AuditEndpoint,
  pairs: ReadonlyMap<string, { readonly contract: string; readonly token: string }>
) {
  const instances = yield* readEntries(endpoint, [
    ...new Set([...pairs.values()].map(({ token }) => instanceKey(token)))
  ])
  const keys = new Map<string, string>()
  for (const [pair, { contract, token }] of pairs) {
    const instance = instances.get(instanceKey(token))
    const asset = instance === undefined ? undefined : readHeldAsset(instance.data)
    const key = asset === undefined ? undefined : holdingKey(token, asset, contract)
    if (key !== undefined) keys.set(pair, key)
  }
  const entries = yield* readEntries(endpoint, [...keys.values()])
  const held = new Map<string, { amount: bigint; modifiedLedger: number }>()
  for (const [pair, key] of keys) {
    const entry = entries.get(key)
    const amount = entry === undefined ? 0n : readHolding(entry.data)?.spendable
    if (amount !== undefined) held.set(pair, { amount, modifiedLedger: entry?.modifiedLedger ?? 0 })
  }
  return held
})

/** Reads the contract's side and compares it with the records. */
export const auditChannels = Effect.fn("audit.channels")(function* (
  recorded: RecordedChannels,
  { contractEvents, fromLedger, toLedger }: LedgerView,
  endpoint: AuditEndpoint
) {
  const { calls, contracts, networkId, stored } = recorded
  const named = namedIn(recorded)
  const entries = yield* readEntries(endpoint, [...named.channels.keys(), ...named.receivers.keys()])
  const valueAt = (key: string) => {
    const entry = entries.get(key)
    const data = entry === undefined ? undefined : readContractData(entry.data)
    return data?.key === key ? data.value : undefined
  }
  const modifiedAt = (key: string) => ({ modifiedLedger: entries.get(key)?.modifiedLedger ?? 0 })
  const pairs = new Map(
    [...named.receivers.values()].map(({ contract, token }) => [holdingOf(contract, token), { contract, token }])
  )
  const view: ChannelView = {
    fromLedger,
    toLedger,
    events: contractEvents.flatMap(({ event, innerHash, ledger }) =>
      [...contracts].flatMap((contract) => {
        const read = batchEventOf(contract, event)
        return read === undefined ? [] : [{ contract, transaction: innerHash, ledger, event: read }]
      })
    ),
    channels: [...named.channels].map(([key, channel]) => ({
      ...channel,
      state: channelStateOf(valueAt(key)),
      ...modifiedAt(key)
    })),
    receivers: [...named.receivers].map(([key, receiver]) => ({
      ...receiver,
      state: receiverStateOf(valueAt(key)),
      ...modifiedAt(key)
    })),
    holdings: yield* readHeld(endpoint, pairs)
  }
  const { id } = yield* Network
  const storedAfter = yield* readStored(id, networkId, contracts)
  return compareChannels({ calls, storedBefore: stored, storedAfter }, view)
})
