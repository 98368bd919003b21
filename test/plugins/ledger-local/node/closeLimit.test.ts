// Contracts that need more machine time than their instructions suggest: a ledger applies as many as its time allows
// and closes. The rest waits in its order without aging, and everything is applied in the end, or expires.
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import type { Keypair } from "@stellar/stellar-sdk"
import { CloseLimit, TimeIsUp } from "../../../../plugins/ledger-local/node/CloseLimit.ts"
import { PENDING_LEDGERS_MAX } from "../../../../plugins/ledger-local/node/Queue.ts"
import { LocalLedger, type LocalLedgerOptions } from "../../../../plugins/ledger-local/LocalLedger.ts"
import type { ContractRuntime } from "../../../../plugins/ledger-local/engine/host/HostTypes.ts"
import type { Frame } from "../../../../plugins/ledger-local/transaction/Frame.ts"
import { outcome, submit } from "../contracts.ts"
import { contract, leb, signed, VOID_BODY } from "../engine/wasm/assemble.ts"
import { apply, fund, ledgerLayer, Operation, send, transaction } from "../support.ts"

const PAGES = 40
const i32 = (value: number): Array<number> => [0x41, ...signed(BigInt(value))]
/** Writes to all of its memory: 2.5 MB for less than a million instructions. */
const filling = contract({
  body: [...i32(0), ...i32(7), ...i32(PAGES * 65_536), 0xfc, 0x0b, 0, ...VOID_BODY],
  memory: [0, ...leb(PAGES)]
})
const INSTRUCTIONS = 2_000_000

/** Contracts of `count` accounts, ready to be called. */
const deployed = Effect.fnUntraced(function* (count: number) {
  const ledger = yield* LocalLedger
  const sources: Array<Keypair> = []
  for (let i = 0; i < count; i++) sources.push(yield* fund(`filler ${i}`))
  yield* submit(sources[0]!, filling, "upload", 100_000_000)
  yield* ledger.close
  for (const source of sources) yield* submit(source, filling, "create", 10_000_000)
  while (ledger.ledger.queue.size > 0) yield* ledger.close
  return sources
})

/** A separate clock, which each call of a contract advances by `callMillis`. */
const timed = Effect.fnUntraced(function* (millis: number, callMillis: number) {
  const { ledger } = yield* LocalLedger
  const contracts = ledger.options.contracts!
  const call: ContractRuntime["call"] = contracts.call
  const clock = { now: 0, calls: 0 }
  Object.assign(contracts, {
    call: (...args: Parameters<typeof call>) => {
      clock.now += callMillis
      clock.calls++
      return call(...args)
    }
  })
  Object.assign(ledger.options.closeTime!, { millis, now: () => clock.now })
  return clock
})

const limited = (options: LocalLedgerOptions = {}) => ledgerLayer({ closeMillisMax: 1_000_000, ...options })

describe("a ledger whose contracts take long", () => {
  it.effect("a ledger takes contracts within its time limit and defers the rest", () =>
    Effect.gen(function* () {
      const ledger = yield* LocalLedger
      const sources = yield* deployed(40)
      const clock = yield* timed(50, 10)
      const hashes: Array<string> = []
      for (const source of sources) {
        const sent = yield* submit(source, filling, "call", INSTRUCTIONS)
        expect(sent.status).toBe("PENDING")
        hashes.push(sent.hash)
      }
      const taken: Array<string> = []
      let ledgers = 0
      while (ledger.ledger.queue.size > 0) {
        const { calls } = clock
        yield* ledger.close
        ledgers++
        // Five have time, and are computed a second time in the ledger that finds out.
        expect(clock.calls - calls).toBeLessThanOrEqual(10)
        taken.push(...ledger.ledger.latest.transactions.map(({ hash }) => hash))
        expect((yield* ledger.call("getHealth")).status).toBe("healthy")
      }
      expect(ledgers).toBeGreaterThan(PENDING_LEDGERS_MAX)
      expect(taken).toEqual(hashes)
      for (const hash of hashes) expect((yield* outcome(hash)).status).toBe("SUCCESS")
    }).pipe(Effect.provide(limited()))
  )

  it.effect("includes other payments meanwhile, and lets deferred transactions expire", () =>
    Effect.gen(function* () {
      const ledger = yield* LocalLedger
      const sources = yield* deployed(3)
      yield* timed(10, 10)
      const payer = yield* fund("another payer")
      for (const source of sources.slice(0, 2)) yield* submit(source, filling, "call", INSTRUCTIONS)
      const until = Number(ledger.ledger.latest.closeTime) + 1
      const bump = Operation.bumpSequence({ bumpTo: "0" })
      const [frame] = ledger.ledger.queue.candidates().slice(-1)
      Object.assign(frame!, {
        tx: { ...frame!.tx, cond: { type: 1, timeBounds: { minTime: 0n, maxTime: BigInt(until) } } }
      })
      const payment = yield* send(yield* transaction(payer, [bump]))
      yield* ledger.close
      expect((yield* outcome(payment.hash)).status).toBe("SUCCESS")
      expect(ledger.ledger.latest.transactions.length).toBe(2)
      expect(ledger.ledger.queue.size).toBe(1)
      yield* ledger.advanceSeconds(60)
      expect(ledger.ledger.latest.transactions.length).toBe(0)
      expect(ledger.ledger.queue.size).toBe(0)
    }).pipe(Effect.provide(limited()))
  )

  it.effect("a sufficient time limit does not change the ledger", () =>
    Effect.gen(function* () {
      const ledger = yield* LocalLedger
      const sources = yield* deployed(3)
      const clock = yield* timed(1_000, 10)
      for (const source of sources) yield* submit(source, filling, "call", INSTRUCTIONS)
      yield* ledger.close
      expect(ledger.ledger.latest.transactions.length).toBe(3)
      expect(clock.calls).toBe(3)
    }).pipe(Effect.provide(limited()))
  )

  it.effect("manual and reproducible ledgers have no time limit", () =>
    Effect.gen(function* () {
      const { ledger } = yield* LocalLedger
      expect(ledger.options.closeTime).toBeUndefined()
    }).pipe(
      Effect.andThen(
        Effect.gen(function* () {
          const { ledger } = yield* LocalLedger
          expect(ledger.options.closeTime).toBeUndefined()
        }).pipe(Effect.provide(ledgerLayer({ close: 1_000, seed: "word" })))
      ),
      Effect.provide(ledgerLayer())
    )
  )

  it.effect("the default time limit is a quarter of the close interval", () =>
    Effect.gen(function* () {
      const { ledger } = yield* LocalLedger
      expect(ledger.options.closeTime!.millis).toBe(250)
    }).pipe(Effect.provide(ledgerLayer({ close: 1_000 })))
  )

  it.effect("always runs the first contract transaction in its turn", () =>
    Effect.gen(function* () {
      const ledger = yield* LocalLedger
      const [source] = yield* deployed(1)
      yield* timed(0, 10)
      expect((yield* apply(yield* transaction(source!, [Operation.bumpSequence({ bumpTo: "0" })]))).status).toBe(
        "SUCCESS"
      )
      const sent = yield* submit(source!, filling, "call", INSTRUCTIONS)
      yield* ledger.close
      expect((yield* outcome(sent.hash)).status).toBe("SUCCESS")
    }).pipe(Effect.provide(limited()))
  )
})

describe("CloseLimit", () => {
  const frame = (instructions: number) => ({ isSoroban: true, soroban: { resources: { instructions } } }) as Frame

  it("CloseLimit starts with what fit last time, and recovers", () => {
    let now = 0
    const limit = new CloseLimit(1_000, { millis: 10, now: () => now })
    const frames = Array.from({ length: 10 }, () => frame(100))
    const take = (millis: number) => () => void (now += millis)
    expect(() => limit.run(frames, take(5))).toThrow(TimeIsUp)
    limit.learn(frames.slice(0, 2))
    expect(limit.admits(100, frame(100))).toBe(true)
    expect(limit.admits(200, frame(100))).toBe(false)
    expect(limit.defers(200, frame(100))).toBe(true)
    expect(limit.admits(0, frame(900))).toBe(true)
    expect(limit.defers(200, frame(900))).toBe(false)
    limit.run(frames.slice(0, 2), take(1))
    expect(limit.admits(300, frame(100))).toBe(true)
    expect(limit.admits(400, frame(100))).toBe(false)
    for (let i = 0; i < 3; i++) limit.run([], take(0))
    expect(limit.admits(900, frame(100))).toBe(true)
    expect(limit.admits(900, frame(101))).toBe(false)
    expect(limit.admits(0, frame(1_001))).toBe(false)
  })
})
