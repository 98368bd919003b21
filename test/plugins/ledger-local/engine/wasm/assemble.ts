// Contract modules as bytes, small enough to be written by hand, and the way of one through upload, creation and call.
import { contractIdOf } from "../../../../../plugins/ledger-local/engine/host/createContract.ts"
import { invokeHostFunction } from "../../../../../plugins/ledger-local/engine/host/Host.ts"
import type { HostResult } from "../../../../../plugins/ledger-local/engine/host/HostResult.ts"
import { WasmRuntime } from "../../../../../plugins/ledger-local/engine/wasm/WasmRuntime.ts"
import { contractAddress, type HostFunction, xdrText } from "../../../../../plugins/ledger-local/engine/xdr/Xdr.ts"
import { crypto, ledgerSeq, networkId, sponsor, succeeded, World } from "../World.ts"

const bytesOf = (...parts: ReadonlyArray<number | ReadonlyArray<number>>): Array<number> =>
  parts.flat() as Array<number>
export const sized = (content: ReadonlyArray<number>): Array<number> => [...leb(content.length), ...content]
export const leb = (value: number): Array<number> =>
  value < 128 ? [value] : [(value & 127) | 128, ...leb(value >>> 7)]
export const section = (id: number, ...items: ReadonlyArray<ReadonlyArray<number>>): Array<number> => [
  id,
  ...sized([...leb(items.length), ...items.flat()])
]
export const text = (value: string): Array<number> => sized([...new TextEncoder().encode(value)])
export const I64 = 0x7e
export const I32 = 0x7f
const environment = (protocol: number): Array<number> => [
  0,
  ...sized([...text("contractenvmetav0"), 0, 0, 0, 0, 0, 0, 0, protocol, 0, 0, 0, 0])
]

export interface Parts {
  readonly body: ReadonlyArray<number>
  readonly locals?: ReadonlyArray<number>
  readonly imports?: ReadonlyArray<ReadonlyArray<number>>
  readonly extra?: ReadonlyArray<number>
  readonly protocol?: number
  /** The memory section's limits; default at least none. */
  readonly memory?: ReadonlyArray<number>
  /** Sections after the code. */
  readonly after?: ReadonlyArray<number>
}

/** A contract with one function `run` without parameters; imports are made by `hostImport`. */
export const contract = ({
  body,
  locals = [],
  imports = [],
  extra = [],
  protocol = 26,
  memory = [0, 1],
  after = []
}: Parts): Uint8Array =>
  Uint8Array.from(
    bytesOf(
      [0, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
      section(
        1,
        ...[0, 0, 2, 1, 3, 4, 5].map((parameters) => [0x60, parameters, ...Array<number>(parameters).fill(I64), 1, I64])
      ),
      imports.length === 0 ? [] : section(2, ...imports),
      section(3, [0]),
      section(5, memory),
      [...extra],
      section(7, [...text("run"), 0, imports.length], [...text("memory"), 2, 0]),
      section(10, sized([...(locals.length === 0 ? [0] : locals), ...body, 0x0b])),
      [...after],
      environment(protocol)
    )
  )

export const VOID_BODY = [0x42, 2]
/** `type`: 1 no parameter, 2 two parameters, 3 one, 4 three, 5 four, 6 five. */
export const hostImport = (module: string, name: string, type: 1 | 2 | 3 | 4 | 5 | 6): Array<number> => [
  ...text(module),
  ...text(name),
  0,
  type
]

export const world = (): World => {
  const made = new World()
  made.account(sponsor)
  return made
}

export const execute = (
  on: World,
  hostFunction: HostFunction,
  contracts = new WasmRuntime(),
  instructionsMax = 400_000_000
): HostResult =>
  invokeHostFunction({
    store: on.store,
    settings: on.settings,
    ledgerSeq,
    closeTime: 1_700_000_000n,
    networkId,
    source: sponsor.id,
    hostFunction,
    auth: [],
    access: { mode: "record", randomNonce: () => 1n, useUpgradedAuth: true, allowNonRoot: false },
    crypto,
    contracts,
    instructionsMax
  })

/** Uploads, creates and calls a contract; the result of the call. */
export const call = (code: Uint8Array, on = world()): HostResult => {
  succeeded(execute(on, { type: 2, wasm: code })).changes.commit()
  const contractIdPreimage = { type: 0 as const, fromAddress: { address: sponsor.address, salt: new Uint8Array(32) } }
  const executable = { type: 0 as const, wasmHash: crypto.sha256(code) }
  succeeded(execute(on, { type: 1, createContract: { contractIdPreimage, executable } })).changes.commit()
  const id = contractIdOf(crypto, networkId, contractIdPreimage)
  return execute(on, {
    type: 0,
    invokeContract: { contractAddress: contractAddress(id), functionName: xdrText("run"), args: [] }
  })
}

/** A signed LEB128 number. */
export const signed = (value: bigint): Array<number> => {
  const out: Array<number> = []
  for (let rest = value; ;) {
    const low = Number(rest & 127n)
    rest >>= 7n
    if ((rest === 0n && low < 64) || (rest === -1n && low >= 64)) return [...out, low]
    out.push(low | 128)
  }
}
