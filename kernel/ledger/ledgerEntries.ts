// The ledger entries that we read: their keys and contents. An entry outside the request is a contradiction, never an
// answer.
import { xdr } from "@stellar/stellar-sdk/base"
import { Result } from "effect"
import { Base64 } from "effect/encoding"
import { bytesOfBase64 } from "../stellar/base64.ts"
import { accountKey, nonceKey, readAccount } from "../stellar/LedgerEntry.ts"
import { readXdr } from "../stellar/readXdr.ts"
import type { SnapshotAnswer, SnapshotQuery } from "./LedgerRpc.ts"
import type { GetLedgerEntries } from "./LedgerWire.ts"

/** An endpoint may break the text into lines, or pad it differently. */
export const fromBase64 = (text: string): Uint8Array | undefined =>
  bytesOfBase64(text) ?? Result.getOrUndefined(Base64.decode(text))

type Schema<T> = Parameters<typeof readXdr<T>>[0]

/** A value of the XDR; undefined if the bytes do not encode one. */
export const decodeBytes = <T>(schema: Schema<T>, bytes: Uint8Array | undefined): T | undefined => {
  if (bytes === undefined) return undefined
  try {
    return readXdr(schema, bytes)
  } catch {
    return undefined
  }
}

/** The same in base64. */
export const decodeWith = <T>(schema: Schema<T>, text: string | null | undefined): T | undefined =>
  text === null || text === undefined ? undefined : decodeBytes(schema, fromBase64(text))

const keysOf = ({ channel, nonce }: SnapshotQuery) => ({
  account: accountKey(channel),
  nonce: nonce === undefined ? undefined : nonceKey(nonce.address, nonce.nonce)
})

/** The keys of channels and nonces, without duplicates. */
export const snapshotKeys = (queries: ReadonlyArray<SnapshotQuery>): ReadonlyArray<string> => [
  ...new Set(
    queries.flatMap((query) => {
      const { account, nonce } = keysOf(query)
      return nonce === undefined ? [account] : [account, nonce]
    })
  )
]

type Entries = NonNullable<(typeof GetLedgerEntries.Type)["entries"]>

/** The entries of each channel and nonce, in the requested order; or the reason why they are not credible. */
export const readSnapshots = (
  queries: ReadonlyArray<SnapshotQuery>,
  entries: Entries
): ReadonlyArray<SnapshotAnswer> | string => {
  const byKey = new Map(entries.map((entry) => [entry.key, entry]))
  const answers: Array<SnapshotAnswer> = []
  for (const query of queries) {
    const keys = keysOf(query)
    const entry = byKey.get(keys.account)
    const data = decodeWith(xdr.LedgerEntryData.schema, entry?.xdr)
    const account = data === undefined ? undefined : readAccount(data)
    if (entry !== undefined && account?.address !== query.channel) return "an entry that is not the account"
    const used = keys.nonce === undefined ? undefined : byKey.get(keys.nonce)
    if (used !== undefined && used.lastModifiedLedgerSeq === undefined) return "a nonce without the ledger of its use"
    answers.push({
      sequence: account?.sequence,
      nonce: keys.nonce === undefined ? "unknown" : (used?.lastModifiedLedgerSeq ?? "unspent")
    })
  }
  return answers
}
