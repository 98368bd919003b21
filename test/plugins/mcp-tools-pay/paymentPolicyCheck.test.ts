// The outcome of a paid call: what the seller says decides nothing without the ledger.
import { expect, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Option } from "effect"
import { TestClock } from "effect/testing"
import { LedgerRpc, LedgerUnavailable } from "../../../kernel/ledger/LedgerRpc.ts"
import type { OpenPayment, PaidAnswer } from "../../../plugins/mcp-tools-pay/call/Invocation.ts"
import { misfits, PaymentPolicyCheck } from "../../../plugins/mcp-tools-pay/call/PaymentPolicyCheck.ts"
import type { SettlementClaim } from "../../../plugins/mcp-tools-pay/seller/SellerWire.ts"
import { toolError, ToolsConfig } from "../../../plugins/mcp-tools/contract.ts"
import { layerTest } from "../../support/layerTest.ts"

const open = {
  authorization: { payer: "GPAYER", nonce: 7n, expirationLedger: 1_000 },
  invocation: { option: { network: "ledger:testnet", asset: "C", payTo: "G", amount: 10n, maxTimeoutSeconds: 60 } }
} as unknown as OpenPayment

/** The ledger shows the nonce as spent from a time on, in milliseconds; undefined: it never answers. */
const verify = (answer: unknown, spentFrom: number | undefined) =>
  Effect.gen(function* () {
    const check = yield* PaymentPolicyCheck
    const fiber = yield* Effect.forkChild(check.verify(answer as PaidAnswer, open))
    for (let step = 0; step < 20; step++) yield* TestClock.adjust("400 millis")
    return yield* Fiber.join(fiber)
  }).pipe(
    Effect.provide(
      PaymentPolicyCheck.layer.pipe(
        Layer.provide([
          layerTest(ToolsConfig, { confirmMillis: 2_000 }),
          layerTest(LedgerRpc, {
            transaction: () => Effect.succeed({ _tag: "NotFound", latestLedger: 990, oldestLedger: 1 }),
            nonceSpent: () =>
              spentFrom === undefined
                ? Effect.fail(new LedgerUnavailable({ operation: "getLedgerEntries", message: "down" }))
                : Effect.clockWith(({ currentTimeMillis }) =>
                    Effect.map(currentTimeMillis, (now) => ({
                      latestLedger: 990,
                      spent: now >= spentFrom,
                      inLedger: Option.none()
                    }))
                  )
          })
        ])
      )
    ),
    Effect.provide(TestClock.layer())
  )

const claim = (changes: Partial<SettlementClaim> = {}): SettlementClaim => ({
  success: true,
  transaction: "ab",
  network: "ledger:testnet",
  payer: "GPAYER",
  amount: "10",
  reason: undefined,
  unreadable: [],
  ...changes
})
const content = { isContent: true, settlement: claim(), asksAgain: undefined, content: {} }
const again = { ...content, isContent: false, asksAgain: { reason: "too_little" } }
const failure = { ...content, isContent: false }
const refusal = (reason?: string) => claim({ success: false, reason })

it.effect.each([
  // The ledger shows it.
  ["content", content, 0, { _tag: "Settled", source: "ledger", misfits: ["transaction"], transaction: undefined }],
  ["content without a receipt", { ...content, settlement: undefined }, 0, { _tag: "Settled", misfits: ["receipt"] }],
  ["content, shown a second later", content, 1_000, { _tag: "Settled" }],
  ["content, shown too late", content, 3_000, { _tag: "Unknown", transaction: "ab" }],
  ["the seller's own failure", failure, 0, { _tag: "Unknown", isPaid: true, transaction: "ab" }],
  ["a cut answer", { ...content, isPart: true }, 0, { _tag: "Unknown", isPaid: true, why: /broke off/ }],
  ["no answer", toolError("SELLER_ERROR" as never, "cut"), 0, { _tag: "Unknown", isPaid: true, why: "cut" }],
  ["a refusal while pending", { ...failure, settlement: refusal("settlement_pending") }, 0, { isPaid: true }],
  // It does not.
  [
    "content without a payment",
    content,
    undefined,
    { _tag: "Unknown", why: "the ledger does not confirm the settlement" }
  ],
  ["no payment and no receipt", { ...content, settlement: undefined }, undefined, { why: /reports no settlement/ }],
  ["content with a refusal", { ...content, settlement: refusal("bad_nonce") }, undefined, { _tag: "Rejected" }],
  [
    "a failure without a receipt",
    { ...failure, settlement: undefined },
    0,
    { _tag: "Unknown", why: /its own failure/ }
  ],
  ["another request to pay", { ...again, settlement: undefined }, 0, { _tag: "StillRequired", reason: "too_little" }],
  ["another request after success", again, undefined, { _tag: "Unknown" }],
  ["another request after a refusal", { ...again, settlement: refusal("bad_nonce") }, 0, { reason: "bad_nonce" }],
  ["a refusal", { ...failure, settlement: refusal("bad_nonce") }, 0, { _tag: "Rejected", reason: "bad_nonce" }],
  ["a refusal without a reason", { ...failure, settlement: refusal() }, 0, { _tag: "Rejected", reason: undefined }],
  [
    "a payment settled before",
    { ...failure, settlement: refusal("settle_ledger_already_settled") },
    undefined,
    { _tag: "Unknown", why: /settled before/, transaction: "ab" }
  ]
] as const)("decides by the ledger: %s", ([, answer, spentFrom, expected]) =>
  Effect.map(verify(answer, spentFrom), (result) => {
    const patterns = Object.entries(expected).map(([key, value]) => [
      key,
      value instanceof RegExp ? expect.stringMatching(value) : value
    ])
    expect(result).toMatchObject(Object.fromEntries(patterns))
    if (!("isPaid" in expected)) expect(result).not.toHaveProperty("isPaid")
  })
)

it("names the members of a receipt that do not match the payment", () => {
  const named = (changes: Partial<SettlementClaim>) => misfits(claim(changes), open, "ab")
  expect(named({})).toEqual([])
  expect(misfits(undefined, open, "ab")).toEqual(["receipt"])
  for (const [member, value] of Object.entries({ transaction: "cd", network: "x", payer: "G2", amount: "11" })) {
    expect(named({ [member]: value })).toEqual([member])
    expect(named({ [member]: undefined })).toEqual([])
    expect(named({ unreadable: [member] })).toEqual([member])
  }
  expect([named({ success: false }), named({ success: undefined })]).toEqual([["success"], []])
  const deposit = { ...open, moves: { asset: "C", payTo: "G", amount: 50n } } as OpenPayment
  expect(misfits(claim({ amount: "50" }), deposit, "ab")).toEqual([])
  expect(misfits(claim(), deposit, "ab")).toEqual(["amount"])
})
