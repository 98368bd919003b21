import { expect, it } from "@effect/vitest"
import { Option } from "effect"
import * as Dialect from "../../kernel/Dialect.ts"

it("maps both network spellings to the neutral form and back [S7, S44]", () => {
  for (const [spelled, dialect, network] of [
    ["ledger:testnet", "ledger", "ledger:testnet"],
    ["stellar:testnet", "stellar", "ledger:testnet"],
    ["stellar:pubnet", "stellar", "ledger:pubnet"]
  ] as const) {
    expect(Dialect.readNetwork(spelled)).toEqual(Option.some({ dialect, network }))
    expect(Dialect.encodeNetwork(network, dialect)).toBe(spelled)
  }
  for (const other of ["Ledger:testnet", " ledger:testnet", "stellar:futurenet", "", "ledger:", "base:8453"]) {
    expect(Dialect.readNetwork(other)).toEqual(Option.none())
  }
})

it("spells reason words as whole parts only [S8]", () => {
  expect(Dialect.encodeReason("invalid_ledger_auth_expired", "stellar")).toBe("invalid_stellar_auth_expired")
  expect(Dialect.encodeReason("invalid_ledger_auth_expired", "ledger")).toBe("invalid_ledger_auth_expired")
  expect(Dialect.encodeReason("ledger_unavailable", "stellar")).toBe("stellar_unavailable")
  expect(Dialect.encodeReason("ledgers_x", "stellar")).toBe("ledgers_x")
  expect(Dialect.neutralReason("settle_stellar_transaction_failed")).toBe("settle_ledger_transaction_failed")
})

it("maps the catalog extension's key both ways and leaves others alone [S9]", () => {
  expect(Dialect.neutralExtension("bazaar")).toBe("catalog")
  expect(Dialect.neutralExtension("catalog")).toBe("catalog")
  expect(Dialect.encodeExtension("catalog", "stellar")).toBe("bazaar")
  expect(Dialect.encodeExtension("payment-identifier", "stellar")).toBe("payment-identifier")
})
