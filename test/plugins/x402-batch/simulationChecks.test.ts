// What a batch simulation must show before its transaction is submitted.
import { describe, expect, it } from "vitest"
import type { SimulationAnswer } from "../../../kernel/ledger/LedgerRpc.ts"
import type { LedgerPayload } from "../../../plugins/x402-batch/BatchWire.ts"
import { readSimulation } from "../../../plugins/x402-batch/simulationChecks.ts"

const ceilings = { resourceStroopsMax: 100_000n, inclusionStroopsMax: 10_000n, totalStroopsMax: 100_100n }

/** The result for a simulation that requires this many further authorizations. */
const readFor = (tag: LedgerPayload["_tag"], authorizations: number) =>
  readSimulation(
    { _tag: tag } as LedgerPayload,
    {
      _tag: "Simulated",
      latestLedger: 1,
      resourceFeeStroops: 1n,
      sorobanDataXdr: new Uint8Array(),
      eventsXdr: [],
      authXdr: Array.from({ length: authorizations }, () => new Uint8Array())
    } as SimulationAnswer,
    "CCONTRACT",
    ceilings
  )

describe("a batch simulation", () => {
  it.each(["Deposit", "Withdraw"] as const)("lists the buyer's own authorization of a %s", (tag) => {
    expect(readFor(tag, 1)).toHaveProperty("shown")
  })

  it.each(["Claim", "Refund", "Settle"] as const)("refuses a %s that needs a further authorization", (tag) => {
    expect(readFor(tag, 0)).toHaveProperty("shown")
    expect(readFor(tag, 1)).toMatchObject({ error: [expect.any(String), expect.stringMatching(/authorization/)] })
  })
})
