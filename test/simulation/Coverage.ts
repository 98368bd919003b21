// Counts the events that the runs covered: states, crash points, answers of the ledger, faults. A run of many seeds
// that never covered one of them proves nothing about it, so a count of zero fails the whole run.

/** Events that must occur. */
export const occurrences = [
  "state settled",
  "state failed",
  "state expired",
  "failed, then used",
  "cancel landed",
  "outbid landed",
  "front-run",
  "batch deposit",
  "batch claim",
  "batch sweep",
  "batch refund",
  "batch withdrawStart",
  "batch withdrawEnd",
  "batch call too late",
  "batch refund sabotaged",
  "crash at a port",
  "crash afterLease",
  "crash beforeRecord",
  "crash afterRecord",
  "crash afterSubmit",
  "crash beforeResolve",
  "crash afterResolve",
  "send Pending",
  "send Duplicate",
  "send TryAgainLater",
  "send Error",
  "send Lost",
  "send taken but lost",
  "send Error but taken",
  "rpc unavailable",
  "ledgers scanned",
  "node behind",
  "node forgets",
  "node far ahead",
  "false NOT_FOUND",
  "forged success",
  "node frozen",
  "network halts",
  "commits lost",
  "adopted",
  "surge",
  "bid too low",
  "never acceptable",
  "nonce shared",
  "no identifier",
  "a stranger asks",
  "another address",
  "channel used by others",
  "replica without some keys",
  "store failed before",
  "store failed after",
  "fence lost",
  "recorded twice",
  "no channel free",
  "several channels leased",
  "over budget",
  "too many open",
  "answer success",
  "answer pending",
  "answer busy",
  "answer failed",
  "answer already settled",
  "answer stored success",
  "answer spent elsewhere",
  "answer conflict",
  "client hung up",
  "clock jump",
  "clock off by hours",
  "two days",
  "lease taken over",
  "channel freed before the end",
  "channels distrusted",
  "built again",
  "journal rewound",
  "channel call served",
  "channel refunded",
  "channel refund failed",
  "channel refund leaked",
  "channel refund spent again",
  "channel withdrawal started",
  "channel withdrawal ended",
  "channel voucher replayed",
  "channel voucher of small order",
  "channel deposit unsent",
  "channel archived",
  "channel seller restarted",
  "channel records restored",
  "channel outage",
  "channel loss reported"
] as const
export type Occurrence = (typeof occurrences)[number]

export class Coverage {
  readonly counts = new Map<string, number>()

  count(what: Occurrence): void {
    this.counts.set(what, (this.counts.get(what) ?? 0) + 1)
  }

  add(other: Iterable<readonly [string, number]>): void {
    for (const [what, count] of other) this.counts.set(what, (this.counts.get(what) ?? 0) + count)
  }

  missing(least: number): ReadonlyArray<string> {
    return occurrences.filter((what) => (this.counts.get(what) ?? 0) < least)
  }
}
