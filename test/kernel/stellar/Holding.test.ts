// What an entry of a balance can still spend and receive.
import { expect, it } from "vitest"
import { readHolding } from "../../../kernel/stellar/Holding.ts"
import { entryKind, valueKind } from "../../../kernel/stellar/kinds.ts"

const trustline = (flags: number, liabilities?: { readonly buying: bigint; readonly selling: bigint }) =>
  readHolding({
    type: entryKind.trustline,
    trustLine: {
      balance: 100n,
      limit: 1_000n,
      flags,
      ext: liabilities === undefined ? { v: 0 } : { v: 1, v1: { liabilities, ext: { v: 0 } } }
    }
  } as never)

it("a trustline keeps what open offers sell, and room for what they buy", () => {
  expect(trustline(1)).toEqual({ spendable: 100n, room: 900n, isAuthorized: true })
  expect(trustline(1, { buying: 30n, selling: 7n })).toEqual({ spendable: 93n, room: 870n, isAuthorized: true })
})

it.each([
  [0, false],
  [1, true],
  [2, false],
  [5, true]
])("a trustline with flags %i is authorized: %s", (flags, isAuthorized) => {
  expect(trustline(flags)?.isAuthorized).toBe(isAuthorized)
})

it("a contract's balance has room up to the largest amount", () => {
  const field = (name: string, val: unknown) => ({ key: { type: valueKind.symbol, sym: name }, val })
  const amount = field("amount", { type: valueKind.i128, i128: { hi: 0n, lo: 5n } })
  const balance = (...fields: ReadonlyArray<unknown>) =>
    readHolding({
      type: entryKind.contractData,
      contractData: { val: { type: valueKind.map, map: fields } }
    } as never)
  const room = (1n << 127n) - 6n
  expect(balance(amount)).toEqual({ spendable: 5n, room, isAuthorized: true })
  expect(balance(amount, field("authorized", { type: valueKind.bool, b: false }))).toEqual({
    spendable: 5n,
    room,
    isAuthorized: false
  })
  expect(balance()).toBeUndefined()
})
