// Selects the right one of several endpoints, as a pure function of their answers.
import { describe, expect, it } from "vitest"
import { type HeadState, initialHead, selectHead, unfitEndpoints } from "../../../kernel/ledger/headSelection.ts"
import type { LatestLedger } from "../../../kernel/ledger/LedgerRpc.ts"

const closeInterval = 5
const newest = (endpoint: number, sequence: number): LatestLedger =>
  ({ endpoint, sequence, closedAtSeconds: 1_000_000 + sequence * closeInterval }) as LatestLedger
const pollAt = (at: number, first: LatestLedger, second: ReadonlyArray<LatestLedger> = []) => ({
  first,
  second,
  at,
  closeInterval,
  machineSeconds: 2_000_000
})
const begun = (sequence: number): HeadState => initialHead(pollAt(0, newest(0, sequence), [newest(0, sequence)]))!

describe("endpoints that contradict each other", () => {
  it("follows the larger group of endpoints once its ledger advances", () => {
    const answers = (own: number, others: number) => [newest(0, own), newest(1, others), newest(2, others)]
    const first = selectHead(begun(1_000), pollAt(1_000, newest(0, 1_000), answers(1_000, 50_000)))
    expect(first.state.newest.sequence).toBe(1_000)
    const same = selectHead(first.state, pollAt(2_000, newest(0, 1_000), answers(1_000, 50_000)))
    expect([same.change, same.state.newest.sequence]).toEqual(["none", 1_000])
    const moved = selectHead(same.state, pollAt(6_000, newest(0, 1_001), answers(1_001, 50_001)))
    expect([moved.change, moved.state.newest.sequence]).toEqual(["moved", 50_001])
  })

  it("an endpoint behind or far ahead is unfit, one ledger ahead is fit", () => {
    const second = [newest(0, 1_000), newest(1, 1_002), newest(2, 997), newest(3, 1_000_000), newest(4, 998)]
    expect([...unfitEndpoints(begun(1_000), second, 0, closeInterval)]).toEqual([2, 3])
  })
})
