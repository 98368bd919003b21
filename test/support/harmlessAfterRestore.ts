// Findings of the auditor that a restore of an older backup, or a failover that lost commits, explains: a rule, and the
// reason why it may be violated without an error in the money. A test compares the runbook's list with this one.
export const harmlessAfterRestore = {
  "recorded before sent":
    "a payment sent after the backup, until it is sent again and adopted, or is assigned to its owner",
  "bid recorded before sent": "a higher bid, sent after the backup, for a payment that was in flight at the backup",
  "sponsor transaction": "the sponsor's transaction was open in the backup and has been recorded as expired",
  "channel sequence": "the channel was used after the backup, until its sequence number is read again within a minute",
  "channel charges": "charges of a payment channel after the backup: its record continues from the claimed amount",
  "receipt of a lost record":
    "the receipt was signed before the outcome was lost and recorded again, with other attempts or confirmations",
  "published since": "outcomes logged after the backup: the log continues in a new epoch, and the copy shows which"
} as const satisfies Readonly<Record<string, string>>

export const isHarmlessAfterRestore = (rule: string): boolean => Object.hasOwn(harmlessAfterRestore, rule)
