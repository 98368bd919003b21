// The meaning of a reason for people: its HTTP status, a few words, a sentence and a remedy. A row declares them
// together with its check; otherwise they follow from the check and the status. `GET /reasons`, the pages, `tollkeeper
// reasons` and `settlements explain` read them here. Pure.
import { type Dialect, encodeReason } from "../Dialect.ts"
import type { RefusalRow } from "./Refusal.ts"

export interface ExplainedReason {
  readonly reason: string
  readonly status: number
  /** A few words, for a list. */
  readonly label: string
  readonly sentence: string
  /** What to do. */
  readonly remedy: string
}

const remedies: Readonly<Record<RefusalRow["status"], string>> = {
  200: "Sign a new payment that passes this check; the same one is refused again.",
  400: "Correct the request and send it again.",
  401: "Send a listed key as `Authorization: Bearer`; `tollkeeper keys list` names them.",
  409: "Use a new identifier, or send the payment that this one belongs to.",
  413: "Send a smaller body; `server.max_request_bytes` is the limit.",
  429: "Wait for Retry-After, then send the same payment again.",
  500: "Send the same payment again; report the trace id to the operator.",
  503: "Send the same payment again after Retry-After."
}

/** A code as words: `invalid_exact_ledger_payload_x_failed` → `X failed`. */
const labelOf = (reason: string): string =>
  reason
    .replace(/^(settle|invalid)_/, "")
    .replace(/^(exact|upto|batch_settlement)_/, "")
    .replace(/^ledger_/, "")
    .replace(/^(payload|settlement)_/, "")
    .replaceAll("_", " ")
    .replace(/^[a-z]/, (letter) => letter.toUpperCase())

export const explainReason = ({ check, label, reason, remedy, sentence, status }: RefusalRow): ExplainedReason => ({
  reason,
  status,
  label: label ?? labelOf(reason),
  sentence: sentence ?? `This check failed: ${check}.`,
  remedy: remedy ?? remedies[status]
})

/** The same in a spelling of the wire. */
export const explainReasons = (rows: ReadonlyArray<RefusalRow>, dialect: Dialect): ReadonlyArray<ExplainedReason> =>
  rows.map((row) => ({ ...explainReason(row), reason: encodeReason(row.reason, dialect) }))
