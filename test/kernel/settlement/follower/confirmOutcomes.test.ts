// The evidence of a second endpoint's nonce or transaction about an outcome, and what follows from it.
import { Effect, Layer, Logger, References } from "effect"
import { describe, expect, it } from "vitest"
import { LedgerRpc, type EndpointReader, type TransactionAnswer } from "../../../../kernel/ledger/LedgerRpc.ts"
import { Authorizations } from "../../../../kernel/settlement/Authorizations.ts"
import {
  makeConfirmOutcomes,
  type OutcomeClaim,
  verdictByNonce,
  verdictByTransaction
} from "../../../../kernel/settlement/follower/confirmOutcomes.ts"
import type { Outcome } from "../../../../kernel/settlement/state/Settlement.ts"
import { layerTest } from "../../../support/layerTest.ts"
import { executed } from "../lives.ts"

const claim = (outcome: Partial<Outcome>) => ({
  authorizationExpiresLedger: 20,
  innerHash: "t",
  outcome: {
    state: "settled",
    transaction: "t",
    ledger: 10,
    reason: undefined,
    channel: undefined,
    ...outcome
  } as const
})
const settled = claim({})
const failed = claim({
  state: "failed",
  reason: "settle_ledger_transaction_failed",
  channel: { sequenceUsed: true, ledger: 10 }
})
const cancelled = claim({ ...failed.outcome, transaction: "no-op" })
const spent = claim({
  state: "failed",
  reason: "settle_ledger_authorization_spent",
  channel: { sequenceUsed: true, ledger: 10 }
})

describe("a second endpoint's nonce", () => {
  it.each([
    ["settled, used in that ledger, perhaps by another transaction", settled, 10, 12, "Unknown"],
    ["settled, used in another ledger", settled, 9, 12, "Contradicts"],
    ["settled, unspent at that ledger", settled, "unspent", 10, "Contradicts"],
    ["settled, unspent before that ledger", settled, "unspent", 9, "Behind"],
    ["failed, unspent at that ledger", failed, "unspent", 10, "Agrees"],
    ["failed, used before", failed, 10, 12, "Contradicts"],
    ["failed, used later", failed, 11, 12, "Behind"],
    ["failed, unspent before that ledger", failed, "unspent", 9, "Behind"],
    ["spent, used", spent, 8, 12, "Agrees"],
    ["spent, unspent", spent, "unspent", 12, "Contradicts"],
    ["failed, the entry may have expired", failed, "unspent", 21, "Unknown"],
    ["failed, another authorization used it after the expiry", failed, 22, 23, "Unknown"]
  ] as const)("decides: %s", (_, about, nonce, latestLedger, verdict) => {
    expect(verdictByNonce(about, { nonce }, latestLedger)).toBe(verdict)
  })
})

describe("a second endpoint's transaction", () => {
  const absent = (latestLedger: number, oldestLedger = 1) => ({ _tag: "NotFound", latestLedger, oldestLedger }) as const
  const included = (succeeded: boolean, ledger = 10) =>
    ({ _tag: "Included", latestLedger: 12, executed: executed({ ledger, succeeded }) }) as const

  it.each([
    ["settled, included", settled, included(true), "Agrees"],
    ["settled, failed there", settled, included(false), "Contradicts"],
    ["settled, in another ledger", settled, included(true, 9), "Contradicts"],
    ["settled, absent from its history", settled, absent(23), "Contradicts"],
    ["settled, perhaps not in its index yet", settled, absent(22), "Behind"],
    ["settled, before its history", settled, absent(30, 11), "Unknown"],
    ["failed, succeeded there", failed, included(true), "Contradicts"],
    ["failed by our no-op, which succeeded", cancelled, included(true), "Agrees"],
    ["failed, absent", failed, absent(11), "Agrees"]
  ] as const)("decides: %s", (_, about, answer, verdict) => {
    expect(verdictByTransaction(about, answer)).toBe(verdict)
  })
})

describe("endpoints that contradict each other", () => {
  const included = (ledger: number) =>
    ({ _tag: "Included", latestLedger: 40, executed: executed({ ledger, succeeded: true }) }) as const

  /** Confirms one settled outcome, shown by endpoint 0 in ledger 10, `times` times; the others show `answers`. */
  const confirm = async (answers: ReadonlyArray<TransactionAnswer>, times = 1) => {
    const distrusted: Array<number> = []
    const lines: Array<Record<string, unknown>> = []
    const readers = answers.map((answer, at) => ({ endpoint: at + 1, transaction: () => Effect.succeed(answer) }))
    const rpc = {
      others: () => Effect.succeed(readers as unknown as ReadonlyArray<EndpointReader>),
      distrust: (endpoint: number) => Effect.sync(() => void distrusted.push(endpoint))
    }
    const logger = Logger.make<unknown, void>(({ fiber }) => {
      lines.push({ ...fiber.getRef(References.CurrentLogAnnotations) })
    })
    const ports = Layer.mergeAll(
      layerTest(LedgerRpc, rpc),
      layerTest(Authorizations, { nonceOf: () => "none" }),
      Logger.layer([logger])
    )
    const claimed = { ...settled, promised: {}, channel: "channel", shownBy: 0 } as unknown as OutcomeClaim
    const confirmations = await makeConfirmOutcomes.pipe(
      Effect.flatMap((confirming) => Effect.forEach(Array.from({ length: times }), () => confirming(claimed))),
      Effect.scoped,
      Effect.provide(ports),
      Effect.runPromise
    )
    return { confirmations, distrusted, lines }
  }

  it("two agree, and the third is distrusted", async () => {
    const { confirmations, distrusted, lines } = await confirm([included(9), included(10)])
    expect([confirmations, distrusted]).toEqual([[2], [1]])
    expect(lines).toEqual([{ transaction: "t", outcome: "settled", shownBy: 1, contradictedBy: 2 }])
  })

  it("one against one stays open, distrusts the first, logs once", async () => {
    const { confirmations, distrusted, lines } = await confirm([included(9)], 3)
    expect([confirmations, distrusted]).toEqual([
      ["Contradicted", "Contradicted", "Contradicted"],
      [0, 0, 0]
    ])
    expect(lines).toEqual([{ transaction: "t", outcome: "settled", shownBy: 1, contradictedBy: 2 }])
  })

  it("agreement logs nothing and distrusts no endpoint", async () => {
    expect(await confirm([included(10)])).toEqual({ confirmations: [2], distrusted: [], lines: [] })
  })
})
