import { describe, expect, it } from "vitest"
import { decide } from "../../../../kernel/settlement/state/decide.ts"
import { queueLedgers } from "../../../../kernel/settlement/state/planSubmission.ts"
import type { Attempt } from "../../../../kernel/settlement/state/Settlement.ts"
import { absent, attempt, options, refused, settlement, snapshot } from "../lives.ts"

const long = (...attempts: ReadonlyArray<Attempt>) => ({
  ...settlement(...attempts),
  authorizationExpiresLedger: 1_060
})
/** The channel's sequence is unchanged since before the settlement. */
const idle = { snapshot: snapshot({ ledger: 1_006 }) }

describe("while the bound is open", () => {
  it("sends an attempt that was never sent [S83]", () => {
    const unsent = attempt({ sentStatus: undefined, sentLedger: undefined, taken: false })
    expect(decide(settlement(unsent), absent(1_001), options)).toEqual({ _tag: "Resend", attempt: unsent })
  })

  it.each(["TryAgainLater", "Error", "Lost"] as const)(
    "identical bytes are sent once a ledger after %s",
    (sentStatus) => {
      const one = attempt({ sentStatus })
      expect(decide(settlement(one), absent(1_000), options)).toEqual({ _tag: "Wait" })
      expect(decide(settlement(one), absent(1_001), options)).toEqual({ _tag: "Resend", attempt: one })
    }
  )

  it.each(["Pending", "Duplicate"] as const)(
    "after %s they are sent again only in the ledger after the next",
    (sentStatus) => {
      const rotated = { ...options, canSign: false }
      const one = attempt({ sentStatus })
      expect(decide(settlement(one), absent(1_001), rotated)).toEqual({ _tag: "Wait" })
      expect(decide(settlement(one), absent(1_002), rotated)).toEqual({ _tag: "Resend", attempt: one })
    }
  )

  it("the newest of several bids is what is sent again", () => {
    const second = attempt({ number: 2, inclusionStroops: 10_000n, recordedLedger: 1_002, sentLedger: 1_002 })
    expect(decide(settlement(attempt(), second), absent(1_004), options)).toEqual({ _tag: "Resend", attempt: second })
  })

  it("a queued attempt is outbid once, tenfold", () => {
    expect(decide(settlement(), absent(1_002), options)).toEqual({ _tag: "Bid", inclusionStroops: 2_000n })
    const second = attempt({ number: 2, inclusionStroops: 2_000n, recordedLedger: 1_002, sentLedger: 1_004 })
    expect(decide(settlement(attempt(), second), absent(1_004), options)).toEqual({ _tag: "Wait" })
  })

  it("the bid rises to its ceiling once it has been unseen for four ledgers, and no further", () => {
    const second = attempt({
      number: 2,
      inclusionStroops: 2_000n,
      recordedLedger: 1_002,
      sentLedger: 1_002 + queueLedgers
    })
    const unseen = absent(1_002 + queueLedgers, idle)
    expect(decide(settlement(attempt(), second), unseen, options)).toEqual({ _tag: "Bid", inclusionStroops: 10_000n })
    const most = attempt({ number: 3, inclusionStroops: 10_000n, recordedLedger: 1_006, sentLedger: 1_011 })
    expect(decide(settlement(attempt(), second, most), absent(1_011, idle), options)).toEqual({ _tag: "Wait" })
  })

  it("an insufficient fee raises the bid immediately, up to the ceiling, without cancelling", () => {
    const first = refused("txInsufficientFee")
    expect(decide(long(first), absent(1_001), options)).toEqual({ _tag: "Bid", inclusionStroops: 2_000n })
    const second = refused("txInsufficientFee", { number: 2, inclusionStroops: 2_000n, recordedLedger: 1_001 })
    expect(decide(long(first, second), absent(1_001), options)).toEqual({ _tag: "Bid", inclusionStroops: 10_000n })
    const third = refused("txInsufficientFee", {
      number: 3,
      inclusionStroops: 10_000n,
      recordedLedger: 1_002,
      sentLedger: 1_019
    })
    expect(decide(long(first, second, third), absent(1_020, idle), options)).toEqual({ _tag: "Resend", attempt: third })
  })

  it("a full queue, or a refusal after a node accepted it, raises the bid; a refusal alone does not", () => {
    const unseen = absent(1_000 + queueLedgers, idle)
    const bid = { _tag: "Bid", inclusionStroops: 2_000n }
    expect(decide(long(attempt({ sentStatus: "TryAgainLater", taken: false })), unseen, options)).toEqual(bid)
    expect(decide(long(refused("txInternalError", { taken: true })), unseen, options)).toEqual(bid)
    expect(decide(long(refused("txInternalError")), unseen, options)._tag).toBe("Resend")
  })

  it("a ceiling that leaves less than tenfold is bid whole", () => {
    const first = refused("txInsufficientFee")
    expect(decide(long(first), absent(1_001), { ...options, inclusionStroopsMax: 350n })).toEqual({
      _tag: "Bid",
      inclusionStroops: 350n
    })
  })

  it("the channel is asked about when a number is refused, and when nothing has been seen for four ledgers", () => {
    expect(decide(settlement(refused("txBadSeq")), absent(1_001), options)).toEqual({ _tag: "ReadSnapshot" })
    expect(decide(settlement(), absent(1_003), options)).not.toEqual({ _tag: "ReadSnapshot" })
    expect(decide(settlement(), absent(1_004), options)).toEqual({ _tag: "ReadSnapshot" })
  })

  it.each(["txMalformed", "txBadAuth", "txBadAuthExtra", "txSorobanInvalid"])(
    "cancels a permanent refusal (%s) after six ledgers if time remains",
    (code) => {
      const one = refused(code, { sentLedger: 1_005 })
      expect(decide(long(one), absent(1_005, idle), options)).toEqual({ _tag: "Wait" })
      expect(decide(long(one), absent(1_006, idle), options)).toEqual({ _tag: "Cancel" })
      expect(decide(settlement(one), absent(1_006, idle), options)._tag).toBe("Resend")
    }
  )

  it("cancels nothing that a node accepted, may have accepted, or refused temporarily", () => {
    for (const code of [
      "txInsufficientFee",
      "txBadSeq",
      "txInsufficientBalance",
      "txNoAccount",
      "txTooLate",
      "unknown"
    ])
      expect(decide(long(refused(code)), absent(1_030, idle), options)).not.toEqual({ _tag: "Cancel" })
    expect(decide(long(refused("txMalformed", { taken: true })), absent(1_030, idle), options)).not.toEqual({
      _tag: "Cancel"
    })
    const queued = attempt({ number: 2 })
    expect(decide(long(refused("txMalformed"), queued), absent(1_030, idle), options)).not.toEqual({ _tag: "Cancel" })
  })

  it("a recorded no-op is resent, and bids end", () => {
    const cancel = attempt({ number: 2, kind: "cancel", innerHash: "no-op", sentLedger: 1_007, recordedLedger: 1_007 })
    const one = refused("txMalformed")
    expect(decide(settlement(one, cancel), absent(1_007), options)).toEqual({ _tag: "Wait" })
    expect(decide(settlement(one, cancel), absent(1_009), options)).toEqual({ _tag: "Resend", attempt: cancel })
    const unsent = { ...cancel, sentLedger: undefined, sentStatus: undefined }
    expect(decide(settlement(one, unsent), absent(1_007), options)).toEqual({ _tag: "Resend", attempt: unsent })
  })

  it("after a key rotation, recorded attempts are resent and nothing is signed", () => {
    const rotated = { ...options, canSign: false }
    expect(decide(long(), absent(1_003), rotated)).toEqual({ _tag: "Resend", attempt: attempt() })
    const one = refused("txMalformed")
    expect(decide(long(one), absent(1_020, idle), rotated)).toEqual({ _tag: "Resend", attempt: one })
    const cheap = refused("txInsufficientFee")
    expect(decide(long(cheap), absent(1_001), rotated)).toEqual({ _tag: "Resend", attempt: cheap })
  })
})
