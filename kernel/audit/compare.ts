// The audit, pure: compares the ledger's side of the books with the database's. Every transaction of our accounts has a
// record with the same content, or is the recorded outcome of a settlement; every record of an outcome is confirmed by
// the ledger; sequence numbers, budgets and facts match. Records older than the endpoint's history are counted and not
// checked.
import type { Claims, SettlementClaim } from "./auditRows.ts"
import type { LedgerEntry, LedgerView } from "./readLedger.ts"

export interface Mismatch {
  readonly rule: string
  /** The settlement, transaction or account of the finding. */
  readonly subject: string
  readonly detail: string
}

export interface AuditReport {
  readonly settlements: number
  readonly transactions: number
  /** Settlements without an outcome yet; not checked. */
  readonly open: number
  /** Settlements that an operator has to resolve. */
  readonly unresolved: number
  /** Ended before the first ledger of the endpoint's history; not checked. */
  readonly forgotten: number
  /**
   * Settlements that ended by a transaction without a record of its own. The record names that transaction, so this is
   * not a mismatch.
   */
  readonly endedByLost: number
  readonly mismatches: ReadonlyArray<Mismatch>
}

const isOpen = (state: string) => state === "prepared" || state === "submitted"

type Wrong = (rule: string, subject: string, detail: string) => void

export const compare = (claims: Claims, view: LedgerView): AuditReport => {
  const mismatches: Array<Mismatch> = []
  const wrong: Wrong = (rule, subject, detail) => mismatches.push({ rule, subject, detail })
  verifyTransactions(claims, view, wrong)
  const counts = verifySettlements(claims, view, wrong)
  verifyMovements(claims, view, wrong)
  verifyAccounts(claims, view, wrong)
  verifyBooks(claims, wrong)
  return {
    settlements: claims.settlements.length,
    transactions: view.entries.length,
    ...counts,
    mismatches
  }
}

/** Settlements by the transaction that ended them. */
const settlementsByEnd = (claims: Claims) =>
  new Map(claims.settlements.flatMap((one) => (one.ended_by === null ? [] : [[one.ended_by, one] as const])))

const attemptsByHash = (claims: Claims) => new Map(claims.attempts.map((attempt) => [attempt.inner_hash, attempt]))

const verifyTransactions = (claims: Claims, view: LedgerView, wrong: Wrong): void => {
  const attemptOf = attemptsByHash(claims)
  const endOf = settlementsByEnd(claims)
  const outerHashes = new Set(claims.attempts.map(({ outer_hash }) => outer_hash))
  const sponsorOf = new Map(claims.sponsorTransactions.map((transaction) => [transaction.hash, transaction]))
  for (const entry of view.entries) {
    const sponsored = sponsorOf.get(entry.innerHash)
    const attempt = attemptOf.get(entry.innerHash)
    if (sponsored !== undefined) {
      const state = entry.succeeded ? "landed" : "failed"
      if (sponsored.state !== state && sponsored.state !== "open")
        wrong("sponsor transaction", entry.innerHash, `is ${sponsored.state}, the ledger says ${state}`)
      if (
        sponsored.fee_charged_stroops !== null &&
        sponsored.state !== "open" &&
        sponsored.fee_charged_stroops !== entry.feeChargedStroops
      ) {
        wrong(
          "sponsor fee",
          entry.innerHash,
          `recorded ${sponsored.fee_charged_stroops}, charged ${entry.feeChargedStroops}`
        )
      }
    } else if (attempt === undefined) {
      // A restore can leave a settlement that ended by another transaction with a lost record.
      const ending = endOf.get(entry.innerHash)
      if (ending === undefined || ending.inner_hash === entry.innerHash)
        wrong("recorded before sent", entry.innerHash, `landed in ledger ${entry.ledger} without a record`)
    } else if (!outerHashes.has(entry.outerHash))
      wrong("bid recorded before sent", entry.outerHash, `a bid for ${entry.innerHash} landed without a record`)
  }
}

/** The database's settlements, each compared with the ledger; how many are not checked, and why. */
const verifySettlements = (
  claims: Claims,
  view: LedgerView,
  wrong: Wrong
): Pick<AuditReport, "open" | "unresolved" | "forgotten" | "endedByLost"> => {
  const byHash = new Map(view.entries.map((entry) => [entry.innerHash, entry]))
  const attemptsOf = Map.groupBy(claims.attempts, ({ settlement }) => settlement)
  const failedOnce = new Set(
    claims.facts.flatMap(({ subject, types }) => (types.includes("settlement.failed") ? [subject] : []))
  )
  let [open, unresolved, forgotten, endedByLost] = [0, 0, 0, 0]
  for (const settlement of claims.settlements) {
    const attempts = attemptsOf.get(settlement.id) ?? []
    const landed = attempts.flatMap(({ inner_hash }) => byHash.get(inner_hash) ?? [])
    const distinct = [...new Map(landed.map((entry) => [entry.innerHash, entry])).values()]
    if (distinct.length > 1) wrong("one landing", settlement.id, `${distinct.length} of its transactions landed`)
    if (isOpen(settlement.state)) open += 1
    else if (settlement.state === "unresolved") unresolved += 1
    else if (Number(settlement.ledger ?? settlement.recorded_ledger) < view.fromLedger) forgotten += 1
    else {
      const isLost = settlement.ended_by !== null && attempts.every((one) => one.inner_hash !== settlement.ended_by)
      const by = isLost ? byHash.get(settlement.ended_by!) : undefined
      // A failed settlement with an authorization that anyone used later: that transaction may not be ours.
      if (isLost && by === undefined && settlement.state === "settled" && failedOnce.has(settlement.id))
        endedByLost += 1
      else if (by === undefined) verifyEnd(settlement, distinct, wrong)
      else {
        endedByLost += 1
        verifyLostEnd(settlement, by, distinct, wrong)
      }
    }
  }
  return { open, unresolved, forgotten, endedByLost }
}

/**
 * One payment of a payer to a recipient is one transfer, so the amounts that our transactions moved equal the settled
 * amounts. A payment of a signed maximum may use nothing, and then nothing has moved.
 */
const verifyMovements = (claims: Claims, view: LedgerView, wrong: Wrong): void => {
  const attemptOf = attemptsByHash(claims)
  const endOf = settlementsByEnd(claims)
  const settlementOf = new Map(claims.settlements.map((settlement) => [settlement.id, settlement]))
  for (const { innerHash, source, transfers } of view.entries) {
    const attempt = attemptOf.get(innerHash)
    const settlement = endOf.get(innerHash) ?? settlementOf.get(attempt?.settlement ?? "")
    // The sponsor's own transactions fund channels; they involve only our accounts.
    if (attempt === undefined && settlement === undefined) continue
    for (const { from, to } of transfers) {
      if (from === source || to === source) wrong("never party", innerHash, "one of our accounts paid or was paid")
    }
    const isEnd = (settlement?.ended_by ?? innerHash) === innerHash
    if (isEnd && settlement?.state === "settled" && transfers.length !== (settlement.moved === "0" ? 0 : 1))
      wrong("one movement", settlement.id, `${transfers.length} movements in ${innerHash}`)
  }
}

const verifyEnd = (settlement: SettlementClaim, landed: ReadonlyArray<LedgerEntry>, wrong: Wrong): void => {
  const [entry] = landed
  const { id, state } = settlement
  if (state === "expired") {
    if (entry !== undefined) wrong("expired", id, `its transaction landed in ledger ${entry.ledger}`)
    return
  }
  // Its number was used, and no transaction of it was seen: only the reservation is booked.
  if (entry === undefined && state === "failed" && settlement.ended_by === null) return
  if (entry === undefined)
    return wrong("has the ledger's word", id, `is ${state}, but the ledger shows none of its transactions`)
  const isPaid = entry.innerHash === (settlement.ended_by ?? settlement.inner_hash) && entry.succeeded
  if (state === "settled" && !isPaid) wrong("settled", id, "its payment did not succeed on the ledger")
  if (state === "failed" && isPaid) wrong("failed", id, "its payment succeeded on the ledger")
  if (BigInt(entry.ledger) !== settlement.ledger)
    wrong("ledger", id, `recorded ${settlement.ledger}, landed in ${entry.ledger}`)
  if (entry.feeChargedStroops !== settlement.fee_charged_stroops)
    wrong("fee", id, `recorded ${settlement.fee_charged_stroops}, charged ${entry.feeChargedStroops}`)
  if (
    entry.feeSource !== settlement.sponsor ||
    entry.source !== settlement.channel ||
    entry.sequence !== settlement.channel_sequence
  ) {
    wrong("accounts", id, "sponsor, channel or sequence number differ from the record")
  }
  verifyMovement(settlement, entry, wrong)
}

/**
 * A settlement that ended by a transaction with a lost record. It is charged for that transaction, and for its own if
 * that landed too; if this is unknown, it is charged the whole reservation. Channel and number are the lost record's.
 */
const verifyLostEnd = (
  settlement: SettlementClaim,
  by: LedgerEntry,
  own: ReadonlyArray<LedgerEntry>,
  wrong: Wrong
): void => {
  const { budget_stroops: reserved, fee_charged_stroops: charged, id, ledger, state } = settlement
  if (state !== "settled" || !by.succeeded) wrong(state, id, "a transaction ended it that says otherwise")
  if (own.some(({ succeeded }) => succeeded)) wrong("one landing", id, "its own transaction moved money as well")
  if (BigInt(by.ledger) !== ledger) wrong("ledger", id, `recorded ${ledger}, landed in ${by.ledger}`)
  const taken = own.reduce((sum, { feeChargedStroops }) => sum + feeChargedStroops, by.feeChargedStroops)
  if (charged !== taken && charged !== taken + reserved) wrong("fee", id, `recorded ${charged}, charged ${taken}`)
  verifyMovement(settlement, by, wrong)
}

const verifyMovement = (settlement: SettlementClaim, entry: LedgerEntry, wrong: Wrong): void => {
  const { id, state } = settlement
  if (state !== "settled" || settlement.moved === "0") return
  const moved = entry.transfers.some(
    ({ amount, contract, from, to }) =>
      contract === settlement.asset &&
      from === settlement.payer &&
      (to === settlement.payTo || to === "") &&
      amount.toString() === settlement.moved
  )
  if (!moved) wrong("movement", id, `no transfer of ${settlement.moved} from payer to recipient`)
}

/** Channels without a holder have the ledger's sequence number. */
const verifyAccounts = (claims: Claims, view: LedgerView, wrong: Wrong): void => {
  const states = new Map(claims.settlements.map(({ id, state }) => [id, state]))
  for (const { address, sequence, settlement } of claims.channels) {
    if (settlement !== null) {
      const state = states.get(settlement)
      if (state === undefined || !isOpen(state))
        wrong("channel comes back", address, `is held by a settlement that is ${state ?? "not there"}`)
      continue
    }
    const onLedger = view.sequences.get(address)
    if (onLedger === undefined) wrong("channel exists", address, "is not on the ledger")
    else if (sequence !== null && sequence !== onLedger)
      wrong("channel sequence", address, `recorded ${sequence}, the ledger has ${onLedger}`)
  }
}

/**
 * Budgets equal the fees charged plus the reservations of open settlements; facts report each birth and outcome once.
 */
const verifyBooks = (claims: Claims, wrong: Wrong): void => {
  const perPrincipal = new Map<string, { reserved: bigint; committed: bigint }>()
  const perDay = new Map<string, { reserved: bigint; committed: bigint }>()
  const facts = new Map(claims.facts.map(({ subject, types }) => [subject, types]))
  for (const settlement of claims.settlements) {
    for (const [sums, key] of [
      [perPrincipal, `${settlement.budget_day} ${settlement.principal}`],
      [perDay, settlement.budget_day]
    ] as const) {
      const sum = sums.get(key) ?? { reserved: 0n, committed: 0n }
      sums.set(
        key,
        isOpen(settlement.state)
          ? { ...sum, reserved: sum.reserved + settlement.budget_stroops }
          : { ...sum, committed: sum.committed + (settlement.fee_charged_stroops ?? 0n) }
      )
    }
    // An operator may have decided an unresolved settlement since, and a later use of the authorization corrects a
    // failed one.
    const isSuperseded = (type: string, next: string | undefined) =>
      (type === "settlement.unresolved" && next !== undefined) ||
      (type === "settlement.failed" && (next === "settlement.settled" || next === "settlement.spent"))
    const reported = (facts.get(settlement.id) ?? [])
      .filter((type, at, all) => !isSuperseded(type, all[at + 1]))
      .map((type) => (type === "settlement.spent" ? "settlement.failed" : type))
      .join()
    const expected = isOpen(settlement.state)
      ? "settlement.recorded"
      : `settlement.recorded,settlement.${settlement.state}`
    if (reported !== expected) wrong("facts", settlement.id, `report ${reported === "" ? "nothing" : reported}`)
  }
  const check = (
    rule: string,
    key: string,
    found: { reserved: bigint; committed: bigint },
    sum = { reserved: 0n, committed: 0n }
  ) => {
    if (found.committed !== sum.committed) wrong(rule, key, `committed ${found.committed}, charged ${sum.committed}`)
    if (found.reserved !== sum.reserved)
      wrong(rule, key, `reserved ${found.reserved}, open settlements reserve ${sum.reserved}`)
  }
  for (const { committed, day, principal, reserved } of claims.budgets)
    check("budget", `${day} ${principal}`, { committed, reserved }, perPrincipal.get(`${day} ${principal}`))
  for (const { committed, day, reserved } of claims.totals)
    check("budget in all", day, { committed, reserved }, perDay.get(day))
}
