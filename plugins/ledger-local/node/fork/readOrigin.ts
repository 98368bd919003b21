// The start of a fork: the network, its latest ledger and the settings of that ledger, as its RPC reports them. All of
// it is text, so that it can be stored and a fork continues without asking again.
import { Effect, Schema } from "effect"
import type { EngineCrypto } from "../../engine/host/Random.ts"
import { type NetworkSettings, testnet, withConfigSettings } from "../../engine/state/NetworkSettings.ts"
import { codec, type ConfigSettingEntry } from "../../engine/xdr/Xdr.ts"
import { EntryType } from "../../engine/xdr/types.ts"
import { codecs, type LedgerHeader } from "../../transaction/Wire.ts"
import { fromBase64, toBase64 } from "../text.ts"
import type { ForkedAt } from "./fetchEntries.ts"
import { Upstream, type UpstreamFailed, upstreamFailed } from "./Upstream.ts"

/** A fork's start, in its stored form. */
export const Origin = Schema.Struct({
  passphrase: Schema.String,
  /** Base64 of the header of the ledger that the fork follows. */
  header: Schema.String,
  /** Base64 of the data of each configuration entry. */
  settings: Schema.Array(Schema.String)
})
export type Origin = typeof Origin.Type

const Network = Schema.Struct({ passphrase: Schema.String })
const Latest = Schema.Struct({ sequence: Schema.Int, headerXdr: Schema.optionalKey(Schema.String) })
const Ledgers = Schema.Struct({ ledgers: Schema.Array(Schema.Struct({ headerXdr: Schema.String })) })
const Settings = Schema.Struct({ entries: Schema.NullOr(Schema.Array(Schema.Struct({ xdr: Schema.String }))) })

/** The numbers of the configuration entries that the engine reads, and the first protocol that has each. */
const settings: ReadonlyArray<readonly [id: number, protocol: number]> = [
  ...[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12].map((id) => [id, 20] as const),
  [15, 23],
  [17, 26],
  [19, 26]
]
/** Bytes before the header in the entry of a list of ledgers: the ledger's hash. */
const HASH_BYTES = 32

const settingKey = (configSettingId: number): string =>
  toBase64(codec.LedgerKey.encode({ type: 8, configSetting: { configSettingId } } as never))

/** The latest ledger's header; nodes before protocol 26 report it in the list of ledgers only. */
const readHeader = Effect.gen(function* () {
  const upstream = yield* Upstream
  const { headerXdr, sequence } = yield* upstream.ask("getLatestLedger", {}, Latest)
  if (headerXdr !== undefined) return headerXdr
  const { ledgers } = yield* upstream.ask("getLedgers", { startLedger: sequence, pagination: { limit: 1 } }, Ledgers)
  const bytes = fromBase64(ledgers[0]?.headerXdr ?? "")
  if (bytes === undefined || bytes.length === 0)
    return yield* upstreamFailed("it does not report its latest ledger's header")
  // After the header comes an extension of four bytes.
  return toBase64(bytes.slice(HASH_BYTES, -4))
})

const headerOf = (origin: Origin): LedgerHeader => codecs.LedgerHeader.decode(fromBase64(origin.header)!)

/** Sequence and close time of the ledger that the fork follows. */
export const forkedAtOf = (origin: Origin): ForkedAt => {
  const { ledgerSeq, scpValue } = headerOf(origin)
  return { sequence: ledgerSeq, closeTime: scpValue.closeTime }
}

/** Values that the first ledger of the fork inherits from the previous ledger. */
export const inheritedOf = (crypto: EngineCrypto, origin: Origin) => {
  const { feePool, idPool } = headerOf(origin)
  return { previousHash: crypto.sha256(fromBase64(origin.header)!), feePoolStroops: feePool, lastOfferId: idPool }
}

export const settingsOf = (origin: Origin): NetworkSettings => {
  const header = headerOf(origin)
  const entries = origin.settings.flatMap((text): ReadonlyArray<ConfigSettingEntry> => {
    const data = codecs.LedgerEntryData.decode(fromBase64(text)!)
    return data.type === EntryType.configSetting ? [data.configSetting] : []
  })
  return withConfigSettings(
    {
      ...testnet,
      protocolVersion: header.ledgerVersion,
      baseFeeStroops: BigInt(header.baseFee),
      baseReserveStroops: BigInt(header.baseReserve),
      ledgerFlags: header.ext.v === 1 ? header.ext.v1.flags : 0
    },
    entries
  )
}

/** Reads the origin; an unreadable one fails now, not on first use. */
export const readOrigin: Effect.Effect<Origin, UpstreamFailed, Upstream> = Effect.gen(function* () {
  const upstream = yield* Upstream
  const { passphrase } = yield* upstream.ask("getNetwork", {}, Network)
  const header = yield* readHeader
  const unreadable = () => upstreamFailed("its latest ledger or its settings cannot be read")
  const { ledgerVersion } = yield* Effect.try({
    try: () => headerOf({ passphrase, header, settings: [] }),
    catch: unreadable
  })
  const keys = settings.filter(([, since]) => since <= ledgerVersion).map(([id]) => settingKey(id))
  const { entries } = yield* upstream.ask("getLedgerEntries", { keys }, Settings)
  const origin: Origin = { passphrase, header, settings: (entries ?? []).map(({ xdr }) => xdr) }
  yield* Effect.try({ try: () => settingsOf(origin), catch: unreadable })
  return origin
})
