// The worlds that are explored, and the product with a known defect. Each defect is a rule that the deciding code once
// had, or could have; the exploration must find it.
import { decide } from "../../kernel/settlement/state/decide.ts"
import { queueLedgers } from "../../kernel/settlement/state/planSubmission.ts"
import type { Decision, Outcome } from "../../kernel/settlement/state/Settlement.ts"
import { type Bounds, type Decide, type Product, readUse } from "./model.ts"

const taken = { status: "Pending", flies: true } as const
const refusals = [
  { status: "Error", code: "txBadSeq", flies: false },
  { status: "Error", code: "txMalformed", flies: true }
] as const

export interface World {
  readonly name: string
  /** Bounds for the command. */
  readonly bounds: Bounds
  /** Bounds for the daily tests. */
  readonly small: Bounds
}

const alone: Bounds = {
  lives: [3],
  ledgers: 5,
  attempts: 2,
  cancels: true,
  strangers: 1,
  ghost: false,
  answers: [taken, ...refusals],
  rebuilds: 0,
  stale: false
}
const lost: Bounds = { ...alone, attempts: 1, cancels: false, strangers: 2, ghost: true }
const shared: Bounds = {
  lives: [1, 2],
  ledgers: 3,
  attempts: 1,
  cancels: false,
  strangers: 1,
  ghost: true,
  answers: [taken, { status: "Error", code: "txBadSeq", flies: true }],
  rebuilds: 0,
  stale: false
}
/** Long enough for one settlement to be built again. */
const stale: Bounds = {
  ...alone,
  lives: [queueLedgers + 3],
  ledgers: 5,
  attempts: 1,
  cancels: false,
  strangers: 2,
  answers: [taken, { status: "Error", code: "txBadSeq", flies: true }, refusals[0]],
  rebuilds: 1,
  stale: true
}

export const worlds: ReadonlyArray<World> = [
  { name: "one settlement", bounds: alone, small: { ...alone, lives: [2], ledgers: 4, attempts: 1 } },
  { name: "one whose first record was lost", bounds: lost, small: { ...lost, lives: [2], ledgers: 4, strangers: 1 } },
  {
    name: "one whose channel's number is stale",
    bounds: { ...stale, rebuilds: 2 },
    small: { ...stale, ledgers: 4 }
  },
  {
    name: "one whose channel's number a stranger takes",
    bounds: { ...stale, stale: false },
    small: { ...stale, stale: false, ledgers: 4 }
  },
  { name: "two settlements of one nonce", bounds: shared, small: { ...shared, strangers: 0 } }
]

export const sound: Product = { decide, readUse }

const failed = (outcome: Partial<Outcome>): Decision => ({
  _tag: "End",
  outcome: {
    state: "failed",
    transaction: undefined,
    ledger: undefined,
    closedAtSeconds: undefined,
    amountTransferred: undefined,
    feeChargedStroops: 0n,
    feeUnknown: false,
    reason: "settle_ledger_transaction_failed",
    message: undefined,
    channel: undefined,
    ...outcome
  }
})

const changed = (rule: (...known: Parameters<Decide>) => Decision | undefined): Product => ({
  decide: (settlement, evidence, options) =>
    rule(settlement, evidence, options) ?? decide(settlement, evidence, options),
  readUse
})

export const defects: Readonly<Record<string, Product>> = {
  "failed-is-not-asked-why": changed((settlement, { seen }) =>
    seen._tag === "Included" && !(seen.landed.kind === "payment" && seen.landed.executed.succeeded)
      ? failed({ message: `the authorization lives until ledger ${settlement.authorizationExpiresLedger}` })
      : undefined
  ),
  "a-used-number-is-foreign": changed((settlement, { seen, snapshot }) =>
    seen._tag === "Absent" &&
    snapshot?.sequence !== undefined &&
    snapshot.sequence >= settlement.channelSequence &&
    seen.latestLedger >= snapshot.ledger
      ? failed({ message: "another transaction used the channel's sequence number" })
      : undefined
  ),
  "absent-at-the-bound-is-expired": changed((settlement, { seen }) =>
    seen._tag === "Absent" && seen.latestLedger >= settlement.authorizationExpiresLedger
      ? failed({ state: "expired", reason: "settle_ledger_transaction_expired" })
      : undefined
  ),
  "an-unspent-nonce-is-believed-after-the-expiry": changed((settlement, evidence, options) =>
    evidence.snapshot?.nonce === "unspent"
      ? decide(
          {
            ...settlement,
            authorizationExpiresLedger: Math.max(settlement.authorizationExpiresLedger, evidence.snapshot.ledger)
          },
          evidence,
          options
        )
      : undefined
  ),
  "an-unspent-nonce-of-before-is-believed": changed((settlement, evidence, options) =>
    evidence.seen._tag === "Included" && evidence.snapshot !== undefined
      ? decide(
          settlement,
          {
            ...evidence,
            snapshot: {
              ...evidence.snapshot,
              ledger: Math.max(evidence.snapshot.ledger, evidence.seen.landed.executed.ledger)
            }
          },
          options
        )
      : undefined
  ),
  "number-and-nonce-of-different-moments": changed((settlement, evidence, options) =>
    evidence.snapshot !== undefined && !settlement.channelHeld
      ? decide(
          settlement,
          { ...evidence, snapshot: { ...evidence.snapshot, sequence: settlement.channelSequence } },
          options
        )
      : undefined
  ),
  "what-used-the-nonce-is-not-named": changed((settlement, evidence, options) => {
    const decision = decide(settlement, evidence, options)
    if (decision._tag !== "End" || decision.outcome.reason !== "settle_ledger_authorization_spent") return undefined
    return failed({ ...decision.outcome, message: "the authorization was used in another transaction" })
  }),
  "any-use-of-the-nonce-is-ours": { decide, readUse: () => "Ours" },
  "rebuilt-without-reading-the-nonce": changed((settlement, { seen, snapshot }, { canRebuild }) =>
    canRebuild && seen._tag === "Absent" && snapshot?.sequence === settlement.channelSequence
      ? { _tag: "Rebuild", ledger: snapshot.ledger }
      : undefined
  ),
  "a-bad-sequence-is-enough-to-build-again": changed(({ attempts }, { seen, snapshot }, { canRebuild }) =>
    canRebuild && snapshot !== undefined && attempts.at(-1)?.sentCode === "txBadSeq"
      ? { _tag: "Rebuild", ledger: seen.latestLedger }
      : undefined
  ),
  "a-refused-channel-is-freed": changed((settlement, { seen }) =>
    settlement.channelHeld && settlement.attempts.every(({ sentStatus }) => sentStatus === "Error")
      ? { _tag: "Free", ledger: seen.latestLedger }
      : undefined
  )
}
