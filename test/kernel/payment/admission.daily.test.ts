// Verify makes the same checks as settle's admission: each refusal that settle gives before it leases a channel, in one
// table. A refusal because of the budget reports when it ends.
import { expect, it } from "@effect/vitest"
import { Context, Duration, Effect } from "effect"
import { describe } from "vitest"
import { ChannelPool } from "../../../kernel/settlement/channels/ChannelPool.ts"
import { parseFault } from "../../../plugins/ledger-local/node/parseFault.ts"
import { databaseKinds } from "../../support/databases.ts"
import { eventually } from "../../support/eventually.ts"
import { type Answer, type Facilitator, startFacilitator } from "../../support/facilitator.ts"

const price = 10_000n
const exceeded = "settle_ledger_sponsor_budget_exceeded"
const bounds = [
  "limits.max_sponsored_stroops_per_key_per_day=5000000",
  "limits.max_global_sponsored_stroops_per_day=200000000"
]
const busy = ["ledger_unavailable", "settle_ledger_temporarily_unavailable"] as const

type Pay = Effect.Effect<{ readonly body: unknown }>

interface Row {
  readonly refusal: string
  readonly set: ReadonlyArray<string>
  readonly arrange: (facilitator: Facilitator, pay: Pay) => Effect.Effect<unknown, unknown>
  readonly status: 200 | 503
  readonly reasons: readonly [string, string]
}

const spend = (id: string, keyed: boolean, stroops: bigint) => (facilitator: Facilitator) =>
  Effect.andThen(
    facilitator.sql`insert into kernel_sponsor_budget (day, principal, committed_stroops)
      values (current_date, ${id}, ${stroops}::int8)`,
    facilitator.sql`insert into kernel_sponsor_budget_total (day, keyed, shard, committed_stroops)
      values (current_date, ${keyed}, 0, ${stroops}::int8)`
  )

const settleUntilRefused = (facilitator: Facilitator, pay: Pay) =>
  eventually(
    Effect.flatMap(pay, ({ body }) => facilitator.settle(body)),
    ({ json }) => json.errorReason === exceeded
  )

const budgetRow = (refusal: string, set: ReadonlyArray<string>, arrange: Row["arrange"]): Row => ({
  refusal,
  set,
  arrange,
  status: 200,
  reasons: [exceeded, exceeded]
})

const rows: ReadonlyArray<Row> = [
  budgetRow(
    "a principal's used-up budget",
    ["limits.max_sponsored_stroops_per_key_per_day=120000"],
    settleUntilRefused
  ),
  budgetRow("a budget that other replicas used up", bounds, spend("ip:127.0.0.1", false, 5_000_000n)),
  budgetRow("a used-up budget of all", bounds, spend("key:other", true, 200_000_000n)),
  budgetRow("a used-up budget of the keyless", bounds, spend("ip:10.0.0.1", false, 100_000_000n)),
  budgetRow(
    "a budget that covers the inclusion fee alone",
    ["limits.max_sponsored_stroops_per_key_per_day=15000"],
    () => Effect.void
  ),
  {
    refusal: "a full queue",
    // Without a wait the queue is full once a payment waits for each channel. A longer wait allows more places when the
    // measured close interval shrinks.
    set: ["limits.channel_wait_ms=1"],
    arrange: ({ services }) => {
      const pool = Context.getUnsafe(services, ChannelPool as never) as ChannelPool["Service"]
      return Effect.repeat(pool.enter("ip:127.0.0.1", Duration.minutes(10)), {
        until: ({ _tag }) => _tag === "Full"
      })
    },
    status: 503,
    reasons: busy
  },
  {
    refusal: "too many open settlements",
    set: ["limits.max_pending_settlements=1", "limits.settle_timeout_ms=1000"],
    arrange: (facilitator, pay) =>
      Effect.gen(function* () {
        const fault = parseFault("drop=1")
        if (typeof fault === "string") throw new Error(fault)
        yield* facilitator.ledger.setFaults([fault])
        // Recorded, and not only busy for the whole timeout.
        const { body } = yield* pay
        yield* eventually(facilitator.settle(body), ({ status }) => status !== 503)
      }),
    status: 503,
    reasons: busy
  }
]

const secondsToMidnight = () =>
  Math.ceil((Date.parse(new Date().toISOString().slice(0, 10)) + 86_400_000 - Date.now()) / 1_000)

const expectReset = ({ headers, json }: Answer) => {
  expect(json.resetAt).toMatch(/T00:00:00\.000Z$/)
  const wait = Number(headers.get("retry-after"))
  expect(wait).toBe(Math.ceil(json.retryAfterMs / 1_000))
  // The day is the ledger's, a few seconds behind.
  expect(Math.abs(wait - secondsToMidnight())).toBeLessThan(120)
}

describe.each(databaseKinds)("admission on %s", (database) => {
  it.live.each(rows)(
    "verify and settle refuse $refusal alike",
    ({ arrange, reasons, set, status }) =>
      Effect.gen(function* () {
        // An open settlement stays open longer than a busy machine needs for two requests.
        const facilitator = yield* startFacilitator({ database, set, closeMillis: 1_000 })
        const payer = yield* facilitator.account()
        const payTo = (yield* facilitator.account(0n)).publicKey()
        const pay: Pay = facilitator.payment({ payer, payTo, amount: price })
        yield* arrange(facilitator, pay)
        const { body } = yield* pay
        const verified = yield* eventually(facilitator.verify(body), ({ json }) => json.isValid === false)
        expect([verified.status, verified.json.invalidReason]).toEqual([status, reasons[0]])
        const settled = yield* facilitator.settle(body)
        expect([settled.status, settled.json.errorReason]).toEqual([status, reasons[1]])
        for (const answer of [verified, settled]) {
          expect(answer.headers.get("retry-after")).not.toBeNull()
          expect([undefined, payer.publicKey()]).toContain(answer.json.payer)
          if (status === 200) expectReset(answer)
        }
        // It holds no channel.
        expect(yield* facilitator.sql`select 1 from kernel_channels where leased_until > clock_timestamp()`).toEqual([])
      }).pipe(Effect.scoped),
    240_000
  )

  it.live(
    "a used-up budget does not hide a success that was not delivered",
    () =>
      Effect.gen(function* () {
        const facilitator = yield* startFacilitator({ database, set: bounds })
        const payer = yield* facilitator.account()
        const payTo = (yield* facilitator.account(0n)).publicKey()
        const { body } = yield* facilitator.payment({ payer, payTo, amount: price })
        yield* eventually(facilitator.settle(body), ({ json }) => json.success === true)
        const { body: other } = yield* facilitator.payment({ payer, payTo, amount: price })
        yield* facilitator.sql`update kernel_sponsor_budget set committed_stroops = 5000000`
        yield* facilitator.sql`update kernel_settlements set delivered_at = null`
        yield* eventually(facilitator.verify(other), ({ json }) => json.invalidReason === exceeded)
        expect((yield* facilitator.verify(body)).json).toEqual({ isValid: true, payer: payer.publicKey() })
        expect((yield* facilitator.settle(body)).json.success).toBe(true)
      }).pipe(Effect.scoped),
    240_000
  )
})
