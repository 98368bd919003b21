// The history of one payment, from its stored rows: verification, channel lease and record, each attempt and its
// response, the ledger's outcome, the caller's response, the open steps and the operator's options. Pure; the command
// prints it as lines or as JSON. It contains no signature and no envelope.
import { Option } from "effect"
import type { Asset } from "../../kernel/config/Network.ts"
import { decimalOf } from "../../kernel/settlement/operators/Books.ts"
import type { AttemptReport, SettlementHistory } from "../../kernel/settlement/operators/OperatorReports.ts"
import { isOpen } from "../../kernel/settlement/state/Settlement.ts"
import type { SettlementRecord } from "../../kernel/settlement/store/Settlements.ts"
import { explainedOf } from "./reasons.ts"

/** Context in addition to the record. */
export interface Surroundings {
  readonly assets: ReadonlyMap<string, Asset>
  /** Absent without a process that follows the ledger. */
  readonly newestLedger: number | undefined
  readonly now: Date
}

interface Step {
  readonly step: "payment" | "verify" | "lease" | "record" | "attempt" | "outcome" | "answer" | "open" | "operator"
  readonly says: string
}

interface Story {
  readonly settlement: string
  readonly state: string
  readonly transaction: string
  readonly payer: string
  readonly payTo: string
  readonly principal: string
  readonly traceId: string | undefined
  readonly steps: ReadonlyArray<Step>
}

const amountOf = (units: bigint, asset: string, assets: ReadonlyMap<string, Asset>): string => {
  const known = assets.get(asset)
  if (known === undefined) return `${units} of ${asset}`
  return `${units} of ${asset} (${decimalOf(units, known.decimals)} ${known.symbol})`
}

const answered: Readonly<Record<string, string>> = {
  Pending: "taken by the node",
  Duplicate: "already known to the node",
  TryAgainLater: "the node asked to retry later; it is sent again with the same bytes",
  Error: "refused by the node, which is not final: only the ledger decides",
  Lost: "no answer came, so it counts as sent"
}

const attemptSays = ({ inclusionStroops, kind, number, outerHash, recordedLedger, ...sent }: AttemptReport): string => {
  const what =
    kind === "cancel" ? "a no-op that cancels it" : number === 1 ? "the payment" : "the payment at another bid"
  const code = sent.sentCode === null ? "" : ` (${sent.sentCode})`
  const answer =
    sent.sentStatus === null
      ? "not sent yet; the replica that follows it sends the same bytes"
      : `sent by ledger ${sent.sentLedger}: ${answered[sent.sentStatus] ?? sent.sentStatus}${code}`
  const bid = `${number}: ${what}, bid ${inclusionStroops} stroops, ${outerHash}`
  return `${bid}, recorded at ledger ${recordedLedger}; ${answer}`
}

const ledgerOf = (record: SettlementRecord): string =>
  Option.match(record.ledger, { onNone: () => "", onSome: (ledger) => ` in ledger ${ledger}` })

/** Another transaction used the authorization, and may have moved the money. */
const isSpent = ({ reason }: SettlementRecord): boolean => Option.contains(reason, "settle_ledger_authorization_spent")

const outcomeSays = ({ closedAt, record }: SettlementHistory, { assets }: Surroundings): string => {
  const closed = closedAt === null ? "" : `, closed ${closedAt.toISOString()}`
  const charged = Option.match(record.feeChargedStroops, {
    onNone: () => "",
    onSome: (fee) => `; ${fee} stroops charged to the sponsor's budget`
  })
  const why = Option.match(record.reasonMessage, { onNone: () => "", onSome: (message) => `: ${message}` })
  const word = Option.match(record.reason, { onNone: () => "", onSome: (reason) => ` (${reason})` })
  switch (record.state) {
    case "settled": {
      const moved = amountOf(
        Option.getOrElse(record.amountTransferred, () => record.amount),
        record.asset,
        assets
      )
      return `settled${ledgerOf(record)}${closed}; ${moved} moved${charged}${why}`
    }
    case "failed":
      return `failed${ledgerOf(record)}${word}${why}${isSpent(record) ? "" : "; no money moved"}${charged}`
    case "expired":
      return `expired${word}${why}: the authorization has expired and no money moved${charged}`
    case "unresolved":
      return `the ledger's history no longer shows the outcome${why}; its maximum cost stays charged${charged}`
    default:
      return "not confirmed yet"
  }
}

const answerSays = ({ deliveredAt, record }: SettlementHistory, { now }: Surroundings): string => {
  switch (record.state) {
    case "settled":
      if (record.delivery === "given")
        return "a process is sending the success to the caller; the delivery is not confirmed yet"
      return deliveredAt === null
        ? "the success has not been fetched yet: the same settle by the same caller receives it once"
        : `the success was delivered at ${deliveredAt.toISOString()}` +
            (record.deliveredKey === undefined
              ? "; the same settle now receives settle_ledger_already_settled with the hash"
              : "; the same settle receives it again with the same Idempotency-Key, and without that key " +
                "settle_ledger_already_settled with the hash")
    case "failed":
    case "expired":
      return Option.match(record.reason, {
        onNone: () => "the caller receives the failure, on every request",
        onSome: (reason) => {
          const meant = explainedOf(reason)
          const words = meant === undefined ? "" : `: ${meant.sentence} ${meant.remedy}`
          return `the caller receives ${reason}, on every request${words}`
        }
      })
    default:
      return record.deadlineAt > now
        ? `the caller waits until ${record.deadlineAt.toISOString()}`
        : "the caller receives pending, with the hash, on every request; never that it failed"
  }
}

const lives = (record: SettlementRecord, { newestLedger }: Surroundings): string => {
  const until = record.authorizationExpiresLedger
  if (newestLedger === undefined) return `the authorization lives until ledger ${until}`
  return newestLedger <= until
    ? `the authorization lives until ledger ${until}, ${until - newestLedger} from now`
    : `the authorization expired at ledger ${until}, ${newestLedger - until} ago`
}

/** The open steps, and the operator's options. */
const openSteps = ({ record }: SettlementHistory, around: Surroundings): ReadonlyArray<Step> => {
  const operator = (says: string): Step => ({ step: "operator", says })
  if (isOpen(record.state)) {
    return [
      {
        step: "open",
        says: `its end; ${lives(record, around)}. It ends by proof from the ledger, and is never paid twice`
      },
      operator(
        "no action is needed while the ledger is followed (`tollkeeper doctor` says whether it is); on a " +
          `network that was reset: tollkeeper settlements give-up ${record.id} --reason WHY`
      )
    ]
  }
  if (record.state === "unresolved") {
    return [
      { step: "open", says: `whether it landed; ${lives(record, around)}` },
      operator(
        `find its hashes in an explorer, then: tollkeeper settlements resolve ${record.id} --reason WHY ` +
          "--as settled --ledger N --fee-stroops N (or --as failed with the same, or --as expired)"
      )
    ]
  }
  const isAlive =
    record.state === "failed" &&
    !isSpent(record) &&
    (around.newestLedger === undefined || around.newestLedger <= record.authorizationExpiresLedger)
  return [
    { step: "open", says: isAlive ? `nothing here; ${lives(record, around)}` : "nothing" },
    ...(record.state === "expired" ? [operator("nothing; the payer may safely sign a new payment")] : [])
  ]
}

/** A timestamp prefix; empty when it is unknown. */
const stamped = (at: Date | null): string => (at === null ? "" : `${at.toISOString()}, `)

export const storyOf = (life: SettlementHistory, around: Surroundings): Story => {
  const { record } = life
  const traceId = record.traceparent?.split("-")[1]
  const identifier = Option.match(record.identifier, { onNone: () => "", onSome: (one) => `, identifier ${one}` })
  const resource = life.resourceUrl === null ? "" : ` for ${life.resourceUrl}`
  return {
    settlement: record.id,
    state: record.state,
    transaction: Option.getOrElse(record.transaction, () => record.innerHash),
    payer: record.payer,
    payTo: record.payTo,
    principal: record.principal,
    traceId,
    steps: [
      {
        step: "payment",
        says:
          `${amountOf(record.amount, record.asset, around.assets)} from ${record.payer} to ${record.payTo}` +
          `${resource}, ${record.scheme} on ${record.network}, settled by ${record.principal}${identifier}` +
          (traceId === undefined ? "" : `, trace ${traceId}`)
      },
      {
        step: "verify",
        says:
          `${stamped(life.verifiedAt)}verified again and found valid before anything was stored: a settle trusts no ` +
          "earlier verify"
      },
      {
        step: "lease",
        says: `${stamped(life.leasedAt)}channel ${record.channel}, its number ${life.channelSequence}`
      },
      {
        step: "record",
        says:
          `${record.recordedAt.toISOString()}, at ledger ${life.recordedLedger}, before anything was sent: ` +
          `transaction ${record.innerHash}; ${life.reservedStroops} stroops reserved of the budget ` +
          `of ${life.budgetPrincipal} for ${life.budgetDay}`
      },
      ...life.attempts.map((attempt): Step => ({ step: "attempt", says: attemptSays(attempt) })),
      { step: "outcome", says: outcomeSays(life, around) },
      { step: "answer", says: answerSays(life, around) },
      ...openSteps(life, around)
    ]
  }
}

export const linesOf = ({ settlement, state, steps }: Story): ReadonlyArray<string> => [
  `settlement ${settlement}: ${state}`,
  ...steps.map(({ says, step }) => `  ${step.padEnd(8)}  ${says}`)
]
