// What is kept of a payment: it decodes to the same payment of its own invocation, and to nothing else.
import { expect, it } from "vitest"
import type { Reservation } from "../../../plugins/mcp-tools-pay/budget/Reservation.ts"
import type { OpenPayment } from "../../../plugins/mcp-tools-pay/call/Invocation.ts"
import {
  decodeKeptPayment,
  decodeKeptVoucher,
  encodeKeptPayment
} from "../../../plugins/mcp-tools-pay/call/KeptWire.ts"

const authorization = { payer: "GPAYER", nonce: 7n, expirationLedger: 1_000 }
const option = {
  scheme: "exact",
  network: "ledger:testnet",
  asset: "C",
  amount: 10n,
  payTo: "G",
  maxTimeoutSeconds: 60,
  feesSponsored: true,
  extra: "{}",
  sent: { amount: "10" }
}
const open: OpenPayment = {
  identifier: "id",
  payment: { x402Version: 2 },
  authorization,
  replaces: ["earlier"],
  invocation: {
    key: "a key",
    ref: "v1.ref",
    versionHash: "v",
    option,
    about: { kind: "http", origin: "https://seller.example", grade: "proven" }
  }
} as unknown as OpenPayment
const withOption = (changes: object): OpenPayment => ({
  ...open,
  invocation: { ...open.invocation, option: { ...option, ...changes } }
})

const reserved = { id: "id", invocation: "a key", authorization } as unknown as Reservation
const unsigned = { ...reserved, authorization: undefined }

it("a payment decodes with the authorization of its reservation", () => {
  const text = encodeKeptPayment(open)
  expect(decodeKeptPayment(text, reserved)).toEqual({ ...open, moves: undefined })
  const moves = { asset: "C", payTo: "GCONTRACT", amount: 50n }
  expect(decodeKeptPayment(encodeKeptPayment({ ...open, moves }), reserved)?.moves).toEqual(moves)
  expect(decodeKeptPayment(text, unsigned)).toBeUndefined()
  expect(decodeKeptPayment(text, { ...reserved, invocation: "another key" })).toBeUndefined()
  for (const wrong of ["", "{}", text.replace('"version":1', '"version":2'), text.replace('"10"', '"ten"')])
    expect(decodeKeptPayment(wrong, reserved)).toBeUndefined()
})

it("a voucher is a kept payment of a channel, without an authorization or a deposit", () => {
  const voucher = withOption({ scheme: "batch-settlement" })
  const read = (payment: OpenPayment, reservation: Reservation = unsigned) =>
    decodeKeptVoucher(encodeKeptPayment(payment), reservation)
  expect(read(voucher)?.invocation.option.scheme).toBe("batch-settlement")
  expect(read(voucher, reserved)).toBeUndefined()
  expect(read(open)).toBeUndefined()
  expect(read({ ...voucher, moves: { asset: "C", payTo: "G", amount: 1n } })).toBeUndefined()
  expect(decodeKeptVoucher("{}", unsigned)).toBeUndefined()
})
