// `x402_receipts`: lists the facilitators' signed receipts of this agent's own payments, from the budget's store, as
// sellers passed them on. They are stored without verification; `tollkeeper receipts verify` and the published scripts
// check them.
import { Effect, Schema } from "effect"
import { type Caller, defineTool, spelled } from "../../mcp-tools/contract.ts"
import { BudgetStore, receiptsMax } from "../budget/BudgetStore.ts"
import { ReceiptsResult } from "./ReceiptWire.ts"
import { storeUnavailable } from "./sendPayment.ts"

const Input = Schema.Struct({
  limit: Schema.optionalKey(
    Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: receiptsMax })).annotate({ description: "Most." })
  )
})

const list = Effect.fn("Tools.receipts")(function* ({ limit }: typeof Input.Type, { principal }: Caller) {
  const store = yield* BudgetStore
  const spell = yield* spelled
  const found = yield* Effect.mapError(store.receipts(principal), () => storeUnavailable)
  return {
    receipts: found.slice(0, limit).map(({ amount, asset, network, payTo, receipt = "", transaction = "" }) => ({
      transaction,
      network: spell(network),
      asset,
      payTo,
      amount: amount.toString(),
      receipt
    }))
  }
})

export const receiptsTool = Effect.gen(function* () {
  const parts = yield* Effect.context<BudgetStore | Effect.Services<typeof spelled>>()
  return defineTool({
    name: "x402_receipts",
    title: "Receipts",
    description: "Signed receipts of your payments.",
    annotations: { readOnlyHint: true },
    pays: false,
    input: Input,
    output: ReceiptsResult,
    run: (input, caller) => Effect.provideContext(list(input, caller), parts)
  })
})
