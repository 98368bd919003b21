// What must hold when a run is over, whatever happened in it. Each is looked at from the ledger's log, the store's rows
// and the answers that callers were given, three accounts of the same payments that were written independently.
import type { SettleAnswer } from "../../kernel/payment/Answer.ts"
import type { Payment } from "../../kernel/payment/Payment.ts"
import { isOpen } from "../../kernel/settlement/Settlement.ts"
import { authorizationOf } from "./simulatedScheme.ts"
import type { World } from "./World.ts"

export interface Told {
  readonly payment: Payment
  /** When it first looked at the store; absent when it never did. */
  readonly lookedAt: number | undefined
  readonly answer: SettleAnswer
}

export const violations = (world: World, told: ReadonlyArray<Told>): ReadonlyArray<string> => {
  const { ledger, store } = world
  const found: Array<string> = []
  const wrong = (what: string) => found.push(what)
  const rows = [...store.rows.values()]
  const byKey = new Map(rows.map((row) => [row.born.authorizationKey, row]))

  // One authorization moves money at most once.
  const moved = new Map<string, string>()
  for (const { authorization, innerHash, succeeded } of ledger.log) {
    if (!succeeded || authorization === undefined) continue
    if (moved.has(authorization)) wrong(`${authorization} moved money twice`)
    moved.set(authorization, innerHash)
  }

  for (const row of rows) {
    const { born, outcome, state } = row
    const name = `${born.authorizationKey} (${state})`
    const hash = moved.get(born.authorizationKey)
    // Every record ends.
    if (isOpen(state)) wrong(`${name} never ended`)
    // What moved is recorded as settled with the right hash; what did not is never so recorded.
    if (hash !== undefined && state !== "settled") wrong(`${name} moved money in ${hash} and is not settled`)
    if (state === "settled" && hash !== born.innerHash)
      wrong(`${name} is settled, and the ledger moved ${hash ?? "nothing"}`)
    if (state === "unresolved") wrong(`${name} has no resolution`)
    // The charge is the ledger's.
    const landed = ledger.log
      .filter(({ channel, sequence }) => channel === born.channel.address && sequence === born.channel.sequence)
      .filter(({ innerHash }) => row.attempts.some((attempt) => attempt.innerHash === innerHash))
    const charged = landed.reduce((sum, { feeChargedStroops }) => sum + feeChargedStroops, 0n)
    if (outcome !== undefined && outcome.feeChargedStroops !== charged)
      wrong(`${name} is charged ${outcome.feeChargedStroops}, the ledger took ${charged}`)
    // Everything that landed was recorded before.
    for (const { ledger: sequence, outerHash } of landed) {
      const attempt = row.attempts.find((attempt) => attempt.outerHash === outerHash)
      if (attempt === undefined) wrong(`${name}: ${outerHash} landed in ${sequence} and was never recorded`)
    }
  }
  for (const { authorization, innerHash } of ledger.log) {
    if (authorization !== undefined && byKey.get(authorization) === undefined)
      wrong(`${innerHash} landed without a record`)
  }

  // Every channel comes back, with the sequence number that the ledger has.
  for (const channel of store.channels.values()) {
    if (channel.settlement !== undefined) wrong(`${channel.address} is still held`)
    if (channel.leasedUntil !== undefined && channel.leasedUntil > world.time.now + 5_000)
      wrong(`${channel.address} is leased far into the future`)
    if (channel.sequence !== ledger.channels.get(channel.address))
      wrong(`${channel.address} has sequence ${channel.sequence}, the ledger ${ledger.channels.get(channel.address)}`)
  }

  // Budgets are the fees charged, and nothing stays reserved.
  let committed = 0n
  for (const [key, budget] of store.budgets) {
    committed += budget.committed
    if (budget.reserved !== 0n) wrong(`${key} keeps ${budget.reserved} reserved`)
  }
  const fees = ledger.log.reduce((sum, { feeChargedStroops }) => sum + feeChargedStroops, 0n)
  if (committed !== fees) wrong(`budgets hold ${committed}, the ledger took ${fees}`)

  // Facts tell each birth and each end once.
  for (const row of rows) {
    const facts = store.facts.filter(({ subject }) => subject === row.born.id).map(({ type }) => type)
    const wanted = isOpen(row.state) ? ["settlement.recorded"] : ["settlement.recorded", `settlement.${row.state}`]
    if (facts.join() !== wanted.join()) wrong(`${row.born.authorizationKey} has the facts ${facts.join()}`)
  }

  found.push(...contradictions(world, told, moved))
  return found
}

/** Answers that the final state does not bear out. */
const contradictions = (
  world: World,
  told: ReadonlyArray<Told>,
  moved: ReadonlyMap<string, string>
): ReadonlyArray<string> => {
  const found: Array<string> = []
  const rows = new Map([...world.store.rows.values()].map((row) => [row.born.authorizationKey, row]))
  const successes = new Map<string, Array<Told>>()
  for (const one of told) {
    const { answer, payment } = one
    const key = authorizationOf(payment)
    const row = rows.get(key)
    const wrong = (what: string) => found.push(`${key} was answered ${what}`)
    switch (answer._tag) {
      case "Settled":
        if (row?.state !== "settled" || moved.get(key) !== answer.transaction)
          wrong(`settled, and is ${row?.state ?? "not recorded"}`)
        successes.set(key, [...(successes.get(key) ?? []), one])
        break
      case "Pending":
        if (row?.born.innerHash !== answer.transaction) wrong("pending with another hash")
        break
      case "Failed": {
        const { reason } = answer.refusal
        if (reason === "settle_ledger_transaction_failed" && row?.state !== "failed")
          wrong(`failed, and is ${row?.state ?? "not recorded"}`)
        if (reason === "settle_ledger_transaction_expired" && row?.state !== "expired")
          wrong(`expired, and is ${row?.state ?? "not recorded"}`)
        if (reason === "settle_ledger_already_settled" && row?.state !== "settled")
          wrong(`already settled, and is ${row?.state ?? "not recorded"}`)
        if (reason === "settle_ledger_authorization_spent" && world.ledger.spent.get(key) !== "elsewhere")
          wrong("spent elsewhere, and is our own payment")
        if (reason === "internal_error") wrong("with our own fault")
      }
    }
  }
  for (const [key, all] of successes) {
    const isIdentified = all[0]!.payment.identifier._tag === "Some"
    if (!isIdentified && all.length > 1) found.push(`${key} released ${all.length} resources`)
    // Who looked before the settlement was born is a twin of whoever recorded it; one of them gets the success.
    const twins = all.filter(({ lookedAt }) => lookedAt !== undefined && lookedAt <= rows.get(key)!.recordedAt)
    if (twins.length > 1) found.push(`${key} was given to ${twins.length} callers at once`)
  }
  return found
}
