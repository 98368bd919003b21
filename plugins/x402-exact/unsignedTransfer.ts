// The data that the payer of an `exact` payment signs: a single call `transfer(payer, payTo, amount)` of the asset,
// without sub-invocations. Pure.
import { Option } from "effect"
import type { Terms } from "../../kernel/payment/Payment.ts"
import { type Unsigned, unsignedEntry, type UnsignedOrder } from "../../kernel/payment/Unsigned.ts"
import { contractAddressOf } from "../../kernel/stellar/Address.ts"
import { invocationOf } from "../../kernel/stellar/AuthEntry.ts"
import type { InvokeArgs } from "../../kernel/stellar/ContractCall.ts"
import { addressValue, i128Value } from "../../kernel/stellar/Value.ts"

/** The terms' addresses are valid, and their asset is a contract. */
export const unsignedTransfer = ({ amount, asset, payTo }: Terms, order: UnsignedOrder): Unsigned => {
  const invoked = {
    contractAddress: contractAddressOf(asset),
    functionName: "transfer",
    args: [addressValue(order.payer), addressValue(payTo), i128Value(Option.getOrElse(amount, () => 0n))]
  } as unknown as InvokeArgs
  return { invoked, entry: unsignedEntry(order, invocationOf(invoked)), chosen: {} }
}
