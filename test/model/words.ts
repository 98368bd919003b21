// The words for a settlement's states: the state in each route, event and webhook for each caller, by the product's own
// code. Each word is compared with the state's truth: whether money moved, and whether the success may be given.
import { Option } from "effect"
import { isOpen, type SettlementState } from "../../kernel/settlement/state/Settlement.ts"
import { statusOf } from "../../kernel/payment/http/settlementState.ts"
import { existingFrom, verifyKnown } from "../../kernel/payment/settle/existing.ts"
import { answerFinal } from "../../kernel/payment/answers.ts"
import { encodeSettle, encodeVerify } from "../../kernel/payment/wire/Wire.ts"
import { spentText } from "../../kernel/settlement/state/outcomes.ts"
import { correctedFact, endedType, recordedType } from "../../kernel/settlement/store/facts.ts"
import type { Correction, SettlementRecord } from "../../kernel/settlement/store/Settlements.ts"
import { type Key, paymentOf, recordOf } from "./delivery.ts"

interface Row {
  readonly state: string
  readonly caller: string
  readonly verify: string
  readonly settle: string
  readonly settlements: string
  readonly event: string
  readonly issue: string | undefined
}

const into = { dialect: "ledger", network: "ledger:testnet", words: {} } as never
const callers: ReadonlyArray<readonly [string, Key, string]> = [
  ["owner", undefined, "seller"],
  ["owner, its key", "key", "seller"],
  ["owner, another key", "other key", "seller"],
  ["another principal", "key", "stranger"]
]
/** The correction of a failed payment by a later use of its authorization. */
const corrected = (state: Correction["state"]): Correction => ({
  state,
  transaction: "f".repeat(64),
  ledger: 7,
  closedAtSeconds: 7,
  moved: state === "settled" ? 10n : undefined,
  reason: state === "settled" ? undefined : "settle_ledger_authorization_spent",
  message: state === "settled" ? undefined : spentText({ isOurs: false, transaction: "f".repeat(64) }),
  confirmations: 2
})
const spent = corrected("failed")
const states: ReadonlyArray<readonly [string, Partial<SettlementRecord>, Correction?]> = [
  ["open", { state: "submitted", deadlineAt: new Date(10) }],
  ["open, past its deadline", { state: "submitted" }],
  // Its end waits for a second endpoint: `secondEndpoint.slow.test.ts` tests the liar itself.
  ["open, shown settled by a liar", { state: "submitted", deadlineAt: new Date(10) }],
  ["settled, undelivered", { delivery: "undelivered" }],
  ["settled, being sent", { delivery: "given", deliveredKey: "key" }],
  ["settled, delivered", { delivery: "confirmed", deliveredKey: "key" }],
  ["failed", { state: "failed", reason: Option.some("settle_ledger_transaction_failed") }],
  ["expired", { state: "expired", reason: Option.some("settle_ledger_transaction_expired") }],
  ["failed, then settled", { delivery: "undelivered", confirmations: 2 }, corrected("settled")],
  [
    "failed, then spent",
    {
      state: "failed",
      reason: Option.fromUndefinedOr(spent.reason),
      reasonMessage: Option.fromUndefinedOr(spent.message)
    },
    spent
  ],
  ["unresolved", { state: "unresolved" }]
]
const [now, used] = [5, "settle_ledger_already_settled"]
const unknown = "settle_ledger_transaction_status_unknown"

const verifyWord = (record: SettlementRecord, key: Key, owner: string): string => {
  const answer = verifyKnown(paymentOf(key, owner), [record])
  if (typeof answer === "string") return "the scheme decides"
  const body = encodeVerify(answer, into) as { readonly isValid: boolean; readonly invalidReason?: string }
  return body.isValid ? "valid" : body.invalidReason!
}

const settleWord = (record: SettlementRecord, key: Key, owner: string): string => {
  const found = existingFrom(paymentOf(key, owner), [record])
  if (found._tag === "New" || found._tag === "Open") return "waits, then as ended"
  // The claim is granted to one caller.
  const answer = found._tag === "Undelivered" ? answerFinal(record, true) : found.answer
  const body = encodeSettle(answer, into) as { readonly success: boolean; readonly errorReason?: string }
  return body.success ? "success" : body.errorReason!
}

const eventOf = (state: SettlementState, correction?: Correction): string =>
  correction !== undefined ? correctedFact(correction).type : isOpen(state) ? recordedType : endedType(state as never)

/** True if a word contradicts the state. */
const issueOf = (
  record: SettlementRecord,
  words: Omit<Row, "issue" | "state" | "caller">,
  isKeyed: boolean,
  isOwner: boolean
) => {
  const { event, settle, settlements, verify } = words
  const moved = record.state === "settled"
  const mayGive = moved && isOwner && (record.delivery === "undelivered" || isKeyed)
  if ((settle === "success") !== mayGive) return `settle says ${settle}`
  if ((verify === "valid") !== mayGive) return `verify says ${verify}`
  if (settle === used && !moved && (isOwner || (!isOpen(record.state) && record.state !== "unresolved")))
    return "called settled, and no money moved"
  if (isOwner && settle === unknown && !(record.state === "unresolved" || record.delivery === "given"))
    return "called unknown, and it is known"
  if (/transaction_(failed|expired)$/.test(settle) && !settle.endsWith(record.state))
    return "called failed, and it is not"
  if ((settlements === "success") !== moved) return `/settlements says ${settlements}`
  if ((settlements === "failed") !== (record.state === "failed" || record.state === "expired"))
    return `/settlements says ${settlements}`
  if (event.endsWith("settled") !== moved) return `the event says ${event}`
  return undefined
}

/** Every state and caller with its words, and an issue for each wrong word. */
export const wordTable = (): ReadonlyArray<Row> =>
  states.flatMap(([state, changes, correction]) =>
    callers.map(([caller, key, owner]): Row => {
      const record = recordOf(changes)
      const isOwner = owner === record.principal
      const words = {
        verify: verifyWord(record, key, owner),
        settle: settleWord(record, key, owner),
        settlements: isOwner ? statusOf(record, now) : "not found",
        event: isOwner ? eventOf(record.state, correction) : "none"
      }
      const seen = isOwner
        ? words
        : { ...words, settlements: statusOf(record, now), event: eventOf(record.state, correction) }
      return { state, caller, ...words, issue: issueOf(record, seen, isOwner && key === record.deliveredKey, isOwner) }
    })
  )

/** As text; the event is also the type of its webhook. */
export const printWords = (rows: ReadonlyArray<Row>): string => {
  const header = ["state", "caller", "/verify", "/settle", "/settlements", "event and webhook"]
  const lines = rows.map(({ caller, event, settle, settlements, state, verify }) =>
    [state, caller, verify, settle, settlements, event].map((word) => word.replace("settle_ledger_", "…_"))
  )
  const widths = header.map((title, at) => Math.max(title.length, ...lines.map((line) => line[at]!.length)))
  return [header, ...lines]
    .map((line) =>
      line
        .map((word, at) => word.padEnd(widths[at]!))
        .join("  ")
        .trimEnd()
    )
    .join("\n")
}
