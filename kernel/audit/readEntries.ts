// Reads ledger entries for the audit: from one endpoint, page by page, each with the ledger that changed it last.
import { xdr } from "@stellar/stellar-sdk/base"
import { Effect, Result, Schema } from "effect"
import { Base64 } from "effect/encoding"
import { type EndpointOptions, makeEndpoints } from "../ledger/JsonRpc.ts"
import { LedgerUnavailable } from "../ledger/LedgerRpc.ts"

/** Entries in one request. */
const pageMax = 200

const Entries = Schema.Struct({
  latestLedger: Schema.Natural,
  entries: Schema.NullOr(
    Schema.Array(
      Schema.Struct({
        key: Schema.String,
        xdr: Schema.String,
        lastModifiedLedgerSeq: Schema.optionalKey(Schema.Natural)
      })
    )
  )
})

export interface AuditEndpoint extends Pick<EndpointOptions, "timeout" | "headers"> {
  readonly url: string
}

interface ReadEntry {
  readonly data: xdr.LedgerEntryDataWire
  /** The ledger that changed it last; infinite if the endpoint does not report it. */
  readonly modifiedLedger: number
}

/** The entries of these keys (base64) by key; an entry that does not exist is absent. */
export const readEntries = Effect.fn("audit.readEntries")(function* (
  { url, ...options }: AuditEndpoint,
  keys: ReadonlyArray<string>
) {
  const { at } = yield* makeEndpoints({ ...options, urls: [url] })
  const entryByKey = new Map<string, ReadEntry>()
  for (let from = 0; from < keys.length; from += pageMax) {
    const pageKeys = keys.slice(from, from + pageMax)
    const { entries } = yield* at(url, "getLedgerEntries", { keys: pageKeys }, Entries)
    for (const entry of entries ?? []) {
      const data = yield* Effect.try({
        try: () => xdr.LedgerEntryData.schema.decode(Result.getOrThrow(Base64.decode(entry.xdr))),
        catch: () =>
          new LedgerUnavailable({ operation: "getLedgerEntries", message: "an entry that cannot be decoded" })
      })
      entryByKey.set(entry.key, { data, modifiedLedger: entry.lastModifiedLedgerSeq ?? Infinity })
    }
  }
  return entryByKey
})
