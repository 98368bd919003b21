import { describe, expect, it } from "vitest"
import { decide, isDue, unresolvedAfterLedgers } from "../../../../kernel/settlement/state/decide.ts"
import {
  isOpen,
  type Evidence,
  type OpenSettlement,
  type Search
} from "../../../../kernel/settlement/state/Settlement.ts"
import { makeRandom } from "../../../simulation/random.ts"
import {
  absent,
  attempt,
  cancelled,
  executed,
  expires,
  failed,
  included,
  options,
  paid,
  recordedLedger,
  refused,
  search,
  settlement,
  snapshot,
  statuses
} from "../lives.ts"

const endOf = (one: OpenSettlement, evidence: Evidence) => {
  const decision = decide(one, evidence, options)
  return decision._tag === "End" ? decision.outcome : undefined
}
const passed = (changes = {}) => snapshot({ sequence: 7n, ...changes })
const freed: OpenSettlement = { ...settlement(), channelHeld: false }
const alive = `the authorization lives until ledger ${expires}`

const elsewhere = (ledger: number, isOurs = false) =>
  ({ _tag: "Elsewhere", ledger, transaction: "theirs", isOurs }) as const

describe("a decision by proof from the ledger", () => {
  it("ends what needs no authorization by its own transaction alone", () => {
    const none = (changes = {}) => snapshot({ nonce: "none", ...changes })
    expect(endOf(settlement(), { ...included(failed), snapshot: none() })?.state).toBe("failed")
    // Its number is used and its transaction not seen: it may have moved the money, until every ledger was read.
    const whole = { fromLedger: recordedLedger - 24, toLedger: expires }
    const unseen = { ...absent(1_004), snapshot: none({ sequence: 7n }) }
    expect(decide(settlement(), unseen, options)._tag).toBe("Search")
    const searched = (changes: Partial<Search>) =>
      decide(settlement(), { ...unseen, search: search({ ...whole, ...changes }) }, options)
    expect(searched({})._tag).toBe("Free")
    expect(searched({ numberUsedBy: paid })).toMatchObject({ outcome: { state: "settled" } })
    expect(searched({ numberUsedBy: "elsewhere" })).toMatchObject({ outcome: { state: "failed" } })
    expect(searched({ numberUsedBy: "elsewhere", toLedger: expires - 1 })._tag).toBe("Free")
    const late = { ...absent(expires), snapshot: none({ ledger: expires, sequence: 6n }) }
    expect(endOf(settlement(), late)?.state).toBe("expired")
  })

  it("treats prepared and submitted alike, and no other state as open", () => {
    expect((["prepared", "submitted", "settled", "failed", "expired", "unresolved"] as const).filter(isOpen)).toEqual([
      "prepared",
      "submitted"
    ])
  })

  it("settles with the transferred amount and charged fee, whatever submission answered [S83, S90]", () => {
    for (const sentStatus of statuses) {
      expect(endOf(settlement(attempt({ sentStatus })), included(paid))).toEqual({
        state: "settled",
        transaction: "inner",
        ledger: 1_003,
        closedAtSeconds: 1_767_000_000,
        amountTransferred: 10n,
        feeChargedStroops: 4_321n,
        feeUnknown: false,
        reason: undefined,
        message: undefined,
        channel: { sequenceUsed: true, ledger: 1_003 }
      })
    }
  })

  it("a success without the promised transfer is unresolved", () => {
    expect(endOf(settlement(), included({ ...paid, amountTransferred: undefined }))).toMatchObject({
      state: "unresolved",
      feeChargedStroops: 4_321n,
      channel: { sequenceUsed: true }
    })
  })

  it.each([
    ["a payment that failed", failed],
    ["a no-op that landed", cancelled]
  ])("asks what became of the nonce before it ends %s", (_, landed) => {
    expect(decide(settlement(), included(landed), options)).toEqual({ _tag: "ReadSnapshot" })
    const unspent = endOf(settlement(), included(landed, { snapshot: passed() }))
    expect(unspent).toMatchObject({
      state: "failed",
      feeChargedStroops: 4_321n,
      reason: "settle_ledger_transaction_failed",
      transaction: landed.executed.innerHash,
      channel: { sequenceUsed: true, ledger: 1_003 }
    })
    expect(unspent?.message).toContain(alive)
  })

  it("ignores an unspent nonce read before the failure or after expiry", () => {
    const early = included(failed, { snapshot: passed({ ledger: 1_002 }) })
    expect(decide(settlement(), early, options)).toEqual({ _tag: "Free", ledger: 1_003 })
    expect(decide(freed, early, options)).toEqual({ _tag: "Wait" })
    const late = included(failed, { snapshot: passed({ ledger: expires + 1 }) })
    expect(decide(settlement(), late, options)).toEqual({
      _tag: "Search",
      fromLedger: recordedLedger,
      toLedger: expires,
      before: 24
    })
  })

  it("rebuilds an overtaken transaction while nothing landed and time remains", () => {
    const may = { ...options, canRebuild: true }
    const overtaken = { snapshot: passed({ ledger: 1_005 }) }
    const seen = absent(1_005, overtaken)
    const rebuild = { _tag: "Rebuild", ledger: 1_005 }
    expect(decide(settlement(refused("txBadSeq")), seen, may)).toEqual(rebuild)
    expect(decide({ ...settlement(refused("txBadSeq")), channelHeld: false }, seen, may)).toEqual(rebuild)
    // No such proof: it may have landed and failed, so the transaction that used the number is searched for.
    for (const one of [
      settlement(),
      settlement(refused("txInternalError")),
      settlement(refused("txBadSeq"), attempt()),
      settlement(attempt(), refused("txBadSeq"))
    ]) {
      expect(decide(one, seen, may)).toEqual({ _tag: "Search", fromLedger: recordedLedger, toLedger: 1_005, before: 0 })
      const found = (numberUsedBy: Search["numberUsedBy"]) =>
        decide(one, absent(1_005, { ...overtaken, search: search({ toLedger: 1_005, numberUsedBy }) }), may)
      expect(found("elsewhere")).toEqual(rebuild)
      expect(found(undefined)).toMatchObject({ _tag: "End", outcome: { state: "failed", feeUnknown: true } })
      expect(found(failed)).toMatchObject({ _tag: "End", outcome: { state: "failed", transaction: "inner" } })
    }
    // Never while the number is free, the nonce used, the authorization nearly dead, a no-op out, or no key at hand.
    const bad = settlement(refused("txBadSeq"))
    const never = (one: typeof bad, evidence: Parameters<typeof absent>[1], how = may) =>
      expect(decide(one, absent(1_005, evidence), how)._tag).not.toBe("Rebuild")
    never(bad, { snapshot: snapshot() })
    never(bad, { snapshot: passed({ ledger: 1_005, nonce: 1_004 }) })
    never(bad, { snapshot: passed({ ledger: expires - 3 }) })
    never(bad, { snapshot: passed({ ledger: expires + 1 }) })
    never(settlement(refused("txBadSeq"), attempt({ kind: "cancel", sentCode: "txBadSeq", taken: false })), overtaken)
    never(bad, overtaken, options)
  })

  it("settles a failed transaction by another of ours, charging both", () => {
    const spent = { snapshot: passed({ nonce: 1_002 }) }
    expect(decide(settlement(), included(failed, spent), options)).toEqual({
      _tag: "Search",
      fromLedger: 1_002,
      toLedger: 1_002,
      before: 0
    })
    const other = executed({ ledger: 1_002, innerHash: "other", feeChargedStroops: 1_000n })
    const found = search({
      fromLedger: 1_002,
      toLedger: 1_002,
      spending: { _tag: "Ours", executed: other, amountTransferred: 10n }
    })
    expect(endOf(settlement(), included(failed, { ...spent, search: found }))).toMatchObject({
      state: "settled",
      transaction: "other",
      ledger: 1_002,
      amountTransferred: 10n,
      feeChargedStroops: 5_321n,
      channel: { sequenceUsed: true, ledger: 1_003 }
    })
  })

  it("reports a front-run authorization as spent, not as live [S83]", () => {
    const spent = { snapshot: passed({ nonce: 1_003 }) }
    const found = search({ fromLedger: 1_003, toLedger: 1_003, spending: elsewhere(1_003) })
    const outcome = endOf(settlement(), included(failed, { ...spent, search: found }))
    expect(outcome).toMatchObject({ state: "failed", reason: "settle_ledger_authorization_spent" })
    expect(outcome?.message).not.toContain("lives until")
  })

  it("a spent nonce without its transaction ends nothing", () => {
    const spent = { snapshot: passed({ nonce: 1_003 }) }
    for (const toLedger of [1_002, 1_003]) {
      const found = search({ fromLedger: 1_003, toLedger })
      expect(endOf(freed, included(failed, { ...spent, search: found }))).toBeUndefined()
      expect(endOf(freed, absent(1_006, { ...spent, search: found }))).toBeUndefined()
    }
  })

  it("settles by our earlier transaction, and ignores earlier foreign use", () => {
    const late = { snapshot: passed({ ledger: expires + 1 }) }
    const other = executed({ ledger: recordedLedger - 1, innerHash: "other", feeChargedStroops: 1_000n })
    const ours = search({ spending: { _tag: "Ours", executed: other, amountTransferred: 10n } })
    expect(endOf(freed, absent(expires + 1, { ...late, search: ours }))).toMatchObject({
      state: "settled",
      transaction: "other"
    })
    const strangers = (ledger: number) => search({ spending: elsewhere(ledger) })
    const polled = (ledger: number) => absent(expires + 1, { ...late, search: strangers(ledger) })
    expect(endOf(freed, polled(recordedLedger - 1))).toBeUndefined()
    expect(endOf(freed, polled(recordedLedger))).toMatchObject({ reason: "settle_ledger_authorization_spent" })
  })

  it("fails an expired authorization once no ledger of its life used it", () => {
    const late = { snapshot: passed({ ledger: expires + 1 }) }
    const whole = included(failed, { ...late, search: search() })
    expect(endOf(settlement(), whole)).toMatchObject({ state: "failed", reason: "settle_ledger_transaction_failed" })
    expect(endOf(settlement(), whole)?.message).not.toContain("lives until")
    expect(endOf(freed, included(failed, { ...late, search: search({ toLedger: expires - 1 }) }))).toBeUndefined()
  })
})

describe("a hash that is absent", () => {
  it("expires only with a number below its own at or past the expiry [S90]", () => {
    expect(decide(settlement(), absent(expires), options)).toEqual({ _tag: "ReadSnapshot" })
    expect(decide(settlement(), absent(expires, { snapshot: snapshot({ ledger: expires - 1 }) }), options)).toEqual({
      _tag: "ReadSnapshot"
    })
    const outcome = endOf(settlement(), absent(expires, { snapshot: snapshot({ ledger: expires }) }))
    expect(outcome).toMatchObject({
      state: "expired",
      feeChargedStroops: 0n,
      feeUnknown: false,
      amountTransferred: undefined,
      reason: "settle_ledger_transaction_expired",
      channel: { sequenceUsed: false, ledger: expires }
    })
    expect(endOf(settlement(), absent(expires - 1, { snapshot: snapshot({ ledger: expires + 5 }) }))).toBeUndefined()
  })

  it("at expiry, settles by our unrecorded transaction although its own never landed", () => {
    const spent = { snapshot: snapshot({ ledger: expires, nonce: 1_005 }) }
    expect(decide(settlement(), absent(expires, spent), options)).toEqual({
      _tag: "Search",
      fromLedger: 1_005,
      toLedger: 1_005,
      before: 0
    })
    const poll = (changes: Parameters<typeof search>[0]) =>
      absent(expires, { ...spent, search: search({ fromLedger: 1_005, toLedger: 1_005, ...changes }) })
    const other = executed({ ledger: 1_005, innerHash: "other", feeChargedStroops: 700n })
    expect(
      endOf(settlement(), poll({ spending: { _tag: "Ours", executed: other, amountTransferred: 10n } }))
    ).toMatchObject({
      state: "settled",
      transaction: "other",
      feeChargedStroops: 700n,
      feeUnknown: false,
      channel: { sequenceUsed: false, ledger: expires }
    })
    expect(decide(settlement(), poll({ toLedger: 1_004 }), options)).toEqual({ _tag: "Wait" })
  })

  it("searches the authorization's life where its nonce is read after the expiry", () => {
    const later = { snapshot: snapshot({ ledger: expires + 1 }) }
    for (const nonce of ["unspent", expires + 1] as const)
      expect(
        decide(settlement(), absent(expires, { snapshot: snapshot({ ledger: expires + 1, nonce }) }), options)
      ).toEqual({ _tag: "Search", fromLedger: recordedLedger, toLedger: expires, before: 24 })
    const poll = (changes: Partial<Search>, latest = expires + 1) =>
      decide(settlement(), absent(latest, { ...later, search: search(changes) }), options)
    const lost = executed({ ledger: recordedLedger - 3, innerHash: "other" })
    expect(poll({ spending: { _tag: "Ours", executed: lost, amountTransferred: 10n } })).toMatchObject({
      outcome: { state: "settled", transaction: "other", channel: { sequenceUsed: false } }
    })
    expect(poll({ spending: elsewhere(1_005) })).toMatchObject({
      outcome: { reason: "settle_ledger_authorization_spent" }
    })
    // A use before the record was another authorization's.
    expect(poll({ spending: elsewhere(recordedLedger - 1) })).toMatchObject({ outcome: { state: "expired" } })
    expect(poll({})).toMatchObject({ outcome: { state: "expired" } })
    // A part of the history may show more in the next turn; if no node has any of it, no turn will.
    expect(poll({ toLedger: expires - 1 }, expires + 25)._tag).toBe("Wait")
    expect(poll({ toLedger: expires - 1 }, expires + 720)).toMatchObject({ outcome: { state: "expired" } })
    const none = { toLedger: recordedLedger - 1 }
    expect([poll(none, expires + 23)._tag, poll(none, expires + 24)._tag]).toEqual(["Wait", "End"])
  })

  it("at expiry, fails if another transaction spent the nonce, waits if not found", () => {
    const spent = { snapshot: snapshot({ ledger: expires, nonce: 1_005 }) }
    const read = (latestLedger: number, changes: Parameters<typeof search>[0]) =>
      absent(latestLedger, { ...spent, search: search({ fromLedger: 1_005, toLedger: 1_005, ...changes }) })
    expect(endOf(settlement(), read(expires, { spending: elsewhere(1_005) }))).toMatchObject({
      state: "failed",
      reason: "settle_ledger_authorization_spent",
      feeChargedStroops: 0n,
      feeUnknown: false,
      channel: { sequenceUsed: false, ledger: expires }
    })
    expect(decide(settlement(), read(expires, {}), options)).toEqual({ _tag: "Wait" })
    expect(endOf(settlement(), read(expires + 720, {}))?.state).toBe("unresolved")
  })

  it("does not decide by a nonce read before its sequence was used", () => {
    const before = { snapshot: snapshot({ ledger: 1_002, nonce: 1_001 }) }
    expect(decide(freed, absent(1_006, before), options)).toEqual({ _tag: "Wait" })
  })

  it("rereads a channel sequence that does not precede the settlement's", () => {
    const outcome = endOf(settlement(), absent(expires, { snapshot: snapshot({ ledger: expires, sequence: 4n }) }))
    expect(outcome).toMatchObject({ state: "expired", channel: { sequenceUsed: undefined } })
  })

  it("fails if its sequence was used and the nonce is unspent before expiry", () => {
    const outcome = endOf(settlement(), absent(1_005, { snapshot: passed() }))
    expect(outcome).toMatchObject({
      state: "failed",
      transaction: undefined,
      reason: "settle_ledger_transaction_failed",
      feeChargedStroops: 0n,
      feeUnknown: true,
      channel: { sequenceUsed: undefined, ledger: 1_005 }
    })
    expect(outcome?.message).toContain(alive)
    expect(endOf(settlement(), absent(expires, { snapshot: passed({ ledger: expires }) }))?.state).toBe("failed")
  })

  it("waits for a node as recent as the one that reported the sequence", () => {
    expect(decide(settlement(), absent(1_004, { snapshot: passed() }), options)).toEqual({
      _tag: "Free",
      ledger: 1_005
    })
    const soon = absent(1_004, { snapshot: passed({ ledger: expires - 4 }) })
    expect(endOf(settlement(), soon)?.state).toBe("failed")
  })

  it("a used sequence and spent nonce need a search: ours may have landed", () => {
    const spent = { snapshot: passed({ nonce: 1_004 }) }
    expect(decide(settlement(), absent(1_005, spent), options)).toEqual({
      _tag: "Search",
      fromLedger: 1_004,
      toLedger: 1_004,
      before: 0
    })
    const found = (changes: Parameters<typeof search>[0]) =>
      absent(1_005, { ...spent, search: search({ fromLedger: 1_004, toLedger: 1_004, ...changes }) })
    expect(
      endOf(
        settlement(),
        found({ numberUsedBy: paid, spending: { _tag: "Ours", executed: paid.executed, amountTransferred: 10n } })
      )
    ).toMatchObject({ state: "settled", transaction: "inner", feeChargedStroops: 4_321n, feeUnknown: false })
    const other = executed({ innerHash: "other" })
    expect(
      endOf(settlement(), found({ spending: { _tag: "Ours", executed: other, amountTransferred: 10n } }))
    ).toMatchObject({
      state: "settled",
      transaction: "other",
      feeUnknown: true
    })
    expect(endOf(settlement(), found({ spending: elsewhere(1_004) }))).toMatchObject({
      state: "failed",
      reason: "settle_ledger_authorization_spent"
    })
  })

  it("frees the channel once its sequence is used, and waits for proof", () => {
    const hidden = { snapshot: passed({ ledger: expires + 1 }), search: search({ toLedger: 1_004 }) }
    expect(decide(settlement(), absent(expires + 1, hidden), options)).toEqual({ _tag: "Free", ledger: expires + 1 })
    expect(decide(freed, absent(expires + 1, hidden), options)).toEqual({ _tag: "Wait" })
    expect(decide(freed, absent(1_006), options)).toEqual({ _tag: "ReadSnapshot" })
    expect(decide(freed, absent(1_006, { snapshot: snapshot() }), options)).toEqual({ _tag: "Wait" })
  })

  it("after expiry, fails if another transaction used its sequence, none the nonce", () => {
    const late = { snapshot: passed({ ledger: expires + 1 }) }
    const seen = absent(expires + 1, { ...late, search: search({ numberUsedBy: "elsewhere" }) })
    expect(endOf(settlement(), seen)).toMatchObject({ state: "failed", feeUnknown: true })
    expect(endOf(freed, absent(expires + 1, { ...late, search: search() }))).toBeUndefined()
  })

  it.each([
    ["nothing was found", passed({ ledger: expires + 1 }), search()],
    ["history is gone", passed({ ledger: expires + 1 }), search({ toLedger: recordedLedger - 1 })],
    ["its scheme is off", passed({ nonce: "unknown" }), undefined],
    ["the spending is not shown", passed({ nonce: 1_004 }), search({ fromLedger: 1_004, toLedger: 1_004 })],
    ["its channel's account is gone", snapshot({ sequence: undefined, ledger: expires + 1 }), search()]
  ])("is unresolved with its reservation charged when %s", (_, known, polled) => {
    const after = (latest: number) => absent(latest, { snapshot: known, search: polled })
    expect(endOf(freed, after(expires + unresolvedAfterLedgers - 1))).toBeUndefined()
    expect(endOf(freed, after(expires + unresolvedAfterLedgers))).toMatchObject({
      state: "unresolved",
      feeUnknown: true,
      transaction: undefined
    })
  })
})

describe("polling of an open settlement", () => {
  it("a sent settlement is polled from the ledger after its record", () => {
    expect(isDue(settlement(), { sequence: recordedLedger, millisSinceRecord: 60_000 })).toBe(false)
    expect(isDue(settlement(), { sequence: recordedLedger + 1, millisSinceRecord: 0 })).toBe(true)
  })

  it("an unsent settlement is polled after two seconds or two ledgers", () => {
    const unsent = settlement(attempt({ sentStatus: undefined, sentLedger: undefined, taken: false }))
    expect(isDue(unsent, { sequence: recordedLedger + 1, millisSinceRecord: 1_999 })).toBe(false)
    expect(isDue(unsent, { sequence: recordedLedger, millisSinceRecord: 2_000 })).toBe(true)
    expect(isDue(unsent, { sequence: recordedLedger + 2, millisSinceRecord: -60_000 })).toBe(true)
  })

  it("a settlement recorded in a future ledger is polled regardless of the clock", () => {
    const ahead = { sentStatus: undefined, sentLedger: undefined, taken: false, recordedLedger: recordedLedger + 9 }
    const now = { sequence: recordedLedger + 4, millisSinceRecord: -3_600_000 }
    expect(isDue(settlement(attempt(ahead)), now)).toBe(true)
    expect(isDue(settlement(attempt({ ...ahead, recordedLedger: recordedLedger + 8 })), now)).toBe(false)
    const sent = { ...settlement(), recordedLedger: recordedLedger + 9 }
    expect(isDue(sent, now)).toBe(true)
  })
})

it("submission answers in any order end nothing before expiry [S83, S90]", () => {
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
        sentCode:
          sentStatus === "Error" ? pick(["txBadSeq", "txMalformed", "txInsufficientFee", "unknown"]) : undefined,
        taken: chance(0.5),
        sentLedger: sentStatus === undefined ? undefined : at + int(0, 3)
      })
    })
    const seen = absent(recordedLedger + int(-3, 11), {
      snapshot: chance(0.3)
        ? snapshot({ sequence: pick([5n, 6n, undefined]), ledger: recordedLedger + int(0, 11) })
        : undefined
    })
    const decision = decide(settlement(...attempts), seen, options)
    expect(decision._tag, `seed ${seed}, round ${round}`).not.toBe("End")
    if (decision._tag === "Bid") expect(decision.inclusionStroops).toBeLessThanOrEqual(options.inclusionStroopsMax)
  }
})
