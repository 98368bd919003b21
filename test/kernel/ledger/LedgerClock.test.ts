// The ledger's time: close intervals measured from polls, and the follower that keeps it while nodes are silent, lag or
// report false heads; waiters for a ledger and subscribers.
import { describe, expect, it } from "@effect/vitest"
import { Clock, Effect, Fiber, Layer, Logger } from "effect"
import { TestClock } from "effect/testing"
import { LedgerClock } from "../../../kernel/ledger/LedgerClock.ts"
import { type LatestLedger, LedgerRpc, LedgerUnavailable } from "../../../kernel/ledger/LedgerRpc.ts"
import {
  activeCloseInterval,
  minClientCloseInterval,
  makeCloseIntervals,
  meanCloseInterval,
  minCloseInterval
} from "../../../kernel/ledger/closeInterval.ts"
import { Supervisor } from "../../../kernel/actor/Supervisor.ts"

const steady = (millis: number, count = 20, closeSeconds = millis / 1_000) =>
  Array.from({ length: count }, () => ({ ledgers: 1, millis, closeSeconds }))
const poll = (ledgers: number, millis: number, closeSeconds = millis / 1_000) => ({ ledgers, millis, closeSeconds })

it("assumes the minimum close interval until three polls were observed", () => {
  expect(meanCloseInterval([])).toBe(1)
  expect(meanCloseInterval(steady(5_000, 2))).toBe(1)
  expect(meanCloseInterval(steady(5_000, 3))).toBe(5)
})

it("measures a steady close interval exactly, a jittered one within 0.02", () => {
  expect(meanCloseInterval(steady(5_000))).toBe(5)
  const jittered = [750, 1_000, 1_250, 1_000, 1_250, 750].flatMap((millis) => [
    poll(1, millis),
    poll(1, 2_000 - millis)
  ])
  expect(Math.abs(meanCloseInterval(jittered) - 1)).toBeLessThan(0.02)
})

it("the mean close interval ignores a burst of ledgers in one poll", () => {
  expect(meanCloseInterval([...steady(1_000, 17), poll(20, 200), poll(8, 200)])).toBe(1)
})

it("the mean close interval ignores a gap without an endpoint", () => {
  expect(meanCloseInterval([...steady(1_000, 18), poll(1, 600_000)])).toBe(1)
})

it("the minimum client close interval includes bursts", () => {
  expect(minClientCloseInterval(steady(5_000, 38))).toBe(5)
  // Until twice as many ledgers were seen as a client reads, the client may have read a burst before them.
  for (const seen of [0, 3, 19, 37]) expect(minClientCloseInterval(steady(5_000, seen))).toBe(1)
  // Ten ledgers in one poll, and slower ones since then: a client computes with their mean.
  const burst = [...steady(1_000, 28), poll(10, 500)]
  expect(meanCloseInterval([...burst, ...steady(1_200, 19)])).toBeGreaterThan(1.1)
  expect(minClientCloseInterval([...burst, ...steady(1_200, 10)])).toBe(9.5 / 19)
  // A gap makes no client's clock slower.
  expect(minClientCloseInterval([...steady(1_000, 38), poll(1, 600_000)])).toBe(1)
})

it("the minimum client close interval keeps recent readings and expires them", () => {
  const burst = [...steady(1_000, 28), poll(10, 500)]
  expect(minClientCloseInterval([...burst, ...steady(1_200, 30)])).toBe(9.5 / 19)
  const paces = makeCloseIntervals()
  for (const one of [...burst, ...steady(1_200, 68)]) paces.note(one)
  expect(paces.fastest()).toBeCloseTo(1.2)
})

it("resting ledgers with close times ahead count at their active interval", () => {
  const catchingUp = steady(2_000, 20, 1)
  expect([meanCloseInterval(catchingUp), activeCloseInterval(catchingUp)]).toEqual([2, 1])
  expect([activeCloseInterval([]), activeCloseInterval(steady(5_000, 2))]).toEqual([1, 1])
  // A burst with close times ahead is neither a slower nor a faster interval.
  expect(activeCloseInterval([...steady(1_000, 17), poll(20, 200, 20), poll(8, 200, 8)])).toBe(1)
  expect(activeCloseInterval(steady(5_000, 20, 0))).toBe(0.1)
})

it("keeps the shortest recent interval by either clock, then expires it", () => {
  expect(minCloseInterval([...steady(5_000), poll(1, 4_000, 4), poll(2, 9_000, 10)])).toBe(4)
  expect(minCloseInterval([poll(1, 4_000, 4), ...steady(5_000, 5)])).toBe(5)
  expect(minCloseInterval(steady(2_000, 5, 1))).toBe(1)
  expect(minCloseInterval([...steady(5_000), poll(60, 1, 60)])).toBe(0.1)
})

it("uses close times where they are faster than the local clock", () => {
  // After a burst they run ahead, and the ledgers take longer until the clock has caught up.
  expect(minClientCloseInterval([...steady(1_200, 38), ...steady(2_000, 5, 1)])).toBeCloseTo((14 * 1.2 + 5) / 19)
  expect(minClientCloseInterval(steady(2_000, 38, 1))).toBe(1)
  expect(minClientCloseInterval(steady(1_000, 38, 2))).toBe(1)
})

it("close intervals stay within 0.1 and 60 seconds", () => {
  expect(meanCloseInterval(steady(1))).toBe(0.1)
  expect(meanCloseInterval(steady(3_600_000))).toBe(60)
  expect(minClientCloseInterval(steady(1))).toBe(0.1)
})

/** A node with an answer that a test sets: a ledger's sequence, or silence. */
interface Node {
  sequence: number | undefined
  /** Unix seconds; default five seconds per ledger. */
  closedAt?: number
  /** Earlier answers, given once each. */
  once?: Array<number>
  /** Never answers. */
  hangs?: boolean
  /** Delay of its answers. */
  slowMillis?: number
  fees: bigint | undefined
  asked: number
}

const silent = (operation: string) => Effect.fail(new LedgerUnavailable({ operation, message: "silent" }))

const rpcOver = (nodes: ReadonlyArray<Node>): LedgerRpc["Service"] => {
  let unfit: ReadonlySet<number> = new Set()
  const ask = (endpoint: number): Effect.Effect<LatestLedger, LedgerUnavailable> =>
    Effect.suspend(() => {
      const node = nodes[endpoint]!
      node.asked += 1
      if (node.hangs === true) return Effect.never
      const sequence = node.once?.shift() ?? node.sequence
      const answer =
        sequence === undefined
          ? silent("getLatestLedger")
          : Effect.succeed({ sequence, closedAtSeconds: node.closedAt ?? sequence * 5, protocolVersion: 23, endpoint })
      return node.slowMillis === undefined ? answer : Effect.delay(answer, node.slowMillis)
    })
  return {
    latestLedger: Effect.suspend(() => {
      const [first, ...others] = [...nodes.keys()].sort((a, b) => Number(unfit.has(a)) - Number(unfit.has(b)))
      return others.reduce((asked, other) => Effect.catch(asked, () => ask(other)), ask(first!))
    }),
    latestLedgers: Effect.map(
      Effect.forEach([...nodes.keys()], (endpoint) => Effect.option(ask(endpoint))),
      (answers) => answers.flatMap((answer) => (answer._tag === "Some" ? [answer.value] : []))
    ),
    setUnfit: (endpoints: ReadonlySet<number>) => Effect.sync(() => void (unfit = endpoints)),
    feeStats: Effect.suspend(() => {
      const { fees } = nodes[0]!
      return fees === undefined ? silent("getFeeStats") : Effect.succeed({ p50: fees, p90: fees, p99: fees })
    })
  } as unknown as LedgerRpc["Service"]
}

const following = <A, E>(
  nodes: Node | ReadonlyArray<Node>,
  use: (clock: LedgerClock["Service"]) => Effect.Effect<A, E, import("effect").Scope.Scope>
) =>
  Effect.scoped(Effect.flatMap(LedgerClock, use)).pipe(
    Effect.provide(
      LedgerClock.layer.pipe(
        Layer.provide(Layer.succeed(LedgerRpc, rpcOver("asked" in nodes ? [nodes] : nodes))),
        Layer.provide(Supervisor.layer)
      ) as Layer.Layer<LedgerClock>
    )
  )

const nodeAt = (sequence: number | undefined): Node => ({ sequence, fees: undefined, asked: 0 })

it.effect("keeps the newest ledger, never an older one, and reads without requests", () => {
  const node = nodeAt(100)
  return following(node, (clock) =>
    Effect.gen(function* () {
      yield* TestClock.adjust("1 second")
      expect((yield* clock.now).sequence).toBe(100)
      node.sequence = 101
      yield* TestClock.adjust("1 second")
      expect(yield* clock.now).toMatchObject({ sequence: 101, closedAtSeconds: 505 })
      node.sequence = 90
      yield* TestClock.adjust("2 seconds")
      const { asked } = node
      expect((yield* clock.now).sequence).toBe(101)
      expect(node.asked).toBe(asked)
    })
  )
})

it.effect("fails while the ledger stalls for 30 seconds, and recovers automatically", () => {
  const node = nodeAt(undefined)
  return following(node, (clock) =>
    Effect.gen(function* () {
      expect((yield* Effect.flip(clock.now))._tag).toBe("LedgerUnavailable")
      node.sequence = 100
      yield* TestClock.adjust("2 seconds")
      expect((yield* clock.now).sequence).toBe(100)
      node.sequence = undefined
      yield* TestClock.adjust("27 seconds")
      expect((yield* clock.now).sequence).toBe(100)
      yield* TestClock.adjust("6 seconds")
      expect((yield* Effect.flip(clock.now))._tag).toBe("LedgerUnavailable")
      node.sequence = 107
      yield* TestClock.adjust("2 seconds")
      expect((yield* clock.now).sequence).toBe(107)
    })
  )
})

it.effect("`fresh` polls now, and fails when no endpoint answers", () => {
  const node = nodeAt(100)
  return following(node, (clock) =>
    Effect.gen(function* () {
      yield* TestClock.adjust("1 second")
      node.sequence = 110
      expect((yield* clock.fresh).sequence).toBe(110)
      node.sequence = undefined
      expect((yield* Effect.flip(clock.fresh))._tag).toBe("LedgerUnavailable")
    })
  )
})

it.effect("wakes waiters on the next ledger and notifies subscribers until they end", () => {
  const node = nodeAt(100)
  return following(node, (clock) =>
    Effect.gen(function* () {
      yield* TestClock.adjust("1 second")
      let reported = 0
      yield* Effect.scoped(
        Effect.gen(function* () {
          yield* clock.subscribe(Effect.sync(() => void (reported += 1)))
          const waiting = yield* Effect.forkChild(clock.nextLedger)
          yield* TestClock.adjust("5 seconds")
          expect([reported, waiting.pollUnsafe()]).toEqual([0, undefined])
          node.sequence = 101
          yield* TestClock.adjust("1 second")
          yield* Fiber.join(waiting)
          expect(reported).toBe(1)
        })
      )
      node.sequence = 102
      yield* TestClock.adjust("1 second")
      expect(reported).toBe(1)
    })
  )
})

it.effect("reports inclusion fees, keeping the last ones while none arrive", () => {
  const node = nodeAt(100)
  return following(node, (clock) =>
    Effect.gen(function* () {
      yield* TestClock.adjust("1 second")
      expect((yield* clock.fees).p90).toBe(100n)
      node.fees = 5_000n
      yield* TestClock.adjust("6 seconds")
      expect((yield* clock.fees).p90).toBe(5_000n)
      node.fees = undefined
      yield* TestClock.adjust("20 seconds")
      expect((yield* clock.fees).p90).toBe(5_000n)
    })
  )
})

it.effect("the network's fee is a refusal's for 30 seconds, else the median", () => {
  const node = nodeAt(100)
  return following(node, (clock) =>
    Effect.gen(function* () {
      node.fees = 300n
      yield* TestClock.adjust("1 second")
      expect((yield* clock.fees).asked).toBe(300n)
      yield* clock.noteAsked(250n)
      expect((yield* clock.fees).asked).toBe(300n)
      yield* clock.noteAsked(7_000n)
      yield* TestClock.adjust("29 seconds")
      expect((yield* clock.fees).asked).toBe(7_000n)
      yield* TestClock.adjust("2 seconds")
      expect((yield* clock.fees).asked).toBe(300n)
    })
  )
})

/** Lets ledgers close, one after another, on the nodes given. */
const close = Effect.fnUntraced(function* (ledgers: number, nodes: ReadonlyArray<Node>, seconds = 5) {
  for (let i = 0; i < ledgers; i++) {
    for (const node of nodes) {
      if (node.sequence !== undefined) node.sequence += 1
      if (node.closedAt !== undefined) node.closedAt += seconds
    }
    yield* TestClock.adjust(`${seconds} seconds`)
  }
})

const sequenceOf = (clock: LedgerClock["Service"]) =>
  Effect.match(clock.now, { onFailure: () => undefined, onSuccess: ({ sequence }) => sequence })

describe("while no payment is in progress", () => {
  /** Ledgers that close each second until the interval is known and the clock is idle. */
  const rested = Effect.fnUntraced(function* (node: Node, clock: LedgerClock["Service"], seconds: number) {
    yield* close(40, [node], seconds)
    expect(yield* clock.isAttended).toBe(false)
  })

  /** Lets ledgers close until one closes that was not polled. */
  const behind = Effect.fnUntraced(function* (node: Node, clock: LedgerClock["Service"]) {
    for (let i = 0; i < 20 && (yield* clock.now).sequence === node.sequence; i++) yield* close(1, [node], 1)
    expect((yield* clock.now).sequence).toBeLessThan(node.sequence!)
  })

  /** For `ledgers` ledgers that `next` closes, one each `seconds`: the delay of each report in milliseconds. */
  const delaysOf = Effect.fnUntraced(function* (
    clock: LedgerClock["Service"],
    ledgers: number,
    seconds: number,
    next: Effect.Effect<void>
  ) {
    const reported: Array<number> = []
    yield* clock.subscribe(Effect.map(Clock.currentTimeMillis, (at) => void reported.push(at)))
    const from = yield* Clock.currentTimeMillis
    for (let closed = 0; closed < ledgers; closed++) {
      yield* clock.attend
      yield* next
    }
    expect(reported).toHaveLength(ledgers)
    return reported.map((at, closed) => at - from - closed * seconds * 1_000)
  })

  it.effect.each([
    [1, 1.5],
    [5, 3]
  ])("without payments, ledgers of %d s are polled rarely and wake no subscriber", ([seconds, resting]) => {
    const node = nodeAt(100)
    return following(node, (clock) =>
      Effect.gen(function* () {
        let notified = 0
        yield* clock.subscribe(Effect.sync(() => void (notified += 1)))
        yield* rested(node, clock, seconds!)
        const before = { notified, asked: node.asked }
        yield* close(20, [node], seconds)
        expect(notified).toBe(before.notified)
        expect((node.asked - before.asked) / 20).toBeLessThan(resting!)
        yield* clock.attend
        const woken = notified
        yield* close(3, [node], seconds)
        expect(notified).toBeGreaterThanOrEqual(woken + 3)
        expect(Math.abs((yield* clock.now).secondsPerLedger - seconds!)).toBeLessThan(0.1 * seconds!)
      })
    )
  })

  it.effect.each([
    [1, 200],
    [5, 500]
  ])("with payments, each ledger of %d s is reported within %d ms, in three polls", ([seconds, millis]) => {
    const node = nodeAt(100)
    return following(node, (clock) =>
      Effect.gen(function* () {
        yield* rested(node, clock, seconds!)
        yield* clock.attend
        yield* close(1, [node], seconds)
        const { asked } = node
        const delays = yield* delaysOf(clock, 20, seconds!, close(1, [node], seconds))
        expect(Math.min(...delays)).toBeGreaterThanOrEqual(0)
        expect(Math.max(...delays)).toBeLessThanOrEqual(millis!)
        expect((node.asked - asked) / 20).toBeLessThanOrEqual(3)
      })
    )
  })

  it.effect("reports skipped ledgers in time when payments resume", () => {
    const node = { ...nodeAt(100), closedAt: 500 }
    const next = Effect.fnUntraced(function* (seconds: number) {
      node.sequence! += 1
      node.closedAt += 1
      yield* TestClock.adjust(`${seconds} seconds`)
    })
    return following(node, (clock) =>
      Effect.gen(function* () {
        // Close times are ahead of the clock: every second ledger is left out, as long as there is nothing to put in.
        for (let closed = 0; closed < 30; closed++) yield* next(2)
        expect((yield* clock.now).secondsPerLedger).toBe(1)
        yield* clock.attend
        yield* next(1)
        expect(Math.max(...(yield* delaysOf(clock, 6, 1, next(1))))).toBeLessThanOrEqual(200)
      })
    )
  })

  it.effect("refreshes the ledger before verifying, once for concurrent payments", () => {
    const node = nodeAt(100)
    return following(node, (clock) =>
      Effect.gen(function* () {
        yield* rested(node, clock, 1)
        yield* behind(node, clock)
        const { asked } = node
        yield* clock.attend
        yield* clock.attend
        yield* Effect.all([clock.caughtUp, clock.caughtUp], { concurrency: 2 })
        expect((yield* clock.now).sequence).toBe(node.sequence)
        expect(node.asked - asked).toBeLessThanOrEqual(2)
      })
    )
  })

  it.effect("a payment during the first poll waits for it, at most a second", () => {
    const node: Node = { ...nodeAt(100), slowMillis: 400 }
    return following(node, (clock) =>
      Effect.gen(function* () {
        yield* clock.attend
        const early = yield* Effect.forkChild(Effect.andThen(clock.caughtUp, Effect.exit(clock.now)), {
          startImmediately: true
        })
        yield* TestClock.adjust("700 millis")
        expect(early.pollUnsafe()).toBeUndefined()
        yield* TestClock.adjust("1 second")
        expect(yield* Fiber.join(early)).toMatchObject({ _tag: "Success", value: { sequence: 100 } })
      })
    )
  })

  it.effect("a payment waits one second for a node that never answered", () =>
    following({ ...nodeAt(100), hangs: true }, (clock) =>
      Effect.gen(function* () {
        const early = yield* Effect.forkChild(clock.caughtUp, { startImmediately: true })
        yield* TestClock.adjust("999 millis")
        expect(early.pollUnsafe()).toBeUndefined()
        yield* TestClock.adjust("1 millis")
        expect(early.pollUnsafe()?._tag).toBe("Success")
      })
    )
  )

  it.effect("a payment waits one second for a silent node; interruption keeps the poll", () => {
    const node = nodeAt(100)
    return following(node, (clock) =>
      Effect.gen(function* () {
        yield* rested(node, clock, 1)
        yield* behind(node, clock)
        node.hangs = true
        yield* clock.attend
        const first = yield* Effect.forkChild(clock.caughtUp)
        const second = yield* Effect.forkChild(clock.caughtUp)
        yield* TestClock.adjust("500 millis")
        yield* Fiber.interrupt(first)
        expect(second.pollUnsafe()).toBeUndefined()
        yield* TestClock.adjust("500 millis")
        expect(second.pollUnsafe()?._tag).toBe("Success")
      })
    )
  })

  it.effect("reports ledgers of a network that was reset", () => {
    const node = nodeAt(100_000)
    return following(node, (clock) =>
      Effect.gen(function* () {
        let received = 0
        yield* clock.subscribe(Effect.sync(() => void (received += 1)))
        yield* rested(node, clock, 5)
        yield* close(20, [node])
        expect((yield* clock.now).fastestSecondsPerLedger).toBeGreaterThan(4)
        const before = received
        // The network was reset: lower numbers that close later.
        node.closedAt = node.sequence! * 5 + 5
        node.sequence = 10
        yield* close(6, [node])
        expect(received).toBeGreaterThan(before)
        expect((yield* clock.now).sequence).toBeLessThan(100)
        // Earlier measurements do not describe what a client has read here.
        expect((yield* clock.now).fastestSecondsPerLedger).toBe(1)
      })
    )
  })
})

describe("head selection with one endpoint", () => {
  it.effect("ignores isolated heads a million ledgers ahead, however frequent", () => {
    const node = nodeAt(100)
    return following(node, (clock) =>
      Effect.gen(function* () {
        yield* close(3, [node])
        for (let i = 0; i < 20; i++) {
          node.once = [1_000_103 + i]
          yield* TestClock.adjust("1 second")
          expect((yield* clock.now).sequence).toBe(node.sequence)
          if (i % 5 === 4) yield* close(1, [node])
        }
      })
    )
  })

  it.effect("ignores a head a million ledgers ahead followed by silence", () => {
    const node = nodeAt(100)
    return following(node, (clock) =>
      Effect.gen(function* () {
        yield* close(3, [node])
        node.once = [1_000_103]
        node.sequence = undefined
        yield* TestClock.adjust("5 seconds")
        expect((yield* clock.now).sequence).toBe(103)
      })
    )
  })

  it.effect("ignores a first head that is not confirmed or is contradicted", () => {
    const node: Node = { ...nodeAt(undefined), once: [1_000_100] }
    return following(node, (clock) =>
      Effect.gen(function* () {
        yield* TestClock.adjust("2 seconds")
        expect(yield* sequenceOf(clock)).toBeUndefined()
        node.once = [1_000_101]
        node.sequence = 100
        yield* TestClock.adjust("2 seconds")
        expect((yield* clock.now).sequence).toBe(100)
      })
    )
  })

  it.effect("follows a head far ahead with a matching close time once it advances", () => {
    const node = nodeAt(100)
    return following(node, (clock) =>
      Effect.gen(function* () {
        yield* close(2, [node])
        node.sequence = 5_000
        expect((yield* Effect.flip(clock.fresh))._tag).toBe("LedgerUnavailable")
        expect((yield* clock.now).sequence).toBe(102)
        node.sequence = 5_001
        expect((yield* clock.fresh).sequence).toBe(5_001)
      })
    )
  })

  it.effect("follows a mistimed head ahead after 5 seconds, a still one after 30", () =>
    Effect.forEach(
      [
        { ledgers: 0, node: nodeAt(100) as Node & { sequence: number }, seconds: 30 },
        { ledgers: 1, node: { ...nodeAt(100), sequence: 100, closedAt: 1_000 }, seconds: 5 }
      ],
      ({ ledgers, node, seconds }) =>
        following(node, (clock) =>
          Effect.gen(function* () {
            yield* close(2, [node])
            node.sequence = 5_000
            for (let i = 0; i < seconds; i++) {
              yield* TestClock.adjust("1 second")
              node.sequence += ledgers
              if (node.closedAt !== undefined) node.closedAt += 1
              expect((yield* clock.status).time?.sequence).toBe(102)
            }
            yield* TestClock.adjust("2 seconds")
            expect((yield* clock.now).sequence).toBe(node.sequence)
          })
        )
    )
  )

  it.effect("follows a burst of ledgers once two polls report it", () => {
    const node: Node = { ...nodeAt(100), closedAt: 1_000 }
    return following(node, (clock) =>
      Effect.gen(function* () {
        yield* close(2, [node])
        node.once = [900]
        node.sequence = undefined
        expect((yield* Effect.flip(clock.fresh))._tag).toBe("LedgerUnavailable")
        expect((yield* clock.now).sequence).toBe(102)
        node.sequence = 900
        expect((yield* clock.fresh).sequence).toBe(900)
      })
    )
  })

  it.effect("ignores two heads a million ledgers ahead, or irregular ones", () => {
    const node: Node = { ...nodeAt(100), closedAt: 1_000 }
    return following(node, (clock) =>
      Effect.gen(function* () {
        yield* close(2, [node])
        node.once = [1_000_102, 1_000_102]
        yield* TestClock.adjust("1 second")
        expect((yield* clock.now).sequence).toBe(102)
        node.once = [1_000_103, 1_000_104, 1_000_104, 1_000_105]
        yield* TestClock.adjust("1 second")
        expect((yield* clock.now).sequence).toBe(102)
        yield* close(1, [node])
        expect((yield* clock.now).sequence).toBe(103)
      })
    )
  })

  it.effect("ignores several false heads far from each other", () => {
    const node: Node = nodeAt(100)
    return following(node, (clock) =>
      Effect.gen(function* () {
        yield* close(2, [node])
        for (let i = 1; i <= 20; i++) {
          node.sequence = 1_000_000 * i
          yield* TestClock.adjust("1 second")
          expect((yield* clock.now).sequence).toBe(102)
        }
      })
    )
  })

  it.effect("ignores a false head reported twice while polls are slow", () => {
    const node: Node = { ...nodeAt(100), closedAt: 1_000 }
    return following(node, (clock) =>
      Effect.gen(function* () {
        yield* close(2, [node])
        node.sequence = undefined
        yield* TestClock.adjust("12 seconds")
        node.once = [1_000_103]
        yield* TestClock.adjust("6 seconds")
        node.once = [1_000_104]
        yield* TestClock.adjust("1 second")
        expect((yield* clock.status).time?.sequence).toBe(102)
      })
    )
  })

  it.effect("ignores a mistimed advancing head beside a still ledger", () => {
    const node: Node = { ...nodeAt(100), closedAt: 1_000 }
    return following(node, (clock) =>
      Effect.gen(function* () {
        yield* close(6, [node])
        for (let i = 1; i <= 60; i++) {
          node.once = [1_000_106 + i]
          yield* TestClock.adjust("1 second")
        }
        expect((yield* clock.status).time?.sequence).toBe(106)
      })
    )
  })

  it.effect("ignores a repeated false head after true ones, however long both last", () => {
    const node: Node = { ...nodeAt(100), closedAt: 1_000 }
    return following(node, (clock) =>
      Effect.gen(function* () {
        yield* close(2, [node])
        for (let i = 0; i < 20; i++) {
          const reported = node.sequence!
          node.sequence = 1_000_000 + reported
          yield* TestClock.adjust("2 seconds")
          expect((yield* clock.now).sequence).toBe(reported)
          node.sequence = reported
          yield* close(1, [node], 3)
        }
      })
    )
  })

  it.effect("returns from a lasting false head within two ledgers by close times", () => {
    const node: Node = { ...nodeAt(100), closedAt: 1_000 }
    return following(node, (clock) =>
      Effect.gen(function* () {
        yield* close(2, [node])
        node.sequence = 1_000_102
        yield* TestClock.adjust("35 seconds")
        expect((yield* clock.now).sequence).toBe(1_000_102)
        node.sequence = 109
        yield* close(3, [node])
        expect((yield* clock.now).sequence).toBe(112)
      })
    )
  })

  it.effect("returns within ten seconds from a false head with its own close time", () => {
    const node = nodeAt(100)
    return following(node, (clock) =>
      Effect.gen(function* () {
        yield* close(2, [node])
        node.once = [1_000_102, 1_000_102, 1_000_103, 1_000_103]
        yield* TestClock.adjust("2 seconds")
        expect((yield* clock.now).sequence).toBe(1_000_103)
        yield* close(4, [node])
        expect((yield* clock.now).sequence).toBe(106)
      })
    )
  })

  it.effect("follows a reset network (lower number, later close) once it advances", () => {
    const node: Node = { ...nodeAt(1_500_000), closedAt: 7_500_000 }
    return following(node, (clock) =>
      Effect.gen(function* () {
        yield* close(2, [node])
        node.sequence = 1_000
        yield* close(2, [node], 1)
        expect((yield* clock.now).sequence).toBe(1_002)
        yield* close(1, [node], 1)
        expect((yield* clock.now).sequence).toBe(1_003)
      })
    )
  })

  it.effect("ignores a lagging node while another behind the same address advances", () => {
    const node = nodeAt(100)
    return following(node, (clock) =>
      Effect.gen(function* () {
        yield* close(2, [node])
        for (let i = 0; i < 10; i++) {
          node.once = [50 + i, 50 + i, 51 + i]
          yield* close(1, [node])
          expect((yield* clock.now).sequence).toBe(node.sequence)
        }
      })
    )
  })

  it.effect("ignores a lagging node that is alone for less than the limit", () => {
    const node = nodeAt(100)
    return following(node, (clock) =>
      Effect.gen(function* () {
        yield* close(4, [node])
        node.sequence = 50
        yield* close(3, [node], 1)
        expect((yield* clock.now).sequence).toBe(104)
        yield* TestClock.adjust("20 seconds")
        expect((yield* clock.now).sequence).toBe(104)
        yield* close(1, [node], 1)
        expect((yield* clock.now).sequence).toBe(54)
      })
    )
  })

  it.effect("a stalled ledger becomes stale although it is still reported", () => {
    const node = nodeAt(100)
    return following(node, (clock) =>
      Effect.gen(function* () {
        yield* close(4, [node])
        yield* TestClock.adjust("20 seconds")
        expect(yield* sequenceOf(clock)).toBe(104)
        yield* TestClock.adjust("20 seconds")
        expect(yield* sequenceOf(clock)).toBeUndefined()
        expect((yield* clock.status).ageSeconds).toBeGreaterThan(30)
        yield* close(1, [node])
        expect(yield* sequenceOf(clock)).toBe(105)
      })
    )
  })
})

describe("head selection with several endpoints", () => {
  it.effect("a stalled endpoint loses its priority until it has caught up", () => {
    const [still, good] = [nodeAt(100), nodeAt(100)]
    return following([still, good], (clock) =>
      Effect.gen(function* () {
        yield* close(4, [still, good])
        yield* close(12, [good])
        expect((yield* clock.now).sequence).toBe(good.sequence)
        const { asked } = still
        yield* close(6, [good])
        // The good one is asked at each poll, the other only when all are.
        expect(still.asked - asked).toBeLessThanOrEqual(5)
        still.sequence = good.sequence
        yield* close(3, [still, good])
        const before = good.asked
        yield* close(6, [still, good])
        expect(good.asked - before).toBeLessThanOrEqual(5)
      })
    )
  })

  it.effect("ignores an endpoint a million ledgers ahead of the other, in any order", () =>
    Effect.gen(function* () {
      for (const place of [0, 1]) {
        const [wrong, good] = [nodeAt(1_000_100), nodeAt(100)]
        // Both report the same time: only the number is wrong.
        Object.assign(wrong, { closedAt: 500 })
        Object.assign(good, { closedAt: 500 })
        yield* following(place === 0 ? [wrong, good] : [good, wrong], (clock) =>
          Effect.gen(function* () {
            yield* TestClock.adjust("1 second")
            expect(yield* sequenceOf(clock)).toBe(100)
            yield* close(12, [wrong, good])
            expect(yield* sequenceOf(clock)).toBe(good.sequence)
          })
        )
      }
    })
  )

  it.effect("ignores an endpoint that jumps ahead while the other is on the ledger", () => {
    const [wrong, good] = [nodeAt(100), nodeAt(100)]
    return following([wrong, good], (clock) =>
      Effect.gen(function* () {
        yield* close(3, [wrong, good])
        wrong.sequence! += 1_000_000
        yield* close(12, [wrong, good])
        expect(yield* sequenceOf(clock)).toBe(good.sequence)
      })
    )
  })

  it.effect("an endpoint's first head is confirmed by progress or the other endpoint", () =>
    Effect.gen(function* () {
      const alone = nodeAt(100)
      yield* following(alone, (clock) =>
        Effect.gen(function* () {
          yield* TestClock.adjust("1 second")
          expect((yield* clock.now).isFirstWord).toBe(true)
          yield* close(1, [alone])
          expect((yield* clock.now).isFirstWord).toBe(false)
        })
      )
      yield* following([nodeAt(100), nodeAt(100)], (clock) =>
        Effect.gen(function* () {
          yield* TestClock.adjust("1 second")
          expect((yield* clock.now).isFirstWord).toBe(false)
        })
      )
    })
  )

  it.effect("a lagging endpoint yields to a recovered one within two surveys", () => {
    const [behind, good]: [Node, Node] = [nodeAt(60), nodeAt(undefined)]
    return following([behind, good], (clock) =>
      Effect.gen(function* () {
        yield* close(4, [behind])
        expect(yield* sequenceOf(clock)).toBe(64)
        good.sequence = 104
        yield* close(5, [behind, good])
        expect(yield* sequenceOf(clock)).toBe(109)
      })
    )
  })

  it.effect("a lagging endpoint is polled last and followed only when alone", () => {
    const [behind, good] = [nodeAt(60), nodeAt(100)]
    return following([behind, good], (clock) =>
      Effect.gen(function* () {
        yield* close(6, [behind, good])
        expect(yield* sequenceOf(clock)).toBe(good.sequence)
        good.sequence = undefined
        yield* close(5, [behind])
        expect(yield* sequenceOf(clock)).toBe(behind.sequence)
      })
    )
  })
})

describe("this machine's clock", () => {
  /** This machine's clock is right when a just-closed ledger is as old as the time it takes to learn of it. */
  const start = Effect.map(TestClock.setTime(1_700_000_000_000), () => ({
    ...nodeAt(100),
    closedAt: 1_700_000_000
  }))

  const warnings = Effect.sync(() => {
    const said: Array<string> = []
    const logger = Logger.make<unknown, void>(({ logLevel, message }) => {
      if (String(message).includes("clock")) said.push(`${logLevel}`)
    })
    return { said, layer: Logger.layer([logger]) }
  })

  it.effect("clock skew is the minimum over ten ledgers, warned of once beyond 5 s", () =>
    Effect.gen(function* () {
      const node = yield* start
      const { layer, said } = yield* warnings
      yield* following(node, (clock) =>
        Effect.gen(function* () {
          yield* TestClock.adjust("1 second")
          expect((yield* clock.status).skewSeconds).toBeUndefined()
          yield* close(12, [node])
          expect((yield* clock.status).skewSeconds).toBeLessThan(2)
          expect(yield* clock.status).toMatchObject({ isSkewed: false })
          // One late ledger, and then a machine that is half an hour slow: its ledgers close in the future.
          node.closedAt -= 20
          yield* close(1, [node])
          expect(yield* clock.status).toMatchObject({ isSkewed: false })
          node.closedAt += 1_820
          yield* close(12, [node])
          expect(yield* clock.status).toMatchObject({ isSkewed: true })
          expect((yield* clock.status).skewSeconds).toBeLessThan(-1_790)
          expect(said).toEqual(["Warn"])
          node.closedAt -= 1_800
          yield* close(12, [node])
          expect(yield* clock.status).toMatchObject({ isSkewed: false })
          expect(said).toEqual(["Warn", "Info"])
        })
      ).pipe(Effect.provide(layer))
    })
  )

  it.effect("setting the clock back does not keep an old ledger fresh", () =>
    Effect.gen(function* () {
      const node = yield* start
      const live = yield* Effect.clockWith(Effect.succeed)
      let offMillis = 0
      const settable = Object.assign(Object.create(live), {
        currentTimeMillisUnsafe: () => live.currentTimeMillisUnsafe() + offMillis,
        currentTimeMillis: Effect.sync(() => live.currentTimeMillisUnsafe() + offMillis)
      }) as Clock.Clock
      yield* following(node, (clock) =>
        Effect.gen(function* () {
          yield* close(2, [node])
          offMillis = -26 * 3_600_000
          yield* TestClock.adjust("20 seconds")
          expect(yield* sequenceOf(clock)).toBe(102)
          yield* TestClock.adjust("20 seconds")
          expect(yield* sequenceOf(clock)).toBeUndefined()
        })
      ).pipe(Effect.provideService(Clock.Clock, settable))
    })
  )
})
