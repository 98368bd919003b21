import { Option } from "effect"
import { describe, expect, it } from "vitest"
import type { ExecutedTransaction } from "../../../kernel/ledger/Executed.ts"
import {
  type Attempt,
  type ChannelAccount,
  decide,
  isOpen,
  type Observation,
  type OpenSettlement,
  queueLedgers
} from "../../../kernel/settlement/Settlement.ts"
import { makeRandom } from "../../simulation/random.ts"

const recordedLedger = 1_000
const expires = 1_012
const ceiling = { inclusionStroopsMax: 10_000n }

const attempt = (changes: Partial<Attempt> = {}): Attempt => ({
  number: 1,
  kind: "payment",
  innerHash: "inner",
  outerHash: "outer",
  envelope: "AAAA",
  inclusionStroops: 200n,
  recordedLedger,
  sentStatus: "Pending",
  sentLedger: recordedLedger,
  ...changes
})

const settlement = (...attempts: ReadonlyArray<Attempt>): OpenSettlement => ({
  innerHash: "inner",
  channelSequence: 7n,
  authorizationExpiresLedger: expires,
  recordedLedger,
  attempts: attempts.length === 0 ? [attempt()] : attempts
})

const absent = (
  latestLedger: number,
  changes: Partial<Extract<Observation, { _tag: "Absent" }>> = {}
): Observation => ({
  _tag: "Absent",
  latestLedger,
  oldestLedger: 1,
  channel: undefined,
  ...changes
})

const account = (changes: Partial<ChannelAccount> = {}): ChannelAccount => ({
  sequence: 6n,
  ledger: expires + 1,
  sequenceLedger: undefined,
  authorizationLedger: undefined,
  ...changes
})

const executed = (changes: Partial<ExecutedTransaction> = {}): ExecutedTransaction => ({
  ledger: 1_003,
  closedAtSeconds: 1_767_000_000,
  innerHash: "inner",
  outerHash: "outer",
  feeChargedStroops: 4_321n,
  succeeded: true,
  transfers: Option.none(),
  ...changes
})

const endOf = (one: OpenSettlement, seen: Observation) => {
  const decision = decide(one, seen, ceiling)
  return decision._tag === "End" ? decision.outcome : undefined
}

const statuses = ["Pending", "Duplicate", "TryAgainLater", "Error", "Lost", undefined] as const

describe("a settlement is decided by the ledger", () => {
  it("treats prepared and submitted alike, and no other state as open", () => {
    expect((["prepared", "submitted", "settled", "failed", "expired", "unresolved"] as const).filter(isOpen)).toEqual([
      "prepared",
      "submitted"
    ])
  })

  it("settles with what moved and what the ledger charged, whatever was answered to the submission [S83, S90]", () => {
    for (const sentStatus of statuses) {
      expect(
        endOf(settlement(attempt({ sentStatus })), {
          _tag: "Included",
          kind: "payment",
          executed: executed(),
          moved: 10n
        })
      ).toEqual({
        state: "settled",
        ledger: 1_003,
        closedAtSeconds: 1_767_000_000,
        moved: 10n,
        feeChargedStroops: 4_321n,
        reason: undefined,
        message: undefined,
        channel: { sequenceUsed: true, ledger: 1_003 }
      })
    }
  })

  it("fails with its charge, and says until when the authorization lives, when the transaction failed [S271]", () => {
    const outcome = endOf(settlement(), {
      _tag: "Included",
      kind: "payment",
      executed: executed({ succeeded: false }),
      moved: undefined
    })
    expect(outcome).toMatchObject({
      state: "failed",
      feeChargedStroops: 4_321n,
      reason: "settle_ledger_transaction_failed",
      channel: { sequenceUsed: true }
    })
    expect(outcome?.message).toContain(`until ledger ${expires}`)
  })

  it("fails with the charge of the no-op when that landed", () => {
    expect(
      endOf(settlement(), { _tag: "Included", kind: "cancel", executed: executed(), moved: undefined })
    ).toMatchObject({
      state: "failed",
      feeChargedStroops: 4_321n,
      reason: "settle_ledger_transaction_failed"
    })
  })

  it("leaves a success without the promised movement to an operator", () => {
    expect(
      endOf(settlement(), { _tag: "Included", kind: "payment", executed: executed(), moved: undefined })
    ).toMatchObject({
      state: "unresolved",
      feeChargedStroops: 4_321n,
      channel: { sequenceUsed: true }
    })
  })

  it("expires only when one node that remembers the record has seen the bound pass [S90]", () => {
    const outcome = endOf(settlement(), absent(expires, { oldestLedger: recordedLedger }))
    expect(outcome).toMatchObject({
      state: "expired",
      feeChargedStroops: 0n,
      moved: undefined,
      reason: "settle_ledger_transaction_expired",
      channel: { sequenceUsed: false, ledger: expires }
    })
    expect(endOf(settlement(), absent(expires - 1))).toBeUndefined()
    expect(decide(settlement(), absent(expires, { oldestLedger: recordedLedger + 1 }), ceiling)).toEqual({
      _tag: "AskChannel"
    })
  })

  it("asks the channel again while the node that told of it has not seen the bound pass", () => {
    const channel = account({ ledger: expires - 1 })
    expect(
      decide(settlement(), absent(expires + 5_000, { oldestLedger: recordedLedger + 1, channel }), ceiling)
    ).toEqual({ _tag: "AskChannel" })
  })

  it("expires beyond the node's memory when the channel's sequence was never used", () => {
    expect(endOf(settlement(), absent(expires + 5_000, { oldestLedger: expires, channel: account() }))).toMatchObject({
      state: "expired",
      channel: { sequenceUsed: false }
    })
  })

  it("settles beyond the node's memory when the authorization was used in the ledger in which the channel was", () => {
    const channel = account({ sequence: 7n, sequenceLedger: 1_004, authorizationLedger: 1_004 })
    expect(endOf(settlement(), absent(expires + 1, { oldestLedger: expires, channel }))).toMatchObject({
      state: "settled",
      ledger: 1_004,
      channel: { sequenceUsed: true }
    })
  })

  it("waits for a node that remembers, and then leaves what landed to an operator", () => {
    const channels = [
      account({ sequence: 7n }),
      account({ sequence: 8n, sequenceLedger: 1_004, authorizationLedger: 1_004 }),
      account({ sequence: 7n, sequenceLedger: 1_005, authorizationLedger: 1_004 }),
      account({ sequence: undefined })
    ]
    for (const channel of channels) {
      expect(decide(settlement(), absent(expires + 700, { oldestLedger: expires, channel }), ceiling)).toEqual({
        _tag: "Wait"
      })
      expect(endOf(settlement(), absent(expires + 720, { oldestLedger: expires, channel }))).toMatchObject({
        state: "unresolved",
        channel: { sequenceUsed: undefined }
      })
    }
  })

  it("fails early when the channel's number was used and a node that saw that does not know the transaction", () => {
    const channel = account({ sequence: 7n, ledger: 1_005 })
    expect(endOf(settlement(), absent(1_005, { channel }))).toMatchObject({
      state: "failed",
      reason: "settle_ledger_transaction_failed",
      feeChargedStroops: 0n,
      channel: { sequenceUsed: undefined, ledger: 1_005 }
    })
    // A node that lags behind that ledger, or forgets the record, says nothing of the kind.
    expect(endOf(settlement(), absent(1_004, { channel }))).toBeUndefined()
    expect(endOf(settlement(), absent(1_005, { channel, oldestLedger: recordedLedger + 1 }))).toBeUndefined()
    expect(endOf(settlement(), absent(1_005, { channel: account({ sequence: 6n, ledger: 1_005 }) }))).toBeUndefined()
  })
})

describe("while the bound is open", () => {
  it("sends an attempt that was never sent [S83]", () => {
    expect(
      decide(settlement(attempt({ sentStatus: undefined, sentLedger: undefined })), absent(1_001), ceiling)
    ).toEqual({ _tag: "Resend" })
  })

  it.each(statuses.slice(0, 5))("sends identical bytes once a ledger after %s", (sentStatus) => {
    expect(decide(settlement(attempt({ sentStatus })), absent(1_000), ceiling)).toEqual({ _tag: "Wait" })
    expect(decide(settlement(attempt({ sentStatus })), absent(1_001), ceiling)).toEqual({ _tag: "Resend" })
  })

  it("outbids a queued attempt once, tenfold", () => {
    expect(decide(settlement(), absent(1_002), ceiling)).toEqual({ _tag: "Bid", inclusionStroops: 2_000n })
    const second = attempt({ number: 2, inclusionStroops: 2_000n, recordedLedger: 1_002, sentLedger: 1_004 })
    expect(decide(settlement(attempt(), second), absent(1_004), ceiling)).toEqual({ _tag: "Wait" })
  })

  it("raises the bid to its ceiling once it has been unseen for four ledgers, and no further", () => {
    const second = attempt({
      number: 2,
      inclusionStroops: 2_000n,
      recordedLedger: 1_002,
      sentLedger: 1_002 + queueLedgers
    })
    expect(decide(settlement(attempt(), second), absent(1_002 + queueLedgers), ceiling)).toEqual({
      _tag: "Bid",
      inclusionStroops: 10_000n
    })
    const most = attempt({ number: 3, inclusionStroops: 10_000n, recordedLedger: 1_006, sentLedger: 1_011 })
    expect(decide(settlement(attempt(), second, most), absent(1_011), ceiling)).toEqual({ _tag: "Wait" })
  })

  it("asks the channel when every answer was a refusal, and cancels only then and with time left", () => {
    const long = {
      ...settlement(attempt({ sentStatus: "Error", sentLedger: 1_005 })),
      authorizationExpiresLedger: 1_060
    }
    const unused = account({ ledger: 1_006 })
    expect(decide(long, absent(1_001), ceiling)).not.toEqual({ _tag: "AskChannel" })
    expect(decide(long, absent(1_002), ceiling)).toEqual({ _tag: "AskChannel" })
    expect(decide(long, absent(1_005, { channel: unused }), ceiling)).toEqual({ _tag: "Wait" })
    expect(decide(long, absent(1_006, { channel: unused }), ceiling)).toEqual({ _tag: "Cancel" })
    expect(decide({ ...long, authorizationExpiresLedger: 1_012 }, absent(1_006, { channel: unused }), ceiling)).toEqual(
      { _tag: "Resend" }
    )
    for (const sentStatus of ["Pending", "Duplicate", "TryAgainLater", "Lost"] as const) {
      expect(
        decide({ ...settlement(attempt({ sentStatus })), authorizationExpiresLedger: 1_060 }, absent(1_006), ceiling)
      ).not.toEqual({ _tag: "Cancel" })
    }
  })

  it("sends the no-op once a ledger once it is recorded, and bids no more", () => {
    const cancel = attempt({ number: 2, kind: "cancel", innerHash: "no-op", sentLedger: 1_007, recordedLedger: 1_007 })
    const refused = attempt({ sentStatus: "Error" })
    expect(decide(settlement(refused, cancel), absent(1_007), ceiling)).toEqual({ _tag: "Wait" })
    expect(decide(settlement(refused, cancel), absent(1_008), ceiling)).toEqual({ _tag: "Resend" })
    expect(
      decide(settlement(refused, { ...cancel, sentLedger: undefined, sentStatus: undefined }), absent(1_007), ceiling)
    ).toEqual({ _tag: "Resend" })
  })
})

it("ends nothing by answers of the queue, in any order, before the bound [S83, S90]", () => {
  const seed = 20_261_121
  const { chance, int, pick } = makeRandom(seed)
  for (let round = 0; round < 5_000; round++) {
    const attempts = Array.from({ length: int(1, 4) }, (_, index) => {
      const sentStatus = pick(statuses)
      const at = recordedLedger + int(0, 10)
      return attempt({
        number: index + 1,
        kind: index > 0 && chance(0.2) ? "cancel" : "payment",
        inclusionStroops: BigInt(pick([200, 2_000, 10_000])),
        recordedLedger: at,
        sentStatus,
        sentLedger: sentStatus === undefined ? undefined : at + int(0, 3)
      })
    })
    const one = settlement(...attempts)
    const seen = absent(recordedLedger + int(-3, 11), {
      oldestLedger: int(1, recordedLedger + 20),
      channel: chance(0.3)
        ? account({ sequence: pick([5n, 6n, undefined]), ledger: recordedLedger + int(0, 20) })
        : undefined
    })
    const decision = decide(one, seen, ceiling)
    expect(decision._tag, `seed ${seed}, round ${round}`).not.toBe("End")
    if (decision._tag === "Bid") expect(decision.inclusionStroops).toBeLessThanOrEqual(ceiling.inclusionStroopsMax)
  }
})
