// Payments with a failed transaction, or with a hidden hash, through a whole facilitator and the embedded ledger: the
// answer follows the actual transfer, in whichever transaction it happened.
import { expect, it } from "@effect/vitest"
import { Keypair, StrKey } from "@stellar/stellar-sdk"
import { Context, Effect, Fiber, Layer } from "effect"
import { describe } from "vitest"
import { DatabaseSource } from "../../../kernel/database/DatabaseSource.ts"
import type { Frame } from "../../../plugins/ledger-local/transaction/Frame.ts"
import { TxCode } from "../../../plugins/ledger-local/transaction/Wire.ts"
import { type DatabaseKind, databaseKinds, sourceLayer } from "../../support/databases.ts"
import { type Facilitator, type FacilitatorOptions, startFacilitator } from "../../support/facilitator.ts"
import { eventually } from "../../support/eventually.ts"

const price = 10_000n

const parties = Effect.fnUntraced(function* (facilitator: Facilitator) {
  const payer = yield* facilitator.account()
  const payTo = (yield* facilitator.account(0n)).publicKey()
  const pay = (tamper: { readonly nonce?: bigint; readonly expiryOffset?: number } = {}, maxTimeoutSeconds = 300) =>
    facilitator.payment({ payer, payTo, amount: price, maxTimeoutSeconds, tamper })
  return { pay, payTo }
})

const settlementsOf = ({ sql }: Facilitator) =>
  sql<{ state: string; reason: string | null; message: string | null; ended_by: string | null; inner_hash: string }>`
    select state, reason, reason_message as message, ended_by, inner_hash from kernel_settlements order by recorded_at`

const recorded = (facilitator: Facilitator, count: number) =>
  eventually(settlementsOf(facilitator), (rows) => rows.length >= count)

const channelsOf = ({ sql }: Facilitator) =>
  Effect.map(sql<{ address: string }>`select address from kernel_channels`, (rows) => rows.map((row) => row.address))

/** Holds the submissions of a facilitator's channels until it is released. */
const hold = Effect.fnUntraced(function* (facilitator: Facilitator) {
  const channels = new Set(yield* channelsOf(facilitator))
  let isHeld = true
  yield* facilitator.ledger.setFaults([
    {
      drops: ({ source }: Frame) => isHeld && channels.has(StrKey.encodeEd25519PublicKey(source.ed25519 as Uint8Array))
    }
  ])
  return Effect.sync(() => {
    isHeld = false
  })
})

const nextLedgers = (facilitator: Facilitator, count: number) => {
  const from = facilitator.ledger.ledger.latest.sequence
  return eventually(
    Effect.sync(() => facilitator.ledger.ledger.latest.sequence),
    (now) => now >= from + count
  )
}

/** A node that finds no transaction by its hash. */
const hideHashes = {
  onRpc: (method: string) =>
    method === "getTransaction"
      ? ({
          kind: "wrong",
          change: (result: any) => ({
            status: "NOT_FOUND",
            latestLedger: result.latestLedger,
            oldestLedger: result.oldestLedger
          })
        } as const)
      : undefined
}
/** A database that one facilitator uses after another. */
const sharedDatabase = Effect.fnUntraced(function* (kind: DatabaseKind) {
  const opened = yield* Context.get(yield* Layer.build(sourceLayer(kind)), DatabaseSource).open
  return Layer.succeed(DatabaseSource, { open: Effect.succeed(opened) })
})

const start = (options: FacilitatorOptions = {}) => startFacilitator({ closeMillis: 200, ...options })

describe("a payment whose transaction failed on the ledger", () => {
  it.live(
    "a payment whose authorization was used by another transaction is spent [S83, S271]",
    () =>
      Effect.gen(function* () {
        const facilitator = yield* start()
        const other = yield* start({ ledgerUrl: facilitator.ledgerUrl })
        const { pay, payTo } = yield* parties(facilitator)
        const { body } = yield* pay()
        const release = yield* hold(facilitator)
        const asked = yield* Effect.forkChild(facilitator.settle(body))
        yield* recorded(facilitator, 1)
        const theirs = (yield* other.settle(body)).json
        expect(theirs).toMatchObject({ success: true })
        yield* release
        const answer = yield* Fiber.join(asked)
        expect(answer.json, answer.text).toMatchObject({
          success: false,
          errorReason: "settle_ledger_authorization_spent"
        })
        const [row] = yield* settlementsOf(facilitator)
        expect(row).toMatchObject({ state: "failed", reason: "settle_ledger_authorization_spent" })
        expect(row!.message).not.toContain("lives until")
        const shown = yield* facilitator.ask(`/settlements?hash=${row!.inner_hash}`)
        expect(shown.json.items, shown.text).toMatchObject([
          { status: "failed", errorMessage: row!.message, spentBy: theirs.transaction }
        ])
        expect(yield* facilitator.balance(payTo)).toBe(price)
      }).pipe(Effect.scoped),
    240_000
  )

  it.live(
    "a failed payment is settled by our earlier unrecorded transaction [S87, S93]",
    () =>
      Effect.gen(function* () {
        const facilitator = yield* start()
        const { pay, payTo } = yield* parties(facilitator)
        const { body } = yield* pay()
        const release = yield* hold(facilitator)
        const first = yield* Effect.forkChild(facilitator.settle(body))
        const [lost] = yield* recorded(facilitator, 1)
        yield* facilitator.sql`update kernel_channels set settlement = null, state = 'retired'
        where settlement is not null`
        yield* facilitator.sql`delete from kernel_attempts`
        yield* facilitator.sql`delete from kernel_settlements`
        yield* Fiber.interrupt(first)
        const second = yield* Effect.forkChild(facilitator.settle(body))
        yield* recorded(facilitator, 1)
        yield* release
        const answer = yield* Fiber.join(second)
        expect(answer.json, answer.text).toMatchObject({ success: true })
        const [row] = yield* settlementsOf(facilitator)
        expect(row).toMatchObject({ state: "settled", ended_by: answer.json.transaction })
        expect([lost!.inner_hash, row!.inner_hash]).toContain(answer.json.transaction)
        expect(yield* facilitator.balance(payTo)).toBe(price)
      }).pipe(Effect.scoped),
    240_000
  )

  it.live(
    "a payment is not settled by another expiry of its nonce",
    () =>
      Effect.gen(function* () {
        const facilitator = yield* start()
        const { pay, payTo } = yield* parties(facilitator)
        const nonce = 4_711n
        const bodies = [yield* pay({ nonce }), yield* pay({ nonce, expiryOffset: -3 })].map(({ body }) => body)
        const release = yield* hold(facilitator)
        const asked = yield* Effect.forkChild(
          Effect.forEach(bodies, (body) => facilitator.settle(body), { concurrency: 2 })
        )
        yield* recorded(facilitator, 2)
        yield* release
        const answers = yield* Fiber.join(asked)
        const paid = answers.filter(({ json }) => json.success)
        const others = answers.filter(({ json }) => !json.success)
        expect([paid.length, others.length]).toEqual([1, 1])
        expect(others[0]!.json).toMatchObject({ errorReason: "settle_ledger_authorization_spent" })
        expect((yield* settlementsOf(facilitator)).map(({ state }) => state).sort()).toEqual(["failed", "settled"])
        expect(yield* facilitator.balance(payTo)).toBe(price)
      }).pipe(Effect.scoped),
    240_000
  )
})

describe("a payment whose hash no node knows", () => {
  it.live(
    "a payment with an unknown hash settles by its nonce's transaction [S83, S90]",
    () =>
      Effect.gen(function* () {
        const facilitator = yield* start()
        const { pay, payTo } = yield* parties(facilitator)
        yield* facilitator.ledger.setFaults([hideHashes])
        const answer = yield* facilitator.settle((yield* pay()).body)
        expect(answer.json, answer.text).toMatchObject({ success: true })
        expect(yield* settlementsOf(facilitator)).toMatchObject([
          { state: "settled", ended_by: answer.json.transaction, inner_hash: answer.json.transaction }
        ])
        expect(yield* facilitator.balance(payTo)).toBe(price)
      }).pipe(Effect.scoped),
    240_000
  )

  it.live(
    "a hidden payment frees its channel and settles once its ledger is readable",
    () =>
      Effect.gen(function* () {
        const facilitator = yield* start({ channels: 1, set: ["limits.settle_timeout_ms=3000"] })
        const { pay, payTo } = yield* parties(facilitator)
        const first = yield* pay()
        const noHistory = {
          onRpc: (method: string) =>
            method === "getTransactions"
              ? ({ kind: "error", code: -32_601, message: "no history" } as const)
              : undefined
        }
        yield* facilitator.ledger.setFaults([hideHashes, noHistory])
        const pending = yield* facilitator.settle(first.body)
        expect(pending.json, pending.text).toMatchObject({ success: false })
        expect((yield* settlementsOf(facilitator))[0]).toMatchObject({ state: "submitted" })
        yield* eventually(
          facilitator.sql<{ held: boolean }>`select settlement is not null as held from kernel_channels`,
          ([row]) => row?.held === false
        )
        yield* facilitator.ledger.setFaults([])
        const second = yield* eventually(facilitator.settle((yield* pay()).body), ({ status }) => status !== 503)
        expect(second.json, second.text).toMatchObject({ success: true })
        const rows = yield* eventually(settlementsOf(facilitator), (all) =>
          all.every(({ state }) => state === "settled")
        )
        expect(rows).toHaveLength(2)
        expect(new Set(rows.map(({ ended_by }) => ended_by)).size).toBe(2)
        expect(yield* facilitator.balance(payTo)).toBe(2n * price)
        yield* nextLedgers(facilitator, 1)
        expect(yield* facilitator.sql`select 1 from kernel_channels where settlement is not null`).toEqual([])
      }).pipe(Effect.scoped),
    240_000
  )
})

describe("a payment in a surge", () => {
  it.live(
    "a payment in a surge is outbid until it suffices, never cancelled",
    () =>
      Effect.gen(function* () {
        const facilitator = yield* start({ channels: 1 })
        const { pay, payTo } = yield* parties(facilitator)
        yield* facilitator.ledger.setFaults([
          {
            onSend: ({ inclusionFeeStroops, isSoroban }: Frame) =>
              isSoroban && inclusionFeeStroops < 2_000n ? TxCode.insufficientFee : undefined
          }
        ])
        const answer = yield* facilitator.settle((yield* pay()).body)
        expect(answer.json, answer.text).toMatchObject({ success: true })
        expect(
          yield* facilitator.sql`select kind, inclusion_stroops as bid from kernel_attempts order by number`
        ).toEqual([
          { kind: "payment", bid: 200n },
          { kind: "payment", bid: 2_000n }
        ])
        expect(yield* facilitator.balance(payTo)).toBe(price)
      }).pipe(Effect.scoped),
    240_000
  )

  it.live(
    "a surge beyond the ceiling expires the payment without a charge",
    () =>
      Effect.gen(function* () {
        const facilitator = yield* start({ channels: 1 })
        const { pay, payTo } = yield* parties(facilitator)
        yield* facilitator.ledger.setFaults([
          { onSend: ({ isSoroban }: Frame) => (isSoroban ? TxCode.insufficientFee : undefined) }
        ])
        const answer = yield* facilitator.settle((yield* pay({}, 60)).body)
        expect(answer.json, answer.text).toMatchObject({
          success: false,
          errorReason: "settle_ledger_transaction_expired"
        })
        const attempts = yield* facilitator.sql<{ kind: string; bid: bigint }>`select kind, inclusion_stroops as bid
          from kernel_attempts order by number`
        expect(attempts.map(({ kind }) => kind)).toEqual(["payment", "payment", "payment"])
        expect(attempts.at(-1)!.bid).toBe(10_000n)
        expect(yield* facilitator.sql`select fee_charged_stroops as fee from kernel_settlements`).toEqual([{ fee: 0n }])
        expect(yield* facilitator.balance(payTo)).toBe(0n)
      }).pipe(Effect.scoped),
    240_000
  )
})

describe.each(databaseKinds)("a payment signed for a former sponsor, on %s", (kind) => {
  it.live(
    "a former sponsor's payment is sent as recorded, and settles",
    () =>
      Effect.gen(function* () {
        // Its life must outlast the way from one facilitator to the next.
        const outer = yield* start({ closeMillis: 1_000 })
        const database = yield* sharedDatabase(kind)
        const options = {
          database,
          ledgerUrl: outer.ledgerUrl,
          channels: 1,
          set: ["limits.settle_timeout_ms=2000"]
        }
        const former = yield* start({ ...options, environment: { SPONSOR_SECRET: Keypair.random().secret() } })
        const { pay, payTo } = yield* parties(former)
        yield* outer.ledger.setFaults([{ drops: ({ isSoroban }: Frame) => isSoroban }])
        yield* Effect.forkChild(former.settle((yield* pay()).body))
        const [open] = yield* recorded(former, 1)
        yield* former.stop
        const next = yield* start({ ...options, environment: { SPONSOR_SECRET: Keypair.random().secret() } })
        yield* outer.ledger.setFaults([])
        const rows = yield* eventually(settlementsOf(next), (all) => all.every(({ state }) => state === "settled"))
        expect(rows).toMatchObject([{ state: "settled", ended_by: open!.inner_hash }])
        expect(yield* next.balance(payTo)).toBe(price)
        expect((yield* next.settle((yield* pay()).body)).json).toMatchObject({ success: true })
      }).pipe(Effect.scoped),
    240_000
  )
})
