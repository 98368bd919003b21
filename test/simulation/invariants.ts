// Invariants at the end of a run (rules 2 and 3). Each invariant is checked against the ledger's log, the store's rows
// and the answers to callers, three independent accounts of the same payments. If a store has lost committed data,
// fewer invariants apply, because nothing can recover that data.
import { Option } from "effect"
import type { SettleAnswer } from "../../kernel/payment/Answer.ts"
import type { Payment } from "../../kernel/payment/Payment.ts"
import { isOpen } from "../../kernel/settlement/state/Settlement.ts"
import type { Included } from "./SimulatedLedger.ts"
import { isNonceless } from "./SimulatedBatch.ts"
import { batchViolations } from "./batchInvariants.ts"
import { isMetaReadable } from "./simulatedRpc.ts"
import { authorizationOf } from "./simulatedScheme.ts"
import { chargedOf, type Row } from "./TwinStore.ts"
import type { Replica } from "./Replica.ts"
import type { World } from "./World.ts"

export interface Reported {
  readonly payment: Payment
  /** When it first read the store; undefined if it never did. */
  readonly readAt: number | undefined
  readonly receivedAt: number
  readonly answer: SettleAnswer
  /** The process that answered. */
  readonly replica: Replica
}

type Rows = ReadonlyArray<Row>

const nameOf = ({ born, state }: Row): string => `${born.authorizationKey} (${born.scheme}, ${state})`

/** A row by its payment: two schemes may have the same key. */
const idOf = (scheme: string, key: string): string => `${scheme} ${key}`
const rowId = ({ born }: Row): string => idOf(born.scheme, born.authorizationKey)

/** Our transaction that moved an authorization's money. */
const movedByOurs = ({ ledger }: World): ReadonlyMap<string, Included> =>
  new Map(
    ledger.log.flatMap((included) => {
      const { authorization, succeeded } = included
      return authorization === undefined || !succeeded
        ? []
        : [[idOf(authorization.scheme, authorization.key), included] as const]
    })
  )

/** A stranger used the channel's number, and none of our transactions landed: past the bound no answer proves when. */
const isUndecidable = ({ ledger }: World, { attempts, born: { channel } }: Row): boolean => {
  const { address, sequence } = channel
  const isHere = (one: { readonly channel: string; readonly sequence: bigint }) =>
    one.channel === address && one.sequence === sequence
  const landed = ledger.log.filter(isHere)
  const isOwn = landed.some(({ innerHash }) => attempts.some((one) => one.innerHash === innerHash))
  return !isOwn && (landed.length > 0 || ledger.usurpations.some(isHere))
}

/**
 * A transaction with a lost record moved the money: either after the second record of the payment had failed, which
 * read that the authorization is live, or so long before its end that the nonce's entry no longer existed.
 */
const isPaidByLost = ({ hasLostCommits }: World, { attempts, state }: Row, ours: Included): boolean =>
  hasLostCommits &&
  (state === "expired" || state === "failed") &&
  attempts.every(({ innerHash }) => innerHash !== ours.innerHash)

/** The record contains the amount that its transaction moved; the promised amount if that is unreadable. */
const isAsMoved = (ours: Included, recorded: bigint | undefined): boolean =>
  recorded === ours.moved || (!isMetaReadable(ours) && recorded === ours.authorization!.amount)

/** The amount of a stranger's later use of a failed payment's authorization; undefined if there was no correction. */
const correctedBy = ({ ledger, store }: World, { born }: Row) =>
  store.facts.some(({ subject, type }) => subject === born.id && type === "settlement.failed")
    ? ledger.foreign.find(
        ({ authorization: { act, key, scheme } }) =>
          key === born.authorizationKey && scheme === born.scheme && !isNonceless(act)
      )
    : undefined

/**
 * A settlement is settled if and only if our transaction moved its money; every record ends, each with its own
 * transaction.
 */
const endings = (world: World, rows: Rows, moved: ReadonlyMap<string, Included>): ReadonlyArray<string> => {
  const found: Array<string> = []
  const endedBy = new Map<string, string>()
  for (const row of rows) {
    const name = nameOf(row)
    const ours = moved.get(rowId(row))
    if (isOpen(row.state)) found.push(`${name} never ended`)
    if (row.state === "unresolved" && !isUndecidable(world, row)) found.push(`${name} has no resolution`)
    if (ours !== undefined && row.state !== "settled" && !isPaidByLost(world, row, ours))
      found.push(`${name} moved money in ${ours.innerHash.slice(0, 8)} and is not settled`)
    const late = ours === undefined ? correctedBy(world, row) : undefined
    const isLate = late !== undefined && late.ledger > (row.outcome?.channel?.ledger ?? 0)
    if (row.state === "failed" && isLate && row.outcome?.reason === "settle_ledger_transaction_failed")
      found.push(`${name} was used in ledger ${late.ledger} and is still failed`)
    if (row.state !== "settled") continue
    if (late !== undefined) {
      if (row.outcome?.amountTransferred !== late.moved)
        found.push(`${name} moved ${row.outcome?.amountTransferred}, a stranger ${late.moved}`)
      continue
    }
    if (ours === undefined) found.push(`${name} is settled, and the ledger moved nothing for it`)
    else if (!isAsMoved(ours, row.outcome?.amountTransferred))
      found.push(`${name} moved ${row.outcome?.amountTransferred}, the ledger ${ours.moved}`)
    if (ours === undefined) continue
    if (endedBy.has(ours.innerHash)) found.push(`${name} and ${endedBy.get(ours.innerHash)} ended by one transaction`)
    endedBy.set(ours.innerHash, name)
  }
  const known = new Set(rows.map(rowId))
  for (const { authorization, innerHash } of world.hasLostCommits ? [] : world.ledger.log)
    if (authorization !== undefined && !known.has(idOf(authorization.scheme, authorization.key)))
      found.push(`${innerHash.slice(0, 8)} landed without a record`)
  return found
}

/** A settlement is charged the ledger's actual fee; more only if the fee cannot be determined any more. */
const charges = (world: World, rows: Rows): ReadonlyArray<string> => {
  if (world.hasLostCommits) return []
  const found: Array<string> = []
  let recorded = 0n
  for (const row of rows) {
    const { attempts, born, outcome } = row
    const name = nameOf(row)
    const landed = world.ledger.log.filter(({ innerHash }) => attempts.some((one) => one.innerHash === innerHash))
    const taken = landed.reduce((sum, { feeChargedStroops }) => sum + feeChargedStroops, 0n)
    const charged = chargedOf(row)
    recorded += charged
    if (taken > born.budgetStroops) found.push(`${name} cost ${taken}, and ${born.budgetStroops} were reserved`)
    // If a transaction may have landed unseen, the charge stays: never less than the ledger's fee.
    const isGuess = outcome?.feeUnknown === true && charged >= taken && charged >= born.budgetStroops
    if (outcome !== undefined && charged !== taken && !isGuess)
      found.push(`${name} is charged ${charged}, the ledger took ${taken}`)
    for (const { innerHash, ledger: sequence, outerHash } of landed)
      if (!attempts.some((one) => one.outerHash === outerHash))
        found.push(`${name}: ${innerHash.slice(0, 8)} landed in ${sequence} in an envelope that was never recorded`)
  }
  let committed = 0n
  for (const [key, budget] of world.store.budgets) {
    committed += budget.committed
    if (budget.reserved !== 0n) found.push(`${key} keeps ${budget.reserved} reserved`)
  }
  if (committed !== recorded) found.push(`budgets hold ${committed}, the settlements ${recorded}`)
  return found
}

/** Every channel returns with the ledger's number, and no number has two holders. */
const channels = (world: World, rows: Rows): ReadonlyArray<string> => {
  const found: Array<string> = []
  for (const { address, leasedUntil, sequence, settlement } of world.store.channels.values()) {
    const name = address.slice(0, 6)
    const onLedger = world.ledger.channels.get(address)
    if (settlement !== undefined) found.push(`channel ${name} is still held`)
    if (leasedUntil !== undefined && leasedUntil > world.time.now + 5_000)
      found.push(`channel ${name} is leased far into the future`)
    if (sequence !== onLedger) found.push(`channel ${name} has sequence ${sequence}, the ledger ${onLedger}`)
  }
  if (world.hasLostCommits) return found
  const holders = Map.groupBy(rows, ({ born }) => `${born.channel.address.slice(0, 6)} ${born.channel.sequence}`)
  for (const [number, all] of holders) {
    const bornIn = ({ born }: Row) => world.bornIn.get(born.id) ?? born.recordedLedger
    const ordered = all.toSorted((a, b) => bornIn(a) - bornIn(b))
    for (const [index, row] of ordered.slice(1).entries()) {
      const before = ordered[index]!
      if (bornIn(row) < before.born.authorizationExpiresLedger)
        found.push(`channel and number ${number} were leased to ${nameOf(before)} and to ${nameOf(row)}`)
    }
  }
  return found
}

/** Facts report each birth and each end once. */
const facts = (world: World, rows: Rows): ReadonlyArray<string> =>
  rows.flatMap((row) => {
    const reported = world.store.facts.filter(({ subject }) => subject === row.born.id).map(({ type }) => type)
    const due = isOpen(row.state) ? ["settlement.recorded"] : ["settlement.recorded", `settlement.${row.state}`]
    const [, end, correction, ...more] = reported
    const isCorrected =
      end === "settlement.failed" &&
      correction === (row.state === "settled" ? "settlement.settled" : "settlement.spent") &&
      more.length === 0
    return reported.join() === due.join() || isCorrected || world.hasLostCommits
      ? []
      : [`${nameOf(row)} has the facts ${reported.join()}`]
  })

/** The state that a final answer claims by its reason. */
const claimOf = (reason: string): Row["state"] | undefined =>
  reason === "settle_ledger_transaction_failed"
    ? "failed"
    : reason === "settle_ledger_transaction_expired"
      ? "expired"
      : undefined

/** Answers that contradict the final state. */
const contradiction = (
  world: World,
  { answer, payment, receivedAt }: Reported,
  row: Row | undefined,
  ours: Included | undefined
): string | undefined => {
  const isOwner = row?.born.principal.owner === payment.principal.owner
  const late = row === undefined ? undefined : correctedBy(world, row)
  switch (answer._tag) {
    case "Settled":
      if (!isOwner && !world.hasLostCommits) return "settled, and it is not the caller's"
      if (row === undefined && world.hasLostCommits) return undefined
      return row?.state === "settled" && (ours?.innerHash ?? late?.hash) === answer.transaction
        ? undefined
        : `settled in ${answer.transaction.slice(0, 8)}, and is ${row?.state ?? "not recorded"}`
    case "Pending":
      if (row !== undefined && !isOwner && !world.hasLostCommits) return "pending, and it is not the caller's"
      return row?.born.innerHash === answer.transaction ||
        row?.formerHashes.includes(answer.transaction) === true ||
        // Another request is receiving the success of a payment that a late use completed.
        late?.hash === answer.transaction ||
        world.hasLostCommits
        ? undefined
        : "pending with another hash"
    case "Failed": {
      const { reason } = answer.refusal
      const claimed = claimOf(reason)
      if (claimed !== undefined && row?.state !== claimed && !world.hasLostCommits && late === undefined)
        return `${claimed}, and is ${row?.state ?? "not recorded"}`
      // The record was lost, maybe another caller's: a repeated request was recorded again, with another outcome.
      const isOfLost = world.hasLostCommits && row !== undefined && row.recordedAt >= receivedAt
      const isExcused = isOfLost || (row !== undefined && ours !== undefined && isPaidByLost(world, row, ours))
      if (claimed !== undefined && ours !== undefined && !isExcused) return `${claimed}, and its money moved`
      if (reason === "settle_ledger_already_settled" && isOwner && !isOfLost && row?.state !== "settled")
        return `already settled, and is ${row?.state ?? "not recorded"}`
      if (reason === "settle_ledger_authorization_spent" && ours !== undefined && (row === undefined || isOwner))
        return "spent elsewhere, and it was our own transaction"
      return reason === "internal_error" ? "with our own internal error" : undefined
    }
  }
}

/** A conflict is with another payment of the same caller; other callers' terms do not conflict. */
const isFramed = ({ answer, payment }: Reported, rows: Rows): boolean => {
  if (answer._tag !== "Failed" || answer.refusal.reason !== "payment_identifier_conflict") return false
  const { key, payer, scheme } = authorizationOf(payment)
  const identifier = Option.getOrUndefined(payment.identifier)
  const own = rows.filter(({ born }) => born.principal.owner === payment.principal.owner)
  return !own.some(({ born }) => {
    const isSame = born.authorizationKey === key && born.scheme === scheme
    const isNamed = identifier !== undefined && Option.getOrUndefined(born.identifier) === identifier
    return born.fingerprint !== payment.fingerprint && (isSame || (isNamed && born.payer === payer))
  })
}

const answers = (
  world: World,
  reported: ReadonlyArray<Reported>,
  rows: Rows,
  moved: ReadonlyMap<string, Included>
): ReadonlyArray<string> => {
  const found: Array<string> = []
  const byId = new Map(rows.map((row) => [rowId(row), row]))
  const successes = new Map<string, Array<Reported>>()
  for (const one of reported) {
    const { key, scheme } = authorizationOf(one.payment)
    const id = idOf(scheme, key)
    const wrong = contradiction(world, one, byId.get(id), moved.get(id))
    if (wrong !== undefined) found.push(`${key} was answered ${wrong}`)
    if (!world.hasLostCommits && isFramed(one, rows)) found.push(`${key} conflicts with nothing of its caller's`)
    if (one.answer._tag === "Settled") successes.set(id, [...(successes.get(id) ?? []), one])
  }
  for (const [id, all] of world.hasLostCommits ? [] : successes) {
    // Once, and again only from another process after the first one has died.
    const again = all.slice(1).filter(({ replica }, at) => all[at]!.replica.isAlive || all[at]!.replica === replica)
    if (again.length > 0) found.push(`${id} released ${all.length} resources`)
  }
  return found
}

export const violations = (world: World, reported: ReadonlyArray<Reported>): ReadonlyArray<string> => {
  const rows = [...world.store.rows.values()]
  const moved = movedByOurs(world)
  return [
    ...endings(world, rows, moved),
    ...charges(world, rows),
    ...channels(world, rows),
    ...facts(world, rows),
    ...answers(world, reported, rows, moved),
    ...batchViolations(world)
  ]
}
