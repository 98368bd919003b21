// getLedgerEntries: up to 200 keys per request; a missing entry is left out of the answer, the order of the rest is
// kept. Contract entries come with the last ledger they live in, archived ones too.
import { EntryType } from "../engine/xdr/types.ts"
import { hasTtl, keyString, ttlKeyString } from "../engine/state/LedgerKeys.ts"
import { codec, type LedgerEntry, type LedgerKey } from "../engine/xdr/Xdr.ts"
import type { Store } from "../engine/state/Store.ts"
import type { Ledger } from "../node/Ledger.ts"
import { fromBase64, toBase64 } from "../node/text.ts"
import { codecs } from "../transaction/Wire.ts"
import { configSetting as configSettingOf } from "./configSettings.ts"
import { checkFormat, list, type Params } from "./params.ts"
import { invalidParams } from "./RpcError.ts"
import type { View } from "./View.ts"

const KEYS_MAX = 200
const KEY_BYTES_MAX = 16_384

const decodeKey = (value: unknown, index: number): LedgerKey => {
  try {
    const bytes = fromBase64(value as string)
    if (bytes !== undefined && bytes.length <= KEY_BYTES_MAX) return codec.LedgerKey.decode(bytes)
  } catch {
    // reported below
  }
  throw invalidParams(`cannot unmarshal key value ${String(value)} at index ${index}`)
}

/** An entry as answers and dumps have it. */
export const entryItem = (ledger: Ledger, store: Store, key: LedgerKey, entry: LedgerEntry) => {
  const ttl = hasTtl(key) ? store.get(ttlKeyString(ledger.options.crypto, keyString(key))) : undefined
  return {
    key: toBase64(codec.LedgerKey.encode(key)),
    xdr: toBase64(codecs.LedgerEntryData.encode(entry.data)),
    lastModifiedLedgerSeq: entry.lastModifiedLedgerSeq,
    ...(ttl?.data.type === EntryType.ttl ? { liveUntilLedgerSeq: ttl.data.ttl.liveUntilLedgerSeq } : {}),
    extXdr: toBase64(codecs.LedgerEntryExt.encode(entry.ext))
  }
}

const configEntry = (ledger: Ledger, key: Extract<LedgerKey, { type: 8 }>): LedgerEntry | undefined => {
  const configSetting = configSettingOf(ledger.options, key.configSetting.configSettingId)
  const lastModifiedLedgerSeq = ledger.history.oldest.sequence
  return configSetting === undefined
    ? undefined
    : { lastModifiedLedgerSeq, data: { type: 8, configSetting }, ext: { v: 0 } }
}

export const getLedgerEntries = ({ ledger, store, latest }: View, params: Params) => {
  checkFormat(params)
  const keys = list(params, "keys")
  if (keys.length > KEYS_MAX) throw invalidParams(`key count (${keys.length}) exceeds maximum supported (${KEYS_MAX})`)
  if (!keys.every((key) => typeof key === "string")) throw invalidParams("invalid parameters: keys is a list of texts")
  const decoded = keys.map(decodeKey)
  if (decoded.some(({ type }) => type === EntryType.ttl))
    throw invalidParams("ledger ttl entries cannot be queried directly")
  store.require(decoded.filter(({ type }) => type !== EntryType.configSetting).map(keyString))
  const entries: Array<unknown> = []
  for (const key of decoded) {
    const entry = key.type === EntryType.configSetting ? configEntry(ledger, key) : store.get(keyString(key))
    if (entry !== undefined) entries.push(entryItem(ledger, store, key, entry))
  }
  return { entries, latestLedger: latest.sequence }
}
