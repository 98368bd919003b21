// Encoding into a reused buffer, compared with the SDK's own encoding.
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import * as xdr from "@stellar/stellar-sdk/xdr"
import { LocalLedger } from "../../../../../plugins/ledger-local/LocalLedger.ts"
import { codecOf } from "../../../../../plugins/ledger-local/engine/xdr/reusedWriter.ts"
import { codec, equalBytes, type ScVal } from "../../../../../plugins/ledger-local/engine/xdr/Xdr.ts"
import { fund, ledgerLayer } from "../../support.ts"

const bytes = (length: number, fill: number): Uint8Array => new Uint8Array(length).fill(fill)
const i64s = [0n, -1n, 1n, 2n ** 63n - 1n, -(2n ** 63n)]

const values: ReadonlyArray<ScVal> = [
  { type: 0, b: true },
  { type: 3, u32: 0xffff_ffff },
  { type: 4, i32: -2_147_483_648 },
  ...i64s.map((i64): ScVal => ({ type: 6, i64 })),
  { type: 5, u64: 2n ** 64n - 1n },
  { type: 10, i128: { hi: -1n, lo: 2n ** 64n - 1n } },
  // Every length of padding, an empty value, and values larger than the buffer and than the retained size.
  ...[0, 1, 2, 3, 4, 5, 70_000, 1_100_000, 3].map((length): ScVal => ({ type: 13, bytes: bytes(length, 0xab) }))
]

describe("a reused buffer", () => {
  it("a reused buffer holds the SDK's bytes for each value", () => {
    const all: ScVal = { type: 16, vec: [...values] }
    for (const value of [...values, all, ...values])
      expect(equalBytes(codec.ScVal.encode(value), xdr.ScVal.schema.encode(value))).toBe(true)
  })

  it("returns bytes that the next value does not overwrite", () => {
    const first = codec.ScVal.encode({ type: 13, bytes: bytes(8, 1) })
    const copy = first.slice()
    codec.ScVal.encode({ type: 13, bytes: bytes(8, 2) })
    expect(first).toEqual(copy)
  })

  it("a reused buffer recovers after a value that cannot be written", () => {
    const wrong = {
      type: 16,
      vec: [
        { type: 3, u32: 1 },
        { type: 3, u32: "x" }
      ]
    } as unknown as ScVal
    expect(() => codec.ScVal.encode(wrong)).toThrow()
    const value: ScVal = { type: 3, u32: 7 }
    expect(codec.ScVal.encode(value)).toEqual(xdr.ScVal.schema.encode(value))
  })

  it("refuses what is nested too deep, as the SDK does", () => {
    let deep: ScVal = { type: 3, u32: 1 }
    for (let i = 0; i < 2_000; i++) deep = { type: 16, vec: [deep] }
    const reported = (encode: () => unknown): string => {
      try {
        encode()
      } catch (error) {
        return String(error).replace(/^.*max recursion/s, "max recursion")
      }
      return "nothing"
    }
    expect(reported(() => xdr.ScVal.schema.encode(deep))).toContain("max recursion depth")
    expect(reported(() => codec.ScVal.encode(deep))).toBe(reported(() => xdr.ScVal.schema.encode(deep)))
  })

  it.effect("holds whole ledgers as the SDK writes them", () =>
    Effect.gen(function* () {
      const ledger = yield* LocalLedger
      yield* fund("a", 5n)
      const { ledgers } = yield* ledger.call("getLedgers", { startLedger: 1_000 })
      for (const { metadataXdr } of ledgers) {
        const meta = xdr.LedgerCloseMeta.schema.decode(Buffer.from(metadataXdr, "base64"))
        expect(codecOf(xdr.LedgerCloseMeta.schema).encode(meta)).toEqual(xdr.LedgerCloseMeta.schema.encode(meta))
      }
    }).pipe(Effect.provide(ledgerLayer()))
  )
})
