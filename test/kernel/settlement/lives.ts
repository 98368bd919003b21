// Minimal settlements and ledger answers for tests of decisions.
import { Option } from "effect"
import type { ExecutedTransaction } from "../../../kernel/ledger/Executed.ts"
import type {
  Attempt,
  Evidence,
  Landed,
  OpenSettlement,
  Search,
  SettlementSnapshot
} from "../../../kernel/settlement/state/Settlement.ts"

export const recordedLedger = 1_000
export const expires = 1_012
export const options = { inclusionStroopsMax: 10_000n, canSign: true, canRebuild: false }
export const statuses = ["Pending", "Duplicate", "TryAgainLater", "Error", "Lost", undefined] as const

export const attempt = (changes: Partial<Attempt> = {}): Attempt => ({
  number: 1,
  kind: "payment",
  innerHash: "inner",
  outerHash: "outer",
  envelope: "AAAA",
  inclusionStroops: 200n,
  recordedLedger,
  sentStatus: "Pending",
  sentLedger: recordedLedger,
  sentCode: undefined,
  taken: true,
  ...changes
})

/** An attempt that a node refused and that none ever accepted. */
export const refused = (sentCode: string, changes: Partial<Attempt> = {}): Attempt =>
  attempt({ sentStatus: "Error", sentCode, taken: false, ...changes })

export const settlement = (...attempts: ReadonlyArray<Attempt>): OpenSettlement => ({
  innerHash: "inner",
  channelSequence: 7n,
  channelHeld: true,
  authorizationExpiresLedger: expires,
  recordedLedger,
  attempts: attempts.length === 0 ? [attempt()] : attempts
})

export const executed = (changes: Partial<ExecutedTransaction> = {}): ExecutedTransaction => ({
  ledger: 1_003,
  closedAtSeconds: 1_767_000_000,
  innerHash: "inner",
  outerHash: "outer",
  feeChargedStroops: 4_321n,
  succeeded: true,
  transfers: Option.none(),
  ...changes
})

export const paid: Landed = { kind: "payment", executed: executed(), amountTransferred: 10n }
export const failed: Landed = {
  kind: "payment",
  executed: executed({ succeeded: false }),
  amountTransferred: undefined
}
export const cancelled: Landed = {
  kind: "cancel",
  executed: executed({ innerHash: "no-op", outerHash: "no-op bumped" }),
  amountTransferred: undefined
}

export const snapshot = (changes: Partial<SettlementSnapshot> = {}): SettlementSnapshot => ({
  ledger: 1_005,
  sequence: 6n,
  nonce: "unspent",
  ...changes
})

export const search = (changes: Partial<Search> = {}): Search => ({
  fromLedger: recordedLedger,
  toLedger: expires,
  spending: undefined,
  numberUsedBy: undefined,
  ...changes
})

export const absent = (latestLedger: number, further: Partial<Evidence> = {}): Evidence => ({
  seen: { _tag: "Absent", latestLedger },
  snapshot: undefined,
  search: undefined,
  ...further
})

export const included = (landed: Landed, further: Partial<Evidence> = {}): Evidence => ({
  seen: { _tag: "Included", landed, latestLedger: 1_004 },
  snapshot: undefined,
  search: undefined,
  ...further
})
