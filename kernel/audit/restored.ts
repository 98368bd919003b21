// Findings of the auditor that a restore of an older backup, or a failover that lost commits, explains. A test compares
// the runbook's list with this one. Anything else is a defect, restored or not.

/** A rule, and the reason why it may be violated without an error in the money. */
export const harmlessAfterRestore = {
  "recorded before sent":
    "a payment that was sent since the backup: until it comes again and is adopted, or is given to its owner",
  "bid recorded before sent": "a higher bid, sent since the backup, for a payment that was in flight in it",
  "sponsor transaction": "the sponsor's transaction was open in the backup and has been recorded as expired",
  "channel sequence": "the channel was used since the backup: until its number is read again, within a minute",
  "channel charges": "charges of a payment channel since the backup: its record continues from what was claimed",
  "published since":
    "outcomes that were logged since the backup: the log continues in a new epoch, and the copy shows which"
} as const satisfies Readonly<Record<string, string>>

export const isHarmlessAfterRestore = (rule: string): boolean => Object.hasOwn(harmlessAfterRestore, rule)
