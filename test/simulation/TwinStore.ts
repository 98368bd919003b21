// The tables of the settlement repository in memory: the behavior of `SqlSettlements` and its neighbors without a
// database. Each operation is one atomic step. `twin.daily.test.ts` runs the same histories on both and shows that it
// keeps the same promises as the SQL.
import { Option } from "effect"
import { counted } from "../../kernel/http/Authentication.ts"
import { isOpen, type Attempt, type Outcome, type SettlementState } from "../../kernel/settlement/state/Settlement.ts"
import type { JournalCursor, JournalEnd } from "../../kernel/facts/FactsEpoch.ts"
import type { EventPage } from "../../kernel/settlement/operators/SettlementEvents.ts"
import type { ChannelCounts, ChannelLease } from "../../kernel/settlement/channels/ChannelStore.ts"
import type {
  AdoptAnswer,
  AdoptedSettlement,
  Correction,
  DeliveryClaim,
  DeliveryEnd,
  FindQuery,
  NewAttempt,
  NewSettlement,
  OpenRecord,
  RecordAnswer,
  ResolveAnswer,
  SentNote,
  SettlementRecord,
  WatchedRecord
} from "../../kernel/settlement/store/Settlements.ts"
import { actionOf } from "../../kernel/settlement/store/SettlementRows.ts"

/** The claim that got the success. */
interface GivenDelivery {
  readonly process: string | undefined
  readonly claim: bigint | undefined
  readonly key: string | undefined
  readonly isConfirmed: boolean
}

export interface Row {
  /** With another channel and hash after it was built again. */
  born: NewSettlement
  /** Attempts up to this one can never land. */
  attemptsVoid: number
  /** Its hashes before it was built again. */
  readonly formerHashes: Array<string>
  readonly day: string
  readonly recordedAt: number
  readonly attempts: Array<Attempt>
  state: SettlementState
  outcome: Outcome | undefined
  resolvedAt: number | undefined
  delivery: GivenDelivery | undefined
  /** For a failed settlement with a live authorization: the ledger as of which it was unspent. */
  watchAfter: number | undefined
}

export interface Channel {
  readonly address: string
  sequence: bigint | undefined
  sequenceLedger: number
  fence: bigint
  leasedUntil: number | undefined
  settlement: string | undefined
  /** Its number must be read from the ledger before it is leased. */
  reread: boolean
  usedAt: number
  usedOrder: number
}

export interface Fact {
  readonly type: string
  readonly subject: string
  readonly transaction: string
}

export interface TwinLimits {
  readonly leaseMillis: number
  readonly pendingMax: number
  readonly perPrincipalStroops: bigint
  readonly inAllStroops: bigint
}

type Born = Pick<
  NewSettlement,
  "network" | "scheme" | "authorizationKey" | "innerHash" | "principal" | "payTo" | "payer" | "identifier"
>

const haveOneAuthorization = (one: Born, other: Born): boolean =>
  one.network === other.network && one.scheme === other.scheme && one.authorizationKey === other.authorizationKey

const haveOneTransaction = (one: Born, other: Born): boolean =>
  one.network === other.network && one.innerHash === other.innerHash

const haveOneIdentifier = (one: Born, other: Born): boolean =>
  Option.isSome(other.identifier) &&
  one.principal.owner === other.principal.owner &&
  one.payTo === other.payTo &&
  one.payer === other.payer &&
  Option.getOrUndefined(one.identifier) === other.identifier.value

export class TwinStore {
  readonly rows = new Map<string, Row>()
  readonly channels = new Map<string, Channel>()
  readonly facts: Array<Fact> = []
  /** Each epoch with the end of the journal when it began. */
  readonly epochs: Array<{ readonly epoch: bigint; readonly beginsAfter: bigint }> = [{ epoch: 1n, beginsAfter: 0n }]
  readonly budgets = new Map<string, { reserved: bigint; committed: bigint; keyed: boolean }>()
  /** Changed by a test that needs budgets to last. */
  limits: TwinLimits
  /** Living processes. */
  readonly processes = new Set<string>()
  readonly #leases = new Map<string, { holder: string; renewedAt: number; until: number }>()
  readonly #now: () => number
  #order = 0

  constructor(limits: TwinLimits, now: () => number) {
    this.limits = limits
    this.#now = now
  }

  addChannel(address: string, sequence: bigint | undefined): void {
    this.channels.set(address, {
      address,
      sequence,
      sequenceLedger: 0,
      fence: 0n,
      leasedUntil: undefined,
      settlement: undefined,
      reread: false,
      usedAt: this.#now(),
      usedOrder: this.#order++
    })
  }

  /** Copies the current tables; the returned function restores them, once. */
  snapshot(): () => void {
    const rows = [...this.rows].map(([id, row]): [string, Row] => [
      id,
      { ...row, attempts: [...row.attempts], formerHashes: [...row.formerHashes] }
    ])
    const channels = [...this.channels].map(([id, channel]): [string, Channel] => [id, { ...channel }])
    const budgets = [...this.budgets].map(([key, budget]) => [key, { ...budget }] as const)
    const leases = [...this.#leases].map(([name, lease]) => [name, { ...lease }] as const)
    const facts = [...this.facts]
    const epochs = [...this.epochs]
    const refill = <K, V>(map: Map<K, V>, entries: ReadonlyArray<readonly [K, V]>) => {
      map.clear()
      for (const [key, value] of entries) map.set(key, value)
    }
    return () => {
      refill(this.rows, rows)
      refill(this.channels, channels)
      refill(this.budgets, budgets)
      refill(this.#leases, leases)
      this.facts.splice(0, Infinity, ...facts)
      this.epochs.splice(0, Infinity, ...epochs)
    }
  }

  // Settlements

  find(query: FindQuery): ReadonlyArray<SettlementRecord> {
    const byKey = Option.getOrUndefined(query.authorizationKey)
    const byIdentifier = Option.getOrUndefined(query.identifier)
    return [...this.rows.values()]
      .filter(
        ({ born }) =>
          (byKey !== undefined &&
            born.authorizationKey === byKey &&
            born.network === query.network &&
            born.scheme === query.scheme) ||
          (byIdentifier !== undefined &&
            born.principal.owner === query.principal &&
            born.payTo === query.payTo &&
            born.payer === Option.getOrUndefined(query.payer) &&
            Option.getOrUndefined(born.identifier) === byIdentifier)
      )
      .map((row) => this.#recordOf(row))
  }

  /** Undefined if the statement itself fails: another settlement has the id or the transaction. */
  record(born: NewSettlement): RecordAnswer | undefined {
    if (this.openCount() >= this.limits.pendingMax) return { _tag: "TooManyOpen" }
    const channel = this.channels.get(born.channel.address)
    if (channel === undefined || channel.fence !== born.channel.fence || channel.settlement !== undefined)
      return { _tag: "FenceLost" }
    const day = this.#today()
    if (!this.#fits(day, counted(born.principal), born.budgetStroops)) return { _tag: "BudgetExceeded" }
    // The constraints are checked in their order of creation.
    const rows = [...this.rows.values()]
    if (rows.some((row) => row.born.id === born.id)) return undefined
    if (rows.some((row) => haveOneAuthorization(row.born, born))) return { _tag: "Known" }
    if (rows.some((row) => haveOneTransaction(row.born, born))) return undefined
    if (rows.some((row) => haveOneIdentifier(row.born, born))) return { _tag: "Known" }
    this.rows.set(born.id, {
      born,
      day,
      recordedAt: this.#now(),
      attempts: [attemptOf(born.attempt, 1)],
      attemptsVoid: 0,
      formerHashes: [],
      state: "prepared",
      outcome: undefined,
      resolvedAt: undefined,
      watchAfter: undefined,
      delivery: undefined
    })
    channel.settlement = born.id
    channel.leasedUntil = undefined
    this.#use(channel)
    this.#budget(day, counted(born.principal)).reserved += born.budgetStroops
    this.facts.push({ type: "settlement.recorded", subject: born.id, transaction: born.innerHash })
    return { _tag: "Recorded" }
  }

  /** True if a unique constraint refuses it. */
  #clashes(born: NewSettlement): boolean {
    return [...this.rows.values()].some(
      (row) =>
        row.born.id === born.id ||
        haveOneTransaction(row.born, born) ||
        haveOneAuthorization(row.born, born) ||
        haveOneIdentifier(row.born, born)
    )
  }

  addAttempt(id: string, attempt: NewAttempt, attemptsKnown: number): number | undefined {
    const row = this.rows.get(id)
    if (row === undefined || !isOpen(row.state) || row.attempts.length !== attemptsKnown) return undefined
    row.attempts.push(attemptOf(attempt, row.attempts.length + 1))
    return row.attempts.length
  }

  rebuild(id: string, lease: ChannelLease, attempt: NewAttempt, attemptsKnown: number): number | undefined {
    const row = this.rows.get(id)
    const channel = this.channels.get(lease.address)
    const isHeld = [...this.channels.values()].some(({ settlement }) => settlement === id)
    if (row === undefined || !isOpen(row.state) || row.attempts.length !== attemptsKnown || isHeld) return undefined
    if (channel === undefined || channel.fence !== lease.fence || channel.settlement !== undefined) return undefined
    row.formerHashes.push(row.born.innerHash)
    row.attemptsVoid = attemptsKnown
    row.born = { ...row.born, channel: lease, innerHash: attempt.innerHash }
    row.attempts.push(attemptOf(attempt, attemptsKnown + 1))
    channel.settlement = id
    channel.leasedUntil = undefined
    this.#use(channel)
    return attemptsKnown + 1
  }

  noteSent(id: string, number: number, { code, ledger, outerHash, status }: SentNote): void {
    const row = this.rows.get(id)
    const numbered = row?.attempts[number - 1]
    const attempt = outerHash === undefined || numbered?.outerHash === outerHash ? numbered : undefined
    if (row === undefined) return
    const taken = attempt?.taken === true || status === "Pending" || status === "Duplicate" || status === "Lost"
    if (attempt !== undefined)
      row.attempts[number - 1] = { ...attempt, sentStatus: status, sentLedger: ledger, sentCode: code, taken }
    if (row.state === "prepared") row.state = "submitted"
  }

  open(limit: number): ReadonlyArray<OpenRecord> {
    return [...this.rows.values()]
      .filter(({ state }) => isOpen(state))
      .sort((a, b) => a.recordedAt - b.recordedAt)
      .slice(0, limit)
      .map((row) =>
        openOf(row, this.#deliveryOf(row), this.channels.get(row.born.channel.address)?.settlement === row.born.id)
      )
  }

  resolve(id: string, outcome: Outcome, attemptsKnown?: number): ResolveAnswer {
    const row = this.rows.get(id)
    if (row === undefined || !isOpen(row.state)) return { _tag: "Changed" }
    if (attemptsKnown !== undefined && row.attempts.length !== attemptsKnown) return { _tag: "Changed" }
    // An outcome without the settling transaction means its own, as in version 0.1.
    const transaction = outcome.transaction ?? (outcome.state === "settled" ? row.born.innerHash : undefined)
    if (transaction !== undefined && this.#hasEnded(transaction)) return { _tag: "TransactionTaken" }
    row.state = outcome.state
    row.outcome = { ...outcome, transaction }
    row.resolvedAt = this.#now()
    row.watchAfter = outcome.watchAfter
    const budget = this.#budget(row.day, counted(row.born.principal))
    budget.reserved -= row.born.budgetStroops
    budget.committed += chargedOf(row)
    const channel = this.channels.get(row.born.channel.address)
    if (outcome.channel !== undefined && channel?.settlement === id) {
      channel.settlement = undefined
      const used = outcome.channel.sequenceUsed
      channel.sequence =
        used === undefined ? undefined : used ? row.born.channel.sequence : row.born.channel.sequence - 1n
      channel.sequenceLedger = Math.max(channel.sequenceLedger, outcome.channel.ledger)
      this.#use(channel)
    }
    this.facts.push({ type: `settlement.${outcome.state}`, subject: id, transaction: row.born.innerHash })
    return { _tag: "Resolved", record: this.byIds([id])[0]! }
  }

  watched(limit: number): ReadonlyArray<WatchedRecord> {
    return [...this.rows.values()]
      .flatMap((row) => (row.watchAfter === undefined ? [] : [{ ...this.#recordOf(row), watchAfter: row.watchAfter }]))
      .sort((a, b) => a.authorizationExpiresLedger - b.authorizationExpiresLedger)
      .slice(0, limit)
  }

  unwatch(id: string, isDead: boolean): void {
    const row = this.rows.get(id)
    if (row?.outcome === undefined || row.watchAfter === undefined) return
    row.watchAfter = undefined
    const lives = /the authorization lives until ledger [0-9]+$/
    const message = isDead
      ? row.outcome.message?.replace(lives, "the authorization was never used and is dead")
      : row.outcome.message
    row.outcome = { ...row.outcome, message }
  }

  correctFailed(id: string, correction: Correction): ResolveAnswer {
    const { closedAtSeconds, confirmations, ledger, message, moved, reason, state, transaction } = correction
    const row = this.rows.get(id)
    if (row?.outcome === undefined || row.state !== "failed" || row.watchAfter === undefined) return { _tag: "Changed" }
    if (state === "settled" && this.#hasEnded(transaction)) return { _tag: "TransactionTaken" }
    const shown = state === "settled" ? { transaction, ledger, closedAtSeconds } : {}
    row.outcome = { ...row.outcome, ...shown, state, reason, message, confirmations, amountTransferred: moved }
    row.state = state
    row.resolvedAt = this.#now()
    row.watchAfter = undefined
    const type = state === "settled" ? "settlement.settled" : "settlement.spent"
    this.facts.push({ type, subject: id, transaction: row.born.innerHash })
    return { _tag: "Resolved", record: this.#recordOf(row) }
  }

  #hasEnded(transaction: string): boolean {
    return [...this.rows.values()].some(({ outcome }) => outcome?.transaction === transaction)
  }

  freeChannel(id: string, ledger: number, attemptsKnown: number): boolean {
    if (this.rows.get(id)?.attempts.length !== attemptsKnown) return false
    const channel = [...this.channels.values()].find(({ settlement }) => settlement === id)
    if (channel === undefined) return false
    channel.settlement = undefined
    channel.sequence = undefined
    channel.sequenceLedger = Math.max(channel.sequenceLedger, ledger)
    channel.fence += 1n
    this.#use(channel)
    return true
  }

  adopt(settlement: AdoptedSettlement): AdoptAnswer {
    const { channel: address, channelSequence, feeChargedStroops, id, ledger } = settlement
    const born: NewSettlement = {
      ...settlement,
      amountMax: settlement.amount,
      channel: { address, fence: 0n, sequence: channelSequence },
      recordedLedger: ledger,
      deadlineAt: settlement.closedAtSeconds * 1_000,
      budgetStroops: feeChargedStroops,
      attempt: { ...settlement, kind: "payment", recordedLedger: ledger }
    }
    if (this.#clashes({ ...born, id: "", innerHash: "" })) return "Known"
    if (this.#clashes(born) || this.#hasEnded(born.innerHash)) return "TransactionTaken"
    const day = this.#today()
    this.#budget(day, counted(settlement.principal)).committed += feeChargedStroops
    this.rows.set(id, {
      born,
      day,
      recordedAt: this.#now(),
      attempts: [attemptOf(born.attempt, 1)],
      attemptsVoid: 0,
      formerHashes: [],
      state: "settled",
      outcome: {
        state: "settled",
        transaction: settlement.innerHash,
        feeUnknown: false,
        ledger,
        closedAtSeconds: settlement.closedAtSeconds,
        amountTransferred: settlement.amountTransferred,
        feeChargedStroops,
        reason: undefined,
        message: undefined,
        channel: undefined
      },
      resolvedAt: settlement.closedAtSeconds * 1_000,
      watchAfter: undefined,
      delivery: undefined
    })
    const channel = this.channels.get(address)
    if (channel?.settlement === undefined && channel?.sequence !== undefined && channel.sequence < channelSequence) {
      channel.sequence = undefined
      channel.sequenceLedger = Math.max(channel.sequenceLedger, ledger)
    }
    this.facts.push({ type: "settlement.recorded", subject: id, transaction: born.innerHash })
    this.facts.push({ type: "settlement.settled", subject: id, transaction: born.innerHash })
    return "Adopted"
  }

  claimDelivery({ claim, id, process }: DeliveryClaim, principal: string, key: string | undefined): boolean {
    const row = this.rows.get(id)
    if (row === undefined || row.born.principal.owner !== principal || row.state !== "settled") return false
    const isOwn = row.delivery?.process === process && row.delivery.claim === claim
    if (!this.processes.has(process) || (this.#deliveryOf(row) !== "undelivered" && !isOwn)) return false
    row.delivery = { process, claim, key, isConfirmed: false }
    return true
  }

  endDeliveries(ends: ReadonlyArray<DeliveryEnd>): void {
    for (const { claim, hasLeft, id, process } of ends) {
      const row = this.rows.get(id)
      const { delivery } = row ?? {}
      if (delivery?.process !== process || delivery.claim !== claim || delivery.isConfirmed) continue
      row!.delivery = hasLeft ? { ...delivery, isConfirmed: true } : undefined
    }
  }

  #deliveryOf({ delivery }: Row): SettlementRecord["delivery"] {
    if (delivery === undefined) return "undelivered"
    if (delivery.isConfirmed) return "confirmed"
    return this.processes.has(delivery.process!) ? "given" : "undelivered"
  }

  #recordOf(row: Row): SettlementRecord {
    return { ...recordOf(row), delivery: this.#deliveryOf(row) }
  }

  openCount(): number {
    let open = 0
    for (const { state } of this.rows.values()) if (isOpen(state)) open++
    return open
  }

  byIds(ids: ReadonlyArray<string>): ReadonlyArray<SettlementRecord> {
    return ids.flatMap((id) => (this.rows.has(id) ? [this.#recordOf(this.rows.get(id)!)] : []))
  }

  endsOf(ids: ReadonlyArray<string>): ReadonlyArray<SettlementRecord> {
    return this.byIds(ids).filter(({ state }) => !isOpen(state))
  }

  // The journal: a fact's position is its number

  journalEnd(): JournalEnd {
    return { epoch: this.epochs.at(-1)!.epoch, end: BigInt(this.facts.length) }
  }

  /** Up to this position the journal contains all positions of a cursor's epoch. */
  #commonPosition({ epoch: of, position }: JournalCursor): bigint {
    const epoch = of === 0n ? this.epochs[0]!.epoch : of
    const newestBefore = this.epochs.findLast((one) => one.epoch <= epoch)?.epoch ?? 0n
    return this.epochs
      .filter((one) => one.epoch !== epoch && one.epoch >= newestBefore)
      .reduce((least, { beginsAfter }) => (beginsAfter < least ? beginsAfter : least), position)
  }

  eventsAfter(principal: string | undefined, cursor: JournalCursor, limit: number): EventPage {
    const { epoch } = this.journalEnd()
    const resumesAt = this.#commonPosition(cursor)
    const facts = this.facts
      .map((fact, index) => ({ ...fact, position: BigInt(index + 1) }))
      .filter(({ position, subject }) => {
        const owner = this.rows.get(subject)!.born.principal.owner
        return position > resumesAt && (principal === undefined || owner === principal)
      })
      .slice(0, limit)
    return {
      events: facts.map(({ position, subject, type }) => {
        const [settlement] = this.byIds([subject])
        return { epoch, position, type, at: settlement!.recordedAt, settlement: settlement! }
      }),
      next: { epoch, position: facts.at(-1)?.position ?? resumesAt },
      isEnd: facts.length < limit,
      rewoundTo: resumesAt < cursor.position ? { epoch, position: resumesAt } : undefined
    }
  }

  // Channels

  /** Only of these channel addresses, if given: the caller has their keys. */
  take(count: number, addresses?: ReadonlyArray<string>): ReadonlyArray<ChannelLease> {
    const now = this.#now()
    const free = [...this.channels.values()]
      .filter(
        ({ address, leasedUntil, reread, sequence, settlement }) =>
          addresses?.includes(address) !== false &&
          sequence !== undefined &&
          !reread &&
          settlement === undefined &&
          (leasedUntil === undefined || leasedUntil < now)
      )
      .sort((a, b) => a.usedAt - b.usedAt || a.usedOrder - b.usedOrder)
      .slice(0, count)
    return free.map((channel) => {
      channel.fence += 1n
      channel.leasedUntil = now + this.limits.leaseMillis
      return { address: channel.address, fence: channel.fence, sequence: channel.sequence! + 1n }
    })
  }

  release(lease: ChannelLease): void {
    const channel = this.channels.get(lease.address)
    if (channel !== undefined && channel.fence === lease.fence && channel.settlement === undefined)
      channel.leasedUntil = undefined
  }

  learn(address: string, sequence: bigint, asOfLedger: number): void {
    const channel = this.channels.get(address)
    if (
      channel === undefined ||
      channel.settlement !== undefined ||
      (channel.sequence !== undefined && !channel.reread) ||
      (channel.leasedUntil !== undefined && channel.leasedUntil >= this.#now()) ||
      channel.sequenceLedger > asOfLedger
    )
      return
    channel.sequence = sequence
    channel.sequenceLedger = asOfLedger
    if (channel.reread) channel.fence += 1n
    channel.reread = false
  }

  distrust(): void {
    for (const channel of this.channels.values()) channel.reread = true
  }

  /** Begins a journal epoch, with its effect on channels. */
  beginEpoch(): void {
    const { end, epoch } = this.journalEnd()
    const microseconds = BigInt(this.#now()) * 1_000n
    this.epochs.push({ epoch: microseconds > epoch ? microseconds : epoch + 1n, beginsAfter: end })
    this.distrust()
    for (const channel of this.channels.values()) if (channel.settlement === undefined) channel.fence += 1_000_000n
  }

  correct(address: string, known: bigint, sequence: bigint, asOfLedger: number): boolean {
    const channel = this.channels.get(address)
    const isLeased = channel?.leasedUntil !== undefined && channel.leasedUntil >= this.#now()
    if (channel === undefined || isLeased || channel.settlement !== undefined) return false
    if (channel.sequence !== known || channel.sequenceLedger > asOfLedger) return false
    channel.sequence = sequence
    channel.sequenceLedger = asOfLedger
    channel.fence += 1n
    return true
  }

  counts(addresses?: ReadonlyArray<string>): ChannelCounts {
    const now = this.#now()
    const all = [...this.channels.values()].filter(
      ({ address, sequence }) => addresses?.includes(address) !== false && sequence !== undefined
    )
    return {
      ready: all.length,
      free: all.filter(
        ({ leasedUntil, settlement }) => settlement === undefined && (leasedUntil === undefined || leasedUntil < now)
      ).length
    }
  }

  // Leases and budgets

  hold(name: string, holder: string, millis: number): boolean {
    const now = this.#now()
    const lease = this.#leases.get(name)
    if (lease !== undefined && lease.holder !== holder && lease.until >= now) return false
    // Its holder renews only after half of it has elapsed.
    if (lease?.holder === holder && now < (lease.renewedAt + lease.until) / 2) return true
    this.#leases.set(name, { holder, renewedAt: now, until: now + millis })
    return true
  }

  fits(principal: { readonly id: string; readonly keyed: boolean }, stroops: bigint): boolean {
    return this.#fits(this.#today(), principal, stroops)
  }

  #fits(day: string, principal: { readonly id: string; readonly keyed: boolean }, stroops: bigint): boolean {
    const { perPrincipalStroops, inAllStroops } = this.limits
    let all = 0n
    let anonymous = 0n
    for (const [key, { committed, keyed, reserved }] of this.budgets) {
      if (!key.startsWith(day)) continue
      all += reserved + committed
      if (!keyed) anonymous += reserved + committed
    }
    const own = this.budgets.get(`${day} ${principal.id}`)
    return (
      (own?.reserved ?? 0n) + (own?.committed ?? 0n) + stroops <= perPrincipalStroops &&
      all + stroops <= inAllStroops &&
      (principal.keyed || anonymous + stroops <= inAllStroops / 2n)
    )
  }

  #budget(day: string, principal: { readonly id: string; readonly keyed: boolean }) {
    const key = `${day} ${principal.id}`
    const budget = this.budgets.get(key) ?? { reserved: 0n, committed: 0n, keyed: principal.keyed }
    this.budgets.set(key, budget)
    return budget
  }

  #use(channel: Channel): void {
    channel.usedAt = this.#now()
    channel.usedOrder = this.#order++
  }

  #today = (): string => new Date(this.#now()).toISOString().slice(0, 10)
}

const attemptOf = (attempt: NewAttempt, number: number): Attempt => ({
  ...attempt,
  number,
  sentStatus: undefined,
  sentLedger: undefined,
  sentCode: undefined,
  taken: false
})

/** The settlement's known cost to the sponsor. */
export const chargedOf = ({ born, outcome }: Row): bigint =>
  (outcome?.feeChargedStroops ?? 0n) + (outcome?.feeUnknown === true ? born.budgetStroops : 0n)

const transactionOf = ({ born, outcome, state }: Row): Option.Option<string> => {
  const by = Option.fromUndefinedOr(outcome?.transaction)
  if (state === "settled") return Option.orElse(by, () => Option.some(born.innerHash))
  return state === "failed" && Option.isNone(by) ? Option.none() : Option.some(born.innerHash)
}

const recordOf = (row: Row): Omit<SettlementRecord, "delivery"> => ({
  ...storedOf(row),
  attemptCount: row.attempts.length,
  transaction: transactionOf(row),
  feeChargedStroops: row.outcome === undefined ? Option.none() : Option.some(chargedOf(row))
})

const storedOf = ({
  born,
  delivery,
  outcome,
  recordedAt,
  resolvedAt,
  state,
  watchAfter
}: Row): Omit<SettlementRecord, "transaction" | "feeChargedStroops" | "delivery"> => ({
  id: born.id,
  network: born.network,
  scheme: born.scheme,
  authorizationKey: born.authorizationKey,
  authorizationExpiresLedger: born.authorizationExpiresLedger,
  fingerprint: born.fingerprint,
  principal: born.principal.owner,
  identifier: born.identifier,
  payer: born.payer,
  payTo: born.payTo,
  asset: born.asset,
  amount: born.amount,
  innerHash: born.innerHash,
  channel: born.channel.address,
  state,
  recordedAt: new Date(recordedAt),
  deadlineAt: new Date(born.deadlineAt),
  resolvedAt: Option.map(Option.fromUndefinedOr(resolvedAt), (at) => new Date(at)),
  ledger: Option.fromUndefinedOr(outcome?.ledger),
  amountTransferred: Option.fromUndefinedOr(outcome?.amountTransferred),
  reason: Option.fromUndefinedOr(outcome?.reason),
  reasonMessage: Option.fromUndefinedOr(outcome?.message),
  closedAt: outcome?.closedAtSeconds === undefined ? undefined : new Date(outcome.closedAtSeconds * 1_000),
  resourceUrl: Option.getOrUndefined(born.resourceUrl),
  action: actionOf(born) ?? undefined,
  deliveredKey: delivery?.key,
  confirmations: outcome?.confirmations,
  isWatched: watchAfter !== undefined
})

const openOf = (row: Row, delivery: SettlementRecord["delivery"], channelHeld: boolean): OpenRecord => ({
  ...recordOf(row),
  delivery,
  channelHeld,
  attemptCount: row.attempts.length,
  channelSequence: row.born.channel.sequence,
  recordedLedger: row.born.recordedLedger,
  sponsor: row.born.sponsor,
  resourceFeeStroops: row.born.resourceFeeStroops,
  attempts: row.attempts.slice(row.attemptsVoid)
})
