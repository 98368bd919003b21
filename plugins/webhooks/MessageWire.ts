// A message in the format of the Standard Webhooks specification, so that its libraries verify it. The body contains
// the event and the settlement as `GET /settlements` gives it, in the state of the event: `settlement.recorded` is
// pending and `settlement.failed` is failed, even if the settlement has changed since. The signature is HMAC-SHA256
// over id, time and body. Id and body are the same for every delivery of the event. Receivers compare the time with
// their own clocks, so it comes from a trusted clock rather than this machine's. Pure.
import { Option, Redacted } from "effect"
import { Base64 } from "effect/encoding"
import { type Dialect, encodeNetwork, type NeutralNetwork } from "../../kernel/Dialect.ts"
import { encodeSettlementState } from "../../kernel/payment/http/settlementState.ts"
import type { Crypto } from "../../kernel/platform/Crypto.ts"
import type { SettlementRecord } from "../../kernel/settlement/store/Settlements.ts"
import type { Secrets } from "./SigningSecrets.ts"

interface Message {
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
}

interface SigningContext {
  readonly crypto: Crypto["Service"]
  /** By a trusted clock, Unix milliseconds. */
  readonly signedAtMillis: number
}

const encoder = new TextEncoder()

/** Members that an earlier event leaves empty, because the settlement may have changed since. */
const later = {
  transaction: Option.none(),
  resolvedAt: Option.none(),
  ledger: Option.none(),
  amountTransferred: Option.none(),
  feeChargedStroops: Option.none(),
  confirmations: undefined,
  isWatched: undefined,
  reason: Option.none(),
  reasonMessage: Option.none()
} satisfies Partial<SettlementRecord>

/** The event of a message. */
interface AboutEvent {
  readonly type: string
  readonly at: Date
  /** Why it failed, if the event's fact is available. */
  readonly reason?: string | null
}

/** The settlement in the state that it had when the event happened. */
const asOf = ({ at, reason, type }: AboutEvent, record: SettlementRecord): SettlementRecord => {
  switch (type) {
    case "settlement.recorded":
      return { ...record, ...later, state: "submitted" }
    case "settlement.unresolved":
      return { ...record, ...later, state: "unresolved" }
    case "settlement.failed": {
      const then = reason === undefined && record.state === "failed" ? record.reason : Option.fromNullishOr(reason)
      // A later use of its authorization may have corrected it.
      return record.state === "failed" && Option.getOrNull(record.reason) === Option.getOrNull(then)
        ? record
        : {
            ...record,
            ...later,
            state: "failed",
            isWatched: true,
            resolvedAt: Option.some(at),
            feeChargedStroops: record.feeChargedStroops,
            reason: then
          }
    }
    default:
      return record
  }
}

/** The body of an event's message, the same whenever it is made; `added`: further members of its data. */
export const encodeBody = (
  event: AboutEvent,
  record: SettlementRecord,
  dialect: Dialect,
  added: Readonly<Record<string, unknown>> = {}
): string => {
  // When it was recorded, the caller was still waiting.
  const nowMillis = Math.min(event.at.getTime(), record.recordedAt.getTime())
  return JSON.stringify({
    type: event.type,
    timestamp: event.at.toISOString(),
    data: { ...encodeSettlementState(asOf(event, record), dialect, nowMillis), ...added }
  })
}

/** The same for an event about a channel, which is not a settlement: its data comes from the fact. */
export const encodeLost = (
  { at, type }: { readonly type: string; readonly at: Date },
  data: Readonly<Record<string, string>>,
  dialect: Dialect
): string => {
  const network = encodeNetwork(data["network"] as NeutralNetwork, dialect)
  return JSON.stringify({ type, timestamp: at.toISOString(), data: { ...data, network } })
}

export const encodeMessage = (
  { body, settlement, type }: { readonly body: string; readonly settlement: string; readonly type: string },
  secrets: Secrets,
  { crypto, signedAtMillis }: SigningContext
): Message => {
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
