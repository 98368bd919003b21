// The contract calls of stellar-core's ledger streams, replayed: ten seconds, which is too long for `npm run check`.
import { beforeAll, describe, expect, it } from "vitest"
import { WasmRuntime } from "../../plugins/ledger-local/engine/wasm/WasmRuntime.ts"
import { fromLatin1 } from "../../plugins/ledger-local/engine/xdr/Xdr.ts"
import { engineCrypto } from "../support/engineCrypto.ts"
import { Report } from "./Report.ts"
import { replayStream } from "./replayStream.ts"
import { findStreams, sharedStreams } from "./streams.ts"

const streams = findStreams(sharedStreams)
if (streams === undefined) console.log(`no ledger streams in ${sharedStreams}: their replay is skipped`)

describe.skipIf(streams === undefined)("stellar-core's ledger streams in ../shared/data", () => {
  const report = new Report()
  beforeAll(() => {
    const contracts = new WasmRuntime()
    const networkId = engineCrypto.sha256(fromLatin1("(V) (;,,;) (V)"))
    for (const file of streams ?? []) {
      if (file.suite !== "InvokeHostFunctionTests") continue
      replayStream(file, { crypto: engineCrypto, networkId, contracts }, report)
    }
  }, 600_000)

  it("come out identical in result, entries and fee wherever they are executed", () => {
    expect(report.differences).toEqual([])
    expect(report.total.identical).toBeGreaterThan(7_000)
  })

  it("have the same diagnostic events, except where a call exceeded its budget", () => {
    const others = report.differing.filter((other) => !/Error\(Budget, ExceededLimit\)/.test(other))
    expect(others).toEqual([])
    expect(report.diagnostics.reported - report.diagnostics.identical).toBeLessThan(12)
  })

  it("meter instructions within 2% for 95 of 100 calls, never too low", () => {
    expect(report.meteredClosely).toBeGreaterThan(0.95)
    expect(report.tooLow).toEqual([])
  })
})
