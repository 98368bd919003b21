// The network's diagnostics of a contract that ends with an error: the error's origin, the host function, and the
// contract that trapped, for each contract on the way out.
import { describe, expect, it } from "vitest"
import { symbolText } from "../../../../../plugins/ledger-local/engine/xdr/ScVal.ts"
import { valueText } from "../../../../../plugins/ledger-local/rpc/hostErrorText.ts"
import { hostFunctionName } from "../../../../../plugins/ledger-local/engine/wasm/hostFunctionNames.ts"
import { succeeded } from "../World.ts"
import { call, contract, hostImport, signed, VOID_BODY } from "./assemble.ts"

/** The log of a call of `run`, without the call itself. */
const reported = (code: Uint8Array): ReadonlyArray<string> =>
  call(code)
    .diagnostics.filter(({ event }) => symbolText(event.body.v0.topics[0]) !== "fn_call")
    .map(({ event }) => [...event.body.v0.topics, event.body.v0.data].map(valueText).join(" "))

const word = (value: bigint): Array<number> => [0x42, ...signed(BigInt.asIntN(64, value))]
const u32 = (value: number): Array<number> => word((BigInt(value) << 32n) | 4n)
/** `run` as a small symbol: six bits a letter. */
const RUN = word((BigInt((55 << 12) | (58 << 6) | 51) << 8n) | 14n)
const contractError = word((7n << 32n) | 3n)

describe("the log of a contract that fails", () => {
  it("names the error, the host function and the contract's function", () => {
    const body = [...contractError, 0x10, 0]
    expect(reported(contract({ body, imports: [hostImport("x", "5", 3)] }))).toEqual([
      'error Error(Contract, #7) ["failing with contract error", 7]',
      'error Error(Contract, #7) "escalating error to VM trap from failed host function call: fail_with_error"',
      'log ["VM call trapped with HostError", run, Error(Contract, #7)]'
    ])
  })

  const calling = (name: "_" | "0"): Uint8Array =>
    contract({
      body: [0x10, 0, ...RUN, 0x10, 1, 0x10, 2],
      imports: [hostImport("x", "7", 1), hostImport("v", "_", 1), hostImport("d", name, 4)]
    })

  it("logs a failed call of another contract on the way out", () => {
    expect(reported(calling("_"))).toEqual([
      'error Error(Context, InvalidAction) "Contract re-entry is not allowed"',
      'error Error(Context, InvalidAction) ["contract call failed", run, []]',
      'error Error(Context, InvalidAction) "escalating error to VM trap from failed host function call: call"',
      'log ["VM call trapped with HostError", run, Error(Context, InvalidAction)]'
    ])
  })

  it("logs a failed call that the caller caught", () => {
    expect(reported(calling("0")).slice(0, 2)).toEqual([
      'error Error(Context, InvalidAction) "Contract re-entry is not allowed"',
      'error Error(Context, InvalidAction) ["contract try_call failed", run, []]'
    ])
  })

  it("a wrongly typed value logs only the host function's name", () => {
    const lines = reported(contract({ body: [...u32(1), 0x10, 0], imports: [hostImport("v", "3", 3)] }))
    expect(lines).toEqual([
      'error Error(Value, UnexpectedType) "escalating error to VM trap from failed host function call: vec_len"',
      'log ["VM call trapped with HostError", run, Error(Value, UnexpectedType)]'
    ])
  })

  it("logs no error for a call that succeeds", () => {
    expect(succeeded(call(contract({ body: VOID_BODY }))).diagnostics.length).toBe(2)
  })
})

describe("hostFunctionName", () => {
  it("knows each module's first and last functions", () => {
    const names = ["x._", "x.8", "i.O", "m.c", "v.h", "l.j", "d.0", "b.o", "c.z", "a.a", "p.2"].map(hostFunctionName)
    expect(names.every((name) => name.length > 3 && !name.includes("."))).toBe(true)
    expect(names[0]).toBe("log_from_linear_memory")
    expect(hostFunctionName("p.2")).toBe("prng_vec_shuffle")
  })
})
