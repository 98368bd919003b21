// Token movements from events: every form of the token standard, and events that only resemble one.
import { Address, Keypair, nativeToScVal, StrKey, xdr } from "@stellar/stellar-sdk"
import { describe, expect, it } from "vitest"
import { readEvent } from "../../../kernel/stellar/TransferEvents.ts"

const contract = StrKey.encodeContract(new Uint8Array(32).fill(1))
const wallet = StrKey.encodeContract(new Uint8Array(32).fill(2))
const [from, to] = [Keypair.random().publicKey(), Keypair.random().publicKey()]
const address = (value: string) => new Address(value).toScVal()
const symbol = xdr.ScVal.scvSymbol
const i128 = (value: bigint) => nativeToScVal(value, { type: "i128" })
const asset = xdr.ScVal.scvString("USDC:G")

const event = (
  topics: ReadonlyArray<xdr.ScVal>,
  data: xdr.ScVal,
  options: { type?: xdr.ContractEventType; anonymous?: boolean } = {}
) =>
  new xdr.ContractEvent({
    ext: xdr.ExtensionPoint.v0(),
    contractId: options.anonymous === true ? null : new xdr.ContractId(StrKey.decodeContract(contract)),
    type: options.type ?? xdr.ContractEventType.contract,
    body: xdr.ContractEventBody.v0(new xdr.ContractEventV0({ topics: [...topics], data }))
  }).toXdrObject() as Parameters<typeof readEvent>[0]

const muxedData = (amount: bigint) =>
  xdr.ScVal.scvMap([
    new xdr.ScMapEntry({ key: symbol("amount"), val: i128(amount) }),
    new xdr.ScMapEntry({ key: symbol("to_muxed_id"), val: nativeToScVal(7n, { type: "u64" }) })
  ])

describe("readEvent", () => {
  it("reads transfers between accounts and contracts, with or without asset name", () => {
    expect(readEvent(event([symbol("transfer"), address(from), address(to), asset], i128(5n)))).toEqual({
      _tag: "Moved",
      kind: "transfer",
      transfer: { contract, from, to, amount: 5n }
    })
    expect(readEvent(event([symbol("transfer"), address(from), address(wallet)], i128(5n)))).toMatchObject({
      transfer: { to: wallet }
    })
  })

  it("reads mint, burn and clawback, leaving the missing party empty", () => {
    expect(readEvent(event([symbol("mint"), address(to), asset], i128(5n)))).toMatchObject({
      kind: "mint",
      transfer: { from: "", to }
    })
    expect(readEvent(event([symbol("burn"), address(from), asset], i128(5n)))).toMatchObject({
      kind: "burn",
      transfer: { from, to: "" }
    })
    expect(readEvent(event([symbol("clawback"), address(from), asset], i128(5n)))).toMatchObject({
      kind: "clawback",
      transfer: { from, to: "" }
    })
  })

  it("reads the amount beside a muxed destination's id", () => {
    const muxed = event([symbol("transfer"), address(from), address(to), asset], muxedData(6n))
    expect(readEvent(muxed)).toMatchObject({ transfer: { amount: 6n } })
  })

  it("reads the whole range of amounts", () => {
    for (const amount of [0n, -1n, 2n ** 64n, 2n ** 64n - 1n, 2n ** 127n - 1n, -(2n ** 127n)]) {
      expect(readEvent(event([symbol("transfer"), address(from), address(to)], i128(amount)))).toMatchObject({
        transfer: { amount }
      })
    }
  })

  it("reports a token event of unknown form as unreadable", () => {
    const cases: ReadonlyArray<Parameters<typeof readEvent>[0]> = [
      event([symbol("transfer")], i128(5n)),
      event([symbol("transfer"), address(from)], i128(5n)),
      event([symbol("transfer"), asset, address(to)], i128(5n)),
      event([symbol("transfer"), address(from), address(to)], nativeToScVal(5n, { type: "u128" })),
      event([symbol("transfer"), address(from), address(to)], xdr.ScVal.scvVoid()),
      event([symbol("transfer"), address(from), address(to)], xdr.ScVal.scvMap([])),
      event([symbol("mint")], i128(5n)),
      event([symbol("transfer"), address(from), address(to)], i128(5n), { anonymous: true })
    ]
    for (const unreadable of cases) expect(readEvent(unreadable)._tag).toBe("Unreadable")
  })

  it("does not read other events as transfers", () => {
    expect(readEvent(event([symbol("approve"), address(from), address(to)], i128(5n)))).toEqual({
      _tag: "Other",
      contract
    })
    expect(readEvent(event([xdr.ScVal.scvString("transfer"), address(from), address(to)], i128(5n)))._tag).toBe("Other")
    expect(readEvent(event([], i128(5n)))._tag).toBe("Other")
    expect(
      readEvent(
        event([symbol("transfer"), address(from), address(to)], i128(5n), { type: xdr.ContractEventType.diagnostic })
      )._tag
    ).toBe("Other")
    expect(
      readEvent(
        event([symbol("transfer"), address(from), address(to)], i128(5n), { type: xdr.ContractEventType.system })
      )._tag
    ).toBe("Other")
  })
})
