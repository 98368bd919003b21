// Payments with unusual outcomes, through a whole facilitator and the embedded ledger: refused, dropped, outbid,
// cancelled, overtaken, expired, spent elsewhere, lost and found again. Each leaves channels, budgets and rows in the
// right state.
import { expect, it } from "@effect/vitest"
import { Keypair } from "@stellar/stellar-sdk"
import { Effect } from "effect"
import { describe } from "vitest"
import { ScanAbove } from "../../../kernel/settlement/follower/scanLedgers.ts"
import { TxCode } from "../../../plugins/ledger-local/transaction/Wire.ts"
import { type Facilitator, type FacilitatorOptions, startFacilitator } from "../../support/facilitator.ts"
import { eventually } from "../../support/eventually.ts"

const price = 10_000n

const parties = Effect.fnUntraced(function* (facilitator: Facilitator) {
  const payer = yield* facilitator.account()
  const payTo = (yield* facilitator.account(0n)).publicKey()
  const pay = (identifier?: string, maxTimeoutSeconds = 300) =>
    facilitator.payment({
      payer,
      payTo,
      amount: price,
      maxTimeoutSeconds,
      ...(identifier === undefined
        ? {}
        : { extensions: { "payment-identifier": { info: { required: true, id: identifier } } } })
    })
  return { pay, payTo }
})

interface State {
  readonly state: string
  readonly reason: string | null
  readonly reason_message: string | null
  readonly ledger: bigint | null
  readonly attempts: number
  readonly fee: bigint | null
}

const settlementsOf = ({ sql }: Facilitator) =>
  sql<State>`select state, reason, reason_message, ledger, fee_charged_stroops as fee,
    (select count(*)::int from kernel_attempts where settlement = id) as attempts
      from kernel_settlements order by recorded_at`

/** The rows of a facilitator at rest: nothing held or reserved, and fees as charged. */
const expectAtRest = Effect.fnUntraced(function* ({ sql }: Facilitator) {
  const [books] = yield* sql<{ reserved: bigint; committed: bigint; charged: bigint }>`select
    (select coalesce(sum(reserved_stroops), 0)::int8 from kernel_sponsor_budget) as reserved,
    (select coalesce(sum(committed_stroops), 0)::int8 from kernel_sponsor_budget_total) as committed,
    (select coalesce(sum(fee_charged_stroops), 0)::int8 from kernel_settlements) as charged`
  expect(books!.reserved).toBe(0n)
  expect(books!.committed).toBe(books!.charged)
  expect(
    yield* sql`select 1 from kernel_channels where settlement is not null or leased_until > clock_timestamp()`
  ).toEqual([])
})

const ended = (facilitator: Facilitator) =>
  eventually(
    settlementsOf(facilitator),
    (rows) => rows.length > 0 && rows.every(({ state }) => state !== "prepared" && state !== "submitted")
  )

const start = (options: FacilitatorOptions = {}) => startFacilitator({ closeMillis: 200, ...options })

describe("a payment", () => {
  it.live(
    "an unrecorded payment is found on the ledger and delivered once [S87, S93]",
    () =>
      Effect.gen(function* () {
        // Five times as long, for a starved machine: a lost payment that has expired by then is refused for that
        // reason.
        const facilitator = yield* start({ closeMillis: 1_000 })
        const { pay, payTo } = yield* parties(facilitator)
        const named = yield* pay("lost-with-the-database")
        const unnamed = yield* pay()
        const first = yield* Effect.forEach([named, unnamed], ({ body }) => facilitator.settle(body))
        expect(first.map(({ json }) => json.success)).toEqual([true, true])
        const fees = yield* facilitator.sql`select sum(fee_charged_stroops)::int8 as charged from kernel_settlements`
        yield* facilitator.sql`truncate kernel_settlements, kernel_attempts,
        kernel_sponsor_budget, kernel_sponsor_budget_total, kernel_facts cascade`
        yield* facilitator.sql`insert into kernel_channels (address, network, sponsor, number, state, sequence)
        select 'nothing', 'ledger:testnet', 'former', 0, 'retired', 0`
        for (const [index, { body }] of [named, unnamed].entries()) {
          // The channels were lost with their settlements: until they are known again, all callers are asked to retry.
          const again = yield* eventually(facilitator.settle(body), ({ status }) => status !== 503)
          expect(again.json, again.text).toMatchObject({ success: true, transaction: first[index]!.json.transaction })
        }
        expect(
          yield* facilitator.sql`select sum(fee_charged_stroops)::int8 as charged from kernel_settlements`
        ).toEqual(fees)
        for (const { body } of [named, unnamed])
          expect((yield* facilitator.settle(body)).json).toMatchObject({
            success: false,
            errorReason: "settle_ledger_already_settled"
          })
        expect(yield* facilitator.balance(payTo)).toBe(2n * price)
        expect(yield* facilitator.sql`select type from kernel_facts order by id`).toEqual(
          ["recorded", "settled", "recorded", "settled"].map((type) => ({ type: `settlement.${type}` }))
        )
      }).pipe(Effect.scoped),
    240_000
  )

  it.live(
    "a payment settled by another party is spent and not ours [S83]",
    () =>
      Effect.gen(function* () {
        const facilitator = yield* start()
        const other = yield* start({ ledgerUrl: facilitator.ledgerUrl })
        const { pay, payTo } = yield* parties(facilitator)
        const { body } = yield* pay("spent-by-another")
        expect((yield* other.settle(body)).json).toMatchObject({ success: true })
        for (let times = 0; times < 2; times++) {
          expect((yield* facilitator.settle(body)).json).toMatchObject({
            success: false,
            errorReason: "settle_ledger_authorization_spent",
            transaction: ""
          })
        }
        expect(yield* settlementsOf(facilitator)).toEqual([])
        expect(yield* facilitator.balance(payTo)).toBe(price)
        yield* expectAtRest(facilitator)
      }).pipe(Effect.scoped),
    240_000
  )

  it.live(
    "a payment that never lands expires within two ledgers, freeing its channel [S83, S90, S94]",
    () =>
      Effect.gen(function* () {
        const facilitator = yield* start({ channels: 1 })
        const { pay, payTo } = yield* parties(facilitator)
        yield* facilitator.ledger.setFaults([{ drops: () => true }])
        const { body, expirationLedger } = yield* pay("never-lands-at-all", 60)
        const answer = yield* facilitator.settle(body)
        const seenAt = facilitator.ledger.ledger.latest.sequence
        expect(answer.json, answer.text).toMatchObject({
          success: false,
          errorReason: "settle_ledger_transaction_expired"
        })
        expect(seenAt).toBeGreaterThanOrEqual(expirationLedger)
        // The ledgers of a poll: a quarter of an interval to notice, and the answer's way.
        expect(seenAt).toBeLessThanOrEqual(expirationLedger + 4)
        yield* facilitator.ledger.setFaults([])
        expect((yield* facilitator.settle((yield* pay()).body)).json).toMatchObject({ success: true })
        expect((yield* facilitator.settle(body)).json).toMatchObject({
          errorReason: "settle_ledger_transaction_expired",
          transaction: answer.json.transaction
        })
        expect(yield* facilitator.balance(payTo)).toBe(price)
        yield* expectAtRest(facilitator)
      }).pipe(Effect.scoped),
    240_000
  )

  it.live(
    "a queued payment that is not included is outbid under the same hash",
    () =>
      Effect.gen(function* () {
        const facilitator = yield* start()
        const { pay, payTo } = yield* parties(facilitator)
        yield* facilitator.ledger.setFaults([
          { drops: ({ inclusionFeeStroops, isSoroban }) => isSoroban && inclusionFeeStroops < 2_000n }
        ])
        const { body } = yield* pay()
        const answer = yield* facilitator.settle(body)
        expect(answer.json, answer.text).toMatchObject({ success: true })
        expect(yield* settlementsOf(facilitator)).toMatchObject([{ state: "settled", attempts: 2 }])
        expect(yield* facilitator.balance(payTo)).toBe(price)
        yield* expectAtRest(facilitator)
      }).pipe(Effect.scoped),
    240_000
  )

  it.live(
    "a payment refused repeatedly is cancelled at a no-op's fee, freeing its channel",
    () =>
      Effect.gen(function* () {
        const facilitator = yield* start({ channels: 1 })
        const { pay, payTo } = yield* parties(facilitator)
        yield* facilitator.ledger.setFaults([{ onSend: ({ isSoroban }) => (isSoroban ? TxCode.malformed : undefined) }])
        const { body } = yield* pay()
        const answer = yield* facilitator.settle(body)
        yield* facilitator.ledger.setFaults([])
        expect(answer.json, answer.text).toMatchObject({ success: false })
        const [row] = yield* ended(facilitator)
        expect(row).toMatchObject({ state: "failed", reason: "settle_ledger_transaction_failed", attempts: 2 })
        expect(row!.fee).toBeGreaterThan(0n)
        expect((yield* facilitator.settle((yield* pay()).body)).json).toMatchObject({ success: true })
        expect(yield* facilitator.balance(payTo)).toBe(price)
        yield* expectAtRest(facilitator)
      }).pipe(Effect.scoped),
    240_000
  )

  it.live(
    "a payment whose channel sequence was used is rebuilt on the new one",
    () =>
      Effect.gen(function* () {
        // Two independent facilitators with one set of channels: a forbidden setup.
        const environment = { SPONSOR_SECRET: Keypair.random().secret() }
        const facilitator = yield* start({ channels: 1, environment })
        const other = yield* start({ channels: 1, environment, ledgerUrl: facilitator.ledgerUrl })
        const { pay, payTo } = yield* parties(facilitator)
        expect((yield* other.settle((yield* pay()).body)).json).toMatchObject({ success: true })
        const { body, expirationLedger } = yield* pay()
        const answer = yield* facilitator.settle(body)
        expect(answer.json, answer.text).toMatchObject({ success: true })
        expect(facilitator.ledger.ledger.latest.sequence).toBeLessThan(expirationLedger - 10)
        const next = yield* pay()
        const done = yield* eventually(facilitator.settle(next.body), ({ status }) => status !== 503)
        expect(done.json, done.text).toMatchObject({ success: true })
        expect(yield* facilitator.balance(payTo)).toBe(3n * price)
        yield* expectAtRest(facilitator)
      }).pipe(Effect.scoped),
    240_000
  )

  it.live(
    "a payment beyond the sponsor's budget is refused without a trace [S270, S102]",
    () =>
      Effect.gen(function* () {
        const facilitator = yield* start({ set: ["limits.max_sponsored_stroops_per_key_per_day=120000"] })
        const { pay, payTo } = yield* parties(facilitator)
        const answers = yield* Effect.forEach([1, 2, 3, 4, 5, 6], () =>
          Effect.flatMap(pay(), ({ body }) => facilitator.settle(body))
        )
        const refused = answers.filter(({ json }) => json.success !== true)
        expect(refused.length).toBeGreaterThan(0)
        for (const { json, status } of refused)
          expect({ status, reason: json.errorReason, transaction: json.transaction }).toEqual({
            status: 200,
            reason: "settle_ledger_sponsor_budget_exceeded",
            transaction: ""
          })
        expect(yield* settlementsOf(facilitator)).toHaveLength(6 - refused.length)
        expect(yield* facilitator.balance(payTo)).toBe(price * BigInt(6 - refused.length))
        yield* expectAtRest(facilitator)
      }).pipe(Effect.scoped),
    240_000
  )

  it.live(
    "without a free channel a payment is busy, and settles on retry [S84, S85, S86, S269]",
    () =>
      Effect.gen(function* () {
        const facilitator = yield* start({ channels: 1, set: ["limits.channel_wait_ms=100"] })
        const { pay, payTo } = yield* parties(facilitator)
        const bodies = yield* Effect.forEach(Array.from({ length: 6 }), (_, index) =>
          Effect.map(pay(`one-channel-for-all-${index}`), ({ body }) => body)
        )
        const headers = { "idempotency-key": "one-channel-for-all" }
        const first = yield* Effect.forEach(bodies, (body) => facilitator.settle(body, headers), {
          concurrency: "unbounded"
        })
        const busy = first.filter(({ status }) => status === 503)
        expect(busy.length).toBeGreaterThan(0)
        for (const { headers, json } of busy) {
          expect(headers.get("retry-after")).toBe("1")
          expect(json).toMatchObject({
            success: false,
            errorReason: "settle_ledger_temporarily_unavailable",
            transaction: ""
          })
        }
        const finished = yield* Effect.forEach(
          bodies,
          (body) => eventually(facilitator.settle(body, headers), ({ status }) => status !== 503),
          { concurrency: "unbounded" }
        )
        expect(finished.map(({ json }) => json.success)).toEqual(bodies.map(() => true))
        expect(yield* facilitator.balance(payTo)).toBe(price * BigInt(bodies.length))
        expect(yield* settlementsOf(facilitator)).toHaveLength(bodies.length)
        yield* expectAtRest(facilitator)
      }).pipe(Effect.scoped),
    240_000
  )

  it.live(
    "many payments, failed ones included, are found in one ledger scan",
    () =>
      Effect.gen(function* () {
        const facilitator = yield* Effect.provideService(start({ channels: 6 }), ScanAbove, 0)
        let asked = { getTransaction: 0, getTransactions: 0 } as Record<string, number>
        yield* facilitator.ledger.setFaults([
          { onRpc: (method) => void (asked[method] = (asked[method] ?? 0) + 1) as undefined }
        ])
        const { pay, payTo } = yield* parties(facilitator)
        const bodies = yield* Effect.forEach(Array.from({ length: 12 }), () => Effect.map(pay(), ({ body }) => body))
        const answers = yield* Effect.forEach(bodies, (body) => facilitator.settle(body), { concurrency: "unbounded" })
        expect(answers.map(({ json }) => json.success)).toEqual(bodies.map(() => true))
        expect(yield* facilitator.balance(payTo)).toBe(price * BigInt(bodies.length))
        expect(asked["getTransactions"]).toBeGreaterThan(0)
        // On a busy machine, one that stays unseen for several ledgers is additionally requested by its hash.
        expect(asked["getTransaction"]).toBeLessThan(bodies.length)
        asked = {}
        // A provider without the method: each is asked for by its hash.
        yield* facilitator.ledger.setFaults([
          {
            onRpc: (method) =>
              method === "getTransactions" ? { kind: "error", code: -32_601, message: "no such method" } : undefined
          }
        ])
        expect((yield* facilitator.settle((yield* pay()).body)).json).toMatchObject({ success: true })
        yield* expectAtRest(facilitator)
      }).pipe(Effect.scoped),
    240_000
  )
})
