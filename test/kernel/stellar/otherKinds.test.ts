// Operations that call no contract, and ledger entries that hold no contract.
import { expect, it } from "@effect/vitest"
import { callOfOperation } from "../../../kernel/stellar/ContractCall.ts"
import { entryKind, operationKind, valueKind } from "../../../kernel/stellar/kinds.ts"
import { readCodeHash } from "../../../kernel/stellar/LedgerEntry.ts"

it("an operation of another kind makes no call", () => {
  const { invokeHostFunction: _, ...others } = operationKind
  for (const type of Object.values(others)) expect(callOfOperation({ body: { type } } as never)).toBeUndefined()
})

it("an entry of another kind names no code", () => {
  const { contractData, ...others } = entryKind
  for (const type of Object.values(others)) expect(readCodeHash({ type } as never)).toBeUndefined()
  const { contractInstance: _, ...values } = valueKind
  for (const type of Object.values(values))
    expect(readCodeHash({ type: contractData, contractData: { val: { type } } } as never)).toBeUndefined()
})
