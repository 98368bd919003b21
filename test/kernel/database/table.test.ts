// The SQL, the decoder and the encoder that follow from a declaration of columns.
import { Option } from "effect"
import { describe, expect, it } from "vitest"
import { columns, count, nullable, option, optional, text, units, uuid, whole } from "../../../kernel/database/table.ts"

const table = columns({
  id: uuid,
  payTo: text,
  amount: optional(units),
  feeStroops: option(whole),
  reason: nullable(text),
  closedLedger: { ...optional(count), expression: "case when ledger > 0 then ledger end" }
})
const full = { id: "i", pay_to: "p", amount: "12345678901234567890", fee_stroops: 7n, reason: "r", closed_ledger: 9n }
const bare = { id: "i", pay_to: "p", amount: null, fee_stroops: null, reason: null, closed_ledger: null }

describe("a declaration of columns", () => {
  it("names, casts and types each column", () => {
    expect(table.names).toBe("id, pay_to, amount, fee_stroops, reason, closed_ledger")
    expect(table.selected).toBe(
      "(id)::text as id, pay_to, (amount)::text as amount, fee_stroops, reason, " +
        "case when ledger > 0 then ledger end as closed_ledger"
    )
    expect(table.typed).toBe(
      "id uuid, pay_to text, amount numeric, fee_stroops bigint, reason text, closed_ledger bigint"
    )
  })

  it("decodes and encodes values of every kind", () => {
    const decoded = table.decode(full)
    expect(decoded).toEqual({
      id: "i",
      payTo: "p",
      amount: 12_345_678_901_234_567_890n,
      feeStroops: Option.some(7n),
      reason: "r",
      closedLedger: 9
    })
    expect(table.encode(decoded)).toEqual({ ...full, fee_stroops: "7", closed_ledger: 9 })
  })

  it("decodes null as the absent value of its column", () => {
    const decoded = table.decode(bare)
    expect(decoded).toStrictEqual({
      id: "i",
      payTo: "p",
      amount: undefined,
      feeStroops: Option.none(),
      reason: null,
      closedLedger: undefined
    })
    expect(table.encode(decoded)).toEqual(bare)
  })
})
