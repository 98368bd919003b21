import { Keypair } from "@stellar/stellar-sdk"
import { describe, expect, it } from "vitest"
import { publishedEvent } from "../../../kernel/stellar/TransferEvents.ts"
import {
  addressValue,
  bytesValue,
  i128Value,
  symbolValue,
  u64Value,
  vecValue,
  type Value
} from "../../../kernel/stellar/Value.ts"
import { eventNames } from "../../../plugins/x402-batch/batchCalls.ts"
import { bytesOfHex } from "../../../plugins/x402-batch/batchCodec.ts"
import { StateCache } from "../../../plugins/x402-batch/StateCache.ts"
import { testnetUsdc as contract } from "../../../runtime/redteam/buyer.ts"

const [a, b] = ["aa".repeat(32), "bb".repeat(32)] as const
const state = { balance: 10n, totalClaimed: 0n, withdrawRequestedAt: 0, refundNonce: 0n }
const reading = (channelId: string, ledger: number, of: typeof state | "none" = state) => ({
  channelId,
  ledger,
  state: of === "none" ? undefined : of,
  readMillis: 0
})
const event = (topics: ReadonlyArray<Value>, data: Value) => publishedEvent(contract, topics, data)
const payer = addressValue(Keypair.random().publicKey())
const started = (id: string) =>
  event([symbolValue(eventNames.withdrawStarted), bytesValue(bytesOfHex(id)), payer], u64Value(1n))
const claimed = (...ids: ReadonlyArray<string>) =>
  event(
    [symbolValue(eventNames.claimed), bytesValue(bytesOfHex("00".repeat(32)))],
    vecValue(ids.map((id) => vecValue([bytesValue(bytesOfHex(id)), i128Value(1n)])))
  )
const settled = event([symbolValue(eventNames.settled), payer, payer], i128Value(1n))
const isKnown = (cache: StateCache, id: string, sequence: number) => cache.current(id, sequence) !== undefined

describe("a reading of a channel", () => {
  it("counts for its ledger and the next, and for as long as events are seen that are not of its channel", () => {
    const cache = new StateCache(contract)
    cache.store(reading(a, 100))
    expect([100, 101, 102].map((at) => isKnown(cache, a, at))).toEqual([true, true, false])
    expect(cache.askFrom(102)).toBe(100)
    cache.apply({
      events: [
        { ledger: 101, event: started(b) },
        { ledger: 102, event: settled }
      ],
      latestLedger: 102
    })
    expect([102, 103, 104].map((at) => isKnown(cache, a, at))).toEqual([true, true, false])
    expect(cache.due(102, 0)).toEqual([])
  })

  it("ends with an event of its channel in a later ledger, and is due", () => {
    for (const one of [started(a), claimed(b, a)]) {
      const cache = new StateCache(contract)
      cache.store(reading(a, 100))
      cache.apply({ events: [{ ledger: 100, event: one }], latestLedger: 100 })
      expect(isKnown(cache, a, 101), "the reading of that ledger has it").toBe(true)
      cache.apply({ events: [{ ledger: 101, event: one }], latestLedger: 101 })
      expect(isKnown(cache, a, 101)).toBe(false)
      expect(cache.due(100, 100)).toEqual([a])
      cache.store(reading(a, 101))
      expect(isKnown(cache, a, 102)).toBe(true)
    }
  })

  it("ends with an event that cannot be read", () => {
    const cache = new StateCache(contract)
    cache.store(reading(a, 100))
    cache.apply({
      events: [{ ledger: 101, event: event([symbolValue("batch_other")], i128Value(1n)) }],
      latestLedger: 101
    })
    expect(isKnown(cache, a, 101)).toBe(false)
  })

  it("of a node behind counts for its own ledger alone", () => {
    const cache = new StateCache(contract)
    cache.store(reading(a, 100))
    cache.store(reading(b, 90))
    expect([isKnown(cache, b, 91), isKnown(cache, b, 100)]).toEqual([true, false])
    cache.apply({ events: [], latestLedger: 101 })
    expect([isKnown(cache, a, 101), isKnown(cache, b, 101)]).toEqual([true, false])
    cache.store(reading(a, 99, { ...state, balance: 1n }))
    expect(cache.last(a)?.state?.balance, "an older one replaces none").toBe(10n)
  })

  it("begins anew after a rest longer than events are asked for", () => {
    const cache = new StateCache(contract)
    cache.store(reading(a, 100))
    cache.store(reading(b, 700_000))
    expect(cache.askFrom(700_001)).toBe(700_000)
    cache.apply({ events: [], latestLedger: 700_001 })
    expect([isKnown(cache, a, 700_001), isKnown(cache, b, 700_001)]).toEqual([false, true])
  })

  it("of a ledger that is no more is forgotten", () => {
    const cache = new StateCache(contract)
    cache.store(reading(a, 10_000))
    expect(isKnown(cache, a, 50)).toBe(false)
    expect(cache.store(reading(a, 50)).ledger).toBe(50)
    expect([isKnown(cache, a, 51), cache.askFrom(51)]).toEqual([true, 50])
  })

  it("is due only where the channel is there and was used", () => {
    const cache = new StateCache(contract)
    cache.store(reading(a, 100))
    cache.store(reading(b, 100, "none"))
    expect(cache.due(110, 90)).toEqual([a])
    expect(cache.due(110, 101)).toEqual([])
  })
})
