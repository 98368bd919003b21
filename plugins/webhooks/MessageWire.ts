// A message as it goes over the wire, by the Standard Webhooks specification, so that its libraries verify it: the body
// names the event and carries the settlement's state as `GET /settlements` gives it; the signature is HMAC-SHA256 over
// id, time and body. The id is the same for every delivery of the event. Receivers compare the time with their own
// clocks, so it comes from a trusted clock rather than this machine's. Pure.
import { Redacted } from "effect"
import { Base64 } from "effect/encoding"
import type { Dialect } from "../../kernel/Dialect.ts"
import { encodeSettlementState } from "../../kernel/payment/http/settlementState.ts"
import type { Crypto } from "../../kernel/platform/Crypto.ts"
import type { SettlementRecord } from "../../kernel/settlement/store/Settlements.ts"
import type { Delivery } from "./Deliveries.ts"
import type { Secrets } from "./SigningSecrets.ts"

export interface Message {
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
}

export interface Signing {
  readonly crypto: Crypto["Service"]
  readonly dialect: Dialect
  /** By this machine's clock, Unix milliseconds. */
  readonly nowMillis: number
  /** By a trusted clock, Unix milliseconds. */
  readonly signedAtMillis: number
}

const encoder = new TextEncoder()

export const encodeMessage = (
  { settlement, toldAt: reportedAt, type }: Pick<Delivery, "settlement" | "toldAt" | "type">,
  record: SettlementRecord,
  secrets: Secrets,
  { crypto, dialect, nowMillis, signedAtMillis }: Signing
): Message => {
  const body = JSON.stringify({
    type,
    timestamp: reportedAt.toISOString(),
    data: encodeSettlementState(record, dialect, nowMillis)
  })
  const id = `${settlement}.${type.slice(type.indexOf(".") + 1)}`
  const seconds = String(Math.floor(signedAtMillis / 1_000))
  const signed = encoder.encode(`${id}.${seconds}.${body}`)
  return {
    headers: {
      "content-type": "application/json",
      "user-agent": "tollkeeper-webhooks",
      "webhook-id": id,
      "webhook-timestamp": seconds,
      "webhook-signature": secrets
        .map((secret) => `v1,${Base64.encode(crypto.hmacSha256(Redacted.value(secret), signed))}`)
        .join(" ")
    },
    body: encoder.encode(body)
  }
}
