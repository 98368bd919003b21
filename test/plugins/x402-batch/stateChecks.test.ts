// The state of a channel after a settlement must not come from a node that is still behind.
import { expect, it } from "vitest"
import type { LedgerPayload } from "../../../plugins/x402-batch/BatchWire.ts"
import { isStateAfter, unknownChannel } from "../../../plugins/x402-batch/stateChecks.ts"

const of = (payload: object) => payload as LedgerPayload

it("a channel's state is after its settlement when it shows the settlement", () => {
  const deposit = of({ _tag: "Deposit", voucher: { maxClaimableAmount: 100n } })
  const refund = of({ _tag: "Refund", nonce: 3n })
  const start = of({ _tag: "Withdraw", functionName: "withdraw_start" })
  const end = of({ _tag: "Withdraw", functionName: "withdraw_end" })
  const shown = [
    [deposit, { balance: 99n }],
    [deposit, { balance: 100n }],
    [refund, { refundNonce: 3n }],
    [refund, { refundNonce: 4n }],
    [start, { withdrawRequestedAt: 0 }],
    [start, { withdrawRequestedAt: 7 }],
    [end, { withdrawRequestedAt: 7 }],
    [end, { withdrawRequestedAt: 0 }]
  ] as const
  expect(shown.map(([payload, state]) => isStateAfter(payload, { ...unknownChannel, ...state }))).toEqual(
    shown.map((_, at) => at % 2 === 1)
  )
})
