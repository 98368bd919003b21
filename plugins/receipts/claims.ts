// A receipt as a function of the recorded outcome and a key: the claims, and the compact JWS over their canonical JSON.
// The same outcome gives the same bytes on every replica and at any time.
import { Effect, Option } from "effect"
import { Base64Url, Hex } from "effect/encoding"
import { encodeNetwork } from "../../kernel/Dialect.ts"
import { canonicalJson } from "../../kernel/payment/wire/canonicalJson.ts"
import type { Crypto } from "../../kernel/platform/Crypto.ts"
import type { SettlementRecord } from "../../kernel/settlement/store/Settlements.ts"
import type { ReceiptClaims, ReceiptHeader } from "./contract.ts"

type Hashing = Pick<Crypto["Service"], "sha256">

/** Maximum characters of a resource's URL in a receipt; a longer URL is replaced by its hash. */
const resourceLengthMax = 256

const text = new TextEncoder()

/** `sha256:HEX` of a text's UTF-8. */
export const hashText = ({ sha256 }: Hashing, value: string): string =>
  `sha256:${Hex.encode(sha256(text.encode(value)))}`

/** The time of an outcome's record; it selects the key. An adopted settlement is recorded after its end. */
export const recordedAtOf = ({ recordedAt, resolvedAt }: SettlementRecord): number =>
  Math.max(recordedAt.getTime(), Option.match(resolvedAt, { onNone: () => 0, onSome: (at) => at.getTime() }))

const resourceClaim = (crypto: Hashing, url: string | undefined) => {
  if (url === undefined) return {}
  return url.length <= resourceLengthMax ? { resource: url } : { resourceHash: hashText(crypto, url) }
}

const actionClaims = ({ action }: SettlementRecord) =>
  action && {
    action: action.kind,
    ...(action.channel === undefined ? {} : { channel: action.channel }),
    ...(action.totals === undefined ? {} : { totals: action.totals })
  }

/** The claims of a settled payment; undefined if the ledger's part of them is not recorded. */
export const claimsOf = (crypto: Hashing, issuer: string, record: SettlementRecord): ReceiptClaims | undefined => {
  const { amountTransferred, closedAt, feeChargedStroops, identifier, ledger, transaction } = record
  if (record.state !== "settled" || closedAt === undefined) return undefined
  if (Option.isNone(ledger) || Option.isNone(transaction) || Option.isNone(amountTransferred)) return undefined
  return {
    v: 1,
    iss: issuer,
    network: encodeNetwork(record.network, "stellar"),
    transaction: transaction.value,
    ledger: ledger.value,
    closedAt: Math.floor(closedAt.getTime() / 1_000),
    payer: record.payer,
    payTo: record.payTo,
    asset: record.asset,
    amount: amountTransferred.value.toString(),
    scheme: record.scheme,
    settlement: record.id,
    attempts: record.attemptCount ?? 1,
    fee: Option.getOrElse(feeChargedStroops, () => 0n).toString(),
    ...(record.confirmations === undefined ? {} : { confirmations: record.confirmations }),
    ...actionClaims(record),
    ...resourceClaim(crypto, record.resourceUrl),
    ...Option.match(identifier, {
      onNone: () => ({}),
      onSome: (value) => ({ identifierHash: hashText(crypto, value) })
    })
  }
}

/** The compact JWS of claims; `kid` is the whole DID URL. */
export const signClaims = <E>(
  claims: ReceiptClaims,
  kid: string,
  sign: (message: Uint8Array) => Effect.Effect<Uint8Array, E>
): Effect.Effect<string, E> => {
  const header: ReceiptHeader = { alg: "EdDSA", kid, typ: "tollkeeper-receipt+jws" }
  const signed = `${Base64Url.encode(canonicalJson(header))}.${Base64Url.encode(canonicalJson(claims))}`
  return Effect.map(sign(text.encode(signed)), (signature) => `${signed}.${Base64Url.encode(signature)}`)
}
