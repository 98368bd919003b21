// A facilitator with two RPC endpoints; one of them may lie or stay silent. A settlement ends only if both show it, or
// if its record states that only one endpoint showed it.
import { expect, it } from "@effect/vitest"
import { Networks, TransactionBuilder } from "@stellar/stellar-sdk"
import { Effect } from "effect"
import { describe } from "vitest"
import { eventually } from "../../support/eventually.ts"
import { type Facilitator, type FacilitatorOptions, startFacilitator } from "../../support/facilitator.ts"
import { type Lie, type RpcProxy, startRpcProxy } from "../../support/rpcProxy.ts"

const price = 10_000n

interface Stage {
  readonly facilitator: Facilitator
  /** The two endpoints, in the order of the settings. */
  readonly first: RpcProxy
  readonly second: RpcProxy
  readonly payTo: string
  readonly pay: () => Effect.Effect<{ readonly body: unknown }>
}

const withEndpoints = (options: FacilitatorOptions, run: (stage: Stage) => Effect.Effect<void>) => () =>
  Effect.gen(function* () {
    const world = yield* startFacilitator()
    const first = yield* startRpcProxy(world.ledgerUrl)
    const second = yield* startRpcProxy(world.ledgerUrl)
    const facilitator = yield* startFacilitator({
      ...options,
      ledgerUrl: world.ledgerUrl,
      set: [`networks.ledger:testnet.rpc_urls=["${first.url}", "${second.url}"]`, ...(options.set ?? [])]
    })
    const payer = yield* facilitator.account()
    const payTo = (yield* facilitator.account(0n)).publicKey()
    const pay = () => facilitator.payment({ payer, payTo, amount: price })
    yield* run({ facilitator, first, second, payTo, pay })
  }).pipe(Effect.scoped, Effect.orDie)

const shown = ({ facilitator }: Stage, hash: string) =>
  Effect.map(facilitator.ask(`/settlements?hash=${hash}`), ({ json }) => json.items[0])

const rows = ({ facilitator: { sql } }: Stage) =>
  Effect.orDie(
    sql<{ state: string; reason: string | null; confirmations: number | null; inner_hash: string }>`
    select state, reason, confirmations, inner_hash from kernel_settlements order by recorded_at`
  )

/** The endpoint's own ledgers, without the transaction. */
const notFound = (truth: () => Promise<any>) =>
  truth().then(({ latestLedger, oldestLedger }) => ({ status: "NOT_FOUND", latestLedger, oldestLedger }))

/** Accepts submissions, forwards none, and reports each as a success, with the result of an earlier payment. */
const forging = (like: { readonly resultXdr: string; readonly resultMetaXdr: string }): Lie => {
  const envelopes: Array<string> = []
  return (method, params, truth) => {
    if (method === "sendTransaction") {
      envelopes.push(params.transaction)
      return Promise.resolve({
        status: "PENDING",
        latestLedger: 0,
        latestLedgerCloseTime: "0",
        hash: Buffer.from(TransactionBuilder.fromXdr(params.transaction, Networks.TESTNET).hash()).toString("hex")
      })
    }
    return method === "getTransaction" && envelopes.length > 0
      ? truth().then((answer) =>
          answer.status === "NOT_FOUND"
            ? {
                ...answer,
                status: "SUCCESS",
                ledger: answer.latestLedger,
                createdAt: "1800000000",
                envelopeXdr: envelopes.at(-1),
                ...like
              }
            : answer
        )
      : undefined
  }
}

describe("a settlement with two endpoints", () => {
  it.live(
    "is confirmed by the second with one more call",
    withEndpoints({}, (stage) =>
      Effect.gen(function* () {
        const { facilitator, pay, payTo, second } = stage
        yield* facilitator.settle((yield* pay()).body)
        const { body } = yield* pay()
        const before = second.asked.length
        const answer = yield* facilitator.settle(body)
        expect(answer.json, answer.text).toMatchObject({ success: true })
        const asked = second.asked.slice(before).filter((method) => method !== "getLatestLedger")
        expect(asked).toEqual(["getTransaction"])
        expect(yield* shown(stage, answer.json.transaction)).toMatchObject({ status: "success", confirmations: 2 })
        expect(yield* facilitator.balance(payTo)).toBe(2n * price)
      })
    ),
    240_000
  )

  it.live(
    "rests on one endpoint when the second is silent",
    withEndpoints({}, (stage) =>
      Effect.gen(function* () {
        const { facilitator, pay, second } = stage
        const { body } = yield* pay()
        second.lie = () => "silence"
        const answer = yield* facilitator.settle(body)
        expect(answer.json, answer.text).toMatchObject({ success: true })
        expect(yield* shown(stage, answer.json.transaction)).toMatchObject({ status: "success", confirmations: 1 })
      })
    ),
    240_000
  )

  it.live(
    "does not end by a forged success",
    withEndpoints({}, (stage) =>
      Effect.gen(function* () {
        const { facilitator, first, pay, payTo } = stage
        const paid = yield* facilitator.settle((yield* pay()).body)
        const like = yield* Effect.promise(() =>
          facilitator.rpc("getTransaction", { hash: paid.json.transaction as string })
        )
        first.lie = forging({ resultXdr: like.resultXdr, resultMetaXdr: like.resultMetaXdr })
        const answer = yield* facilitator.settle((yield* pay()).body)
        const ready = yield* facilitator.ask("/health/ready")
        expect(ready.json.ledger.detail, ready.text).toContain("endpoint 1")
        // The honest endpoint is asked first from then on, and takes the transaction.
        expect(answer.json, answer.text).toMatchObject({ success: true })
        expect(yield* facilitator.balance(payTo)).toBe(2n * price)
        expect(yield* rows(stage)).toMatchObject([
          { state: "settled", confirmations: 2 },
          { state: "settled", confirmations: 2 }
        ])
      })
    ),
    240_000
  )

  it.live(
    "does not fail by an endpoint that hides it",
    withEndpoints({ set: ["limits.settle_timeout_ms=5000"] }, (stage) =>
      Effect.gen(function* () {
        const { facilitator, first, pay, payTo } = stage
        const { body } = yield* pay()
        // The hash is unknown and every nonce unspent, from this endpoint's point of view.
        first.lie = (method, _params, truth) =>
          method === "getTransaction"
            ? notFound(truth)
            : method === "getTransactions"
              ? truth().then((answer) => ({ ...answer, transactions: [] }))
              : method === "getLedgerEntries"
                ? truth().then((answer) => ({
                    ...answer,
                    entries: (answer.entries ?? []).filter(({ key }: { key: string }) => !key.startsWith("AAAABg"))
                  }))
                : undefined
        const answer = yield* facilitator.settle(body)
        expect(answer.json.errorReason, answer.text).toBe("settle_ledger_transaction_status_unknown")
        expect(yield* rows(stage)).toMatchObject([{ state: "submitted" }])
        first.lie = () => undefined
        expect(yield* eventually(rows(stage), (all) => all[0]!.state !== "submitted")).toMatchObject([
          { state: "settled", confirmations: 2 }
        ])
        expect(yield* facilitator.balance(payTo)).toBe(price)
      })
    ),
    240_000
  )

  it.live(
    "stays open while the second's page cannot be read",
    withEndpoints({ set: ["limits.settle_timeout_ms=5000"] }, (stage) =>
      Effect.gen(function* () {
        const { facilitator, pay, payTo, second } = stage
        const { body } = yield* pay()
        second.lie = (method, _params, truth) =>
          method === "getTransaction"
            ? notFound(truth)
            : method === "getTransactions"
              ? Promise.resolve({ transactions: "none" })
              : undefined
        const answer = yield* facilitator.settle(body)
        expect(answer.json.errorReason, answer.text).toBe("settle_ledger_transaction_status_unknown")
        expect(second.asked).toContain("getTransactions")
        expect(yield* rows(stage)).toMatchObject([{ state: "submitted" }])
        second.lie = () => undefined
        expect(yield* eventually(rows(stage), (all) => all[0]!.state !== "submitted")).toMatchObject([
          { state: "settled", confirmations: 2 }
        ])
        expect(yield* facilitator.balance(payTo)).toBe(price)
      })
    ),
    240_000
  )
})
