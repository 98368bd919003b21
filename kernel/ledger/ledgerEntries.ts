// The entries of the ledger that are asked for: their keys, and what they hold. An entry that is none of what was asked
// for reads as a contradiction, never as an answer.
import { StrKey, xdr } from "@stellar/stellar-sdk/base"
import { Option, Result } from "effect"
import { Base64 } from "effect/encoding"
import type { LedgerAccount, StandingAnswer, StandingQuery } from "./LedgerRpc.ts"
import type { GetLedgerEntries } from "./LedgerWire.ts"

export const fromBase64 = (text: string): Uint8Array | undefined => Result.getOrUndefined(Base64.decode(text))

/** A value of the XDR in base64; undefined when it is none. */
export const decodeWith = <T>(
  codec: { readonly decode: (bytes: Uint8Array) => T },
  text: string | null | undefined
): T | undefined => {
  const bytes = text === null || text === undefined ? undefined : fromBase64(text)
  if (bytes === undefined) return undefined
  try {
    return codec.decode(bytes)
  } catch {
    return undefined
  }
}

export const accountKey = (address: string): string =>
  Base64.encode(
    xdr.LedgerKey.schema.encode({
      type: 0,
      account: { accountId: { type: 0, ed25519: StrKey.decodeEd25519PublicKey(address) } }
    } as never)
  )

export const nonceKey = (address: string, nonce: bigint): string => {
  const contract = StrKey.isValidContract(address)
    ? { type: 1, contractId: StrKey.decodeContract(address) }
    : { type: 0, accountId: { type: 0, ed25519: StrKey.decodeEd25519PublicKey(address) } }
  return Base64.encode(
    xdr.LedgerKey.schema.encode({
      type: 6,
      contractData: { contract, key: { type: 21, nonceKey: { nonce } }, durability: 0 }
    } as never)
  )
}

/** What the network makes an account keep for each of its entries, two of which every account has. */
const baseReserveStroops = 5_000_000n

export const readAccount = (data: xdr.LedgerEntryDataWire): LedgerAccount | undefined => {
  if (data.type !== 0) return undefined
  const { account } = data
  const v1 = account.ext.v === 1 ? account.ext.v1 : undefined
  const v2 = v1 !== undefined && v1.ext.v === 2 ? v1.ext.v2 : undefined
  const v3 = v2 !== undefined && v2.ext.v === 3 ? v2.ext.v3 : undefined
  return {
    address: StrKey.encodeEd25519PublicKey((account.accountId as { readonly ed25519: Uint8Array }).ed25519),
    balanceStroops: account.balance,
    reserveStroops:
      baseReserveStroops * BigInt(2 + account.numSubEntries + (v2?.numSponsoring ?? 0) - (v2?.numSponsored ?? 0)) +
      (v1?.liabilities.selling ?? 0n),
    sequence: account.seqNum,
    sequenceLedger: Option.fromUndefinedOr(v3?.seqLedger)
  }
}

const keysOf = ({ channel, nonce }: StandingQuery) => ({
  account: accountKey(channel),
  nonce: nonce === undefined ? undefined : nonceKey(nonce.address, nonce.nonce)
})

/** The keys of channels and nonces, each once. */
export const standingKeys = (asked: ReadonlyArray<StandingQuery>): ReadonlyArray<string> => [
  ...new Set(
    asked.flatMap((query) => {
      const { account, nonce } = keysOf(query)
      return nonce === undefined ? [account] : [account, nonce]
    })
  )
]

type Entries = NonNullable<(typeof GetLedgerEntries.Type)["entries"]>

/** What the entries say of each channel and nonce, in the order asked; or why they cannot be believed. */
export const readStandings = (
  asked: ReadonlyArray<StandingQuery>,
  entries: Entries
): ReadonlyArray<StandingAnswer> | string => {
  const byKey = new Map(entries.map((entry) => [entry.key, entry]))
  const found: Array<StandingAnswer> = []
  for (const query of asked) {
    const keys = keysOf(query)
    const entry = byKey.get(keys.account)
    const data = decodeWith(xdr.LedgerEntryData.schema, entry?.xdr)
    const account = data === undefined ? undefined : readAccount(data)
    if (entry !== undefined && account?.address !== query.channel) return "an entry that is not the account"
    const used = keys.nonce === undefined ? undefined : byKey.get(keys.nonce)
    if (used !== undefined && used.lastModifiedLedgerSeq === undefined) return "a nonce without the ledger of its use"
    found.push({
      sequence: account?.sequence,
      nonce: keys.nonce === undefined ? "unknown" : (used?.lastModifiedLedgerSeq ?? "unspent")
    })
  }
  return found
}
