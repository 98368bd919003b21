// Fetches entries of the forked network by their keys, with their times to live if they have one, as of the request.
// They are treated as the state of the ledger where the fork begins: later changes count as changes in it. If the
// response leaves out a key, the entry does not exist, provided that the responding node has reached that ledger. A
// node that is about to reach it is polled again.
import { Effect, Schema } from "effect"
import type { EngineCrypto } from "../../engine/host/Random.ts"
import { hasTtl, keyOfEntry, keyString, type KeyString, ttlEntry, ttlHash } from "../../engine/state/LedgerKeys.ts"
import { fromLatin1, type LedgerEntry } from "../../engine/xdr/Xdr.ts"
import { EntryType } from "../../engine/xdr/types.ts"
import { codecs } from "../../transaction/Wire.ts"
import { fromBase64, toBase64 } from "../text.ts"
import { Upstream, upstreamFailed } from "./Upstream.ts"

/** Maximum number of keys in one Stellar RPC request. */
const KEYS_MAX = 200
/** Nodes behind one address may lag by up to this many ledgers; such a node is polled again. */
const BEHIND_MAX = 3
const READS_MAX = 8
const PAUSE = "1 second"

const Item = Schema.Struct({
  xdr: Schema.String,
  lastModifiedLedgerSeq: Schema.Int,
  liveUntilLedgerSeq: Schema.optionalKey(Schema.NullOr(Schema.Int)),
  extXdr: Schema.optionalKey(Schema.String)
})
const Entries = Schema.Struct({ entries: Schema.NullOr(Schema.Array(Item)), latestLedger: Schema.Int })

/** The ledger that a fork begins from. */
export interface ForkedAt {
  readonly sequence: number
  /** Seconds. */
  readonly closeTime: bigint
}

/** A key's fetched result: its entry and that entry's time to live, or its absence. */
export interface FetchedEntry {
  readonly key: KeyString
  readonly entry: LedgerEntry | undefined
  readonly ttl: LedgerEntry | undefined
}

const earlier = <N extends number | bigint>(a: N, b: N): N => (a < b ? a : b)

/** The entry as of the ledger where the fork begins, so that the rules never see an account of the future. */
const asOf = ({ closeTime, sequence }: ForkedAt, entry: LedgerEntry): LedgerEntry => {
  const lastModifiedLedgerSeq = earlier(entry.lastModifiedLedgerSeq, sequence)
  if (entry.data.type !== EntryType.account) return { ...entry, lastModifiedLedgerSeq }
  const { account } = entry.data
  if (account.ext.v !== 1 || account.ext.v1.ext.v !== 2 || account.ext.v1.ext.v2.ext.v !== 3)
    return { ...entry, lastModifiedLedgerSeq }
  const { v1 } = account.ext
  const { v2 } = account.ext.v1.ext
  const { v3 } = account.ext.v1.ext.v2.ext
  const moved = { ...v3, seqLedger: earlier(v3.seqLedger, sequence), seqTime: earlier(v3.seqTime, closeTime) }
  return {
    ...entry,
    lastModifiedLedgerSeq,
    data: {
      type: EntryType.account,
      account: { ...account, ext: { v: 1, v1: { ...v1, ext: { v: 2, v2: { ...v2, ext: { v: 3, v3: moved } } } } } }
    }
  }
}

const bytesOf = (text: string): Uint8Array => {
  const bytes = fromBase64(text)
  if (bytes === undefined) throw new Error("not base64")
  return bytes
}

const readItem = (crypto: EngineCrypto, at: ForkedAt, item: typeof Item.Type): FetchedEntry => {
  const entry: LedgerEntry = {
    lastModifiedLedgerSeq: item.lastModifiedLedgerSeq,
    data: codecs.LedgerEntryData.decode(bytesOf(item.xdr)),
    ext: item.extXdr === undefined ? { v: 0 } : codecs.LedgerEntryExt.decode(bytesOf(item.extXdr))
  }
  const key = keyOfEntry(entry)
  const name = keyString(key)
  // An archived entry may come without the last ledger of its life.
  const ttl = hasTtl(key)
    ? ttlEntry(ttlHash(crypto, name), item.liveUntilLedgerSeq ?? 0, earlier(item.lastModifiedLedgerSeq, at.sequence))
    : undefined
  return { key: name, entry: asOf(at, entry), ttl }
}

const ask = Effect.fnUntraced(function* (crypto: EngineCrypto, at: ForkedAt, keys: ReadonlyArray<KeyString>) {
  const upstream = yield* Upstream
  const params = { keys: keys.map((key) => toBase64(fromLatin1(key))) }
  const lookup = upstream.ask("getLedgerEntries", params, Entries)
  let answer = yield* lookup
  const isSoonThere = ({ latestLedger: latest }: typeof Entries.Type) =>
    latest < at.sequence && latest >= at.sequence - BEHIND_MAX
  for (let reads = 1; reads < READS_MAX && isSoonThere(answer); reads++) {
    yield* Effect.sleep(PAUSE)
    answer = yield* lookup
  }
  const { entries, latestLedger } = answer
  if (latestLedger < at.sequence)
    return yield* upstreamFailed(`it is at ledger ${latestLedger}, and the fork began from ledger ${at.sequence}`)
  const found = yield* Effect.try({
    try: () =>
      new Map(
        (entries ?? []).map((item) => {
          const read = readItem(crypto, at, item)
          return [read.key, read] as const
        })
      ),
    catch: () => upstreamFailed("an entry that it gave cannot be read")
  })
  return keys.map((key): FetchedEntry => found.get(key) ?? { key, entry: undefined, ttl: undefined })
})

/** The forked network's entries under these keys, in their order. */
export const fetchEntries = Effect.fnUntraced(function* (
  crypto: EngineCrypto,
  at: ForkedAt,
  keys: ReadonlyArray<KeyString>
) {
  const fetched: Array<FetchedEntry> = []
  for (let i = 0; i < keys.length; i += KEYS_MAX) fetched.push(...(yield* ask(crypto, at, keys.slice(i, i + KEYS_MAX))))
  return fetched
})
