// An official client computes an expiry with the plain mean of the last twenty ledgers, which includes a friendbot's
// burst. The ledger clock's own interval excludes the burst, or has not seen it: a burst is at first a ledger far
// ahead, after which the interval is measured again. The client's payment must be accepted anyway.
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { type Facilitator, startFacilitator } from "../../support/facilitator.ts"

/** Whole seconds, rounded up, as an official client reads them from Horizon. */
const secondsOfClient = ({ ledgerUrl }: Facilitator) =>
  Effect.promise(async () => {
    const answer = (await (await fetch(`${ledgerUrl}/ledgers?limit=20&order=desc`)).json()) as any
    const times = answer._embedded.records.map((record: any) => Date.parse(record.closed_at) / 1_000)
    return Math.ceil((times[0] - times.at(-1)) / (times.length - 1))
  })

type Parties = Pick<Parameters<Facilitator["payment"]>[0], "payer" | "payTo">

/**
 * Verifies one payment per ledger, each with the largest expiry that an official client would use, and returns how many
 * of them read the shortest interval.
 */
const fastReadings = (facilitator: Facilitator, by: Parties, ledgers: number) =>
  Effect.gen(function* () {
    let shortest = 0
    for (let ledger = 0; ledger < ledgers; ledger++) {
      const beganAt = performance.now()
      const secondsPerLedger = yield* secondsOfClient(facilitator)
      const { body } = yield* facilitator.payment({ ...by, amount: 10n, maxTimeoutSeconds: 300, secondsPerLedger })
      expect((yield* facilitator.verify(body)).json).toMatchObject({ isValid: true })
      shortest += secondsPerLedger === 1 ? 1 : 0
      // A loaded machine must read as often as an idle one, because a client's reading is only valid for some ledgers.
      yield* Effect.sleep(Math.max(0, beganAt + 1_120 - performance.now()))
    }
    return shortest
  })

it.live(
  "accepts a client that counts a burst before ledgers slowed down",
  () =>
    Effect.gen(function* () {
      const facilitator = yield* startFacilitator({ closeMillis: 1_120, channels: 1 })
      const payTo = (yield* facilitator.account()).publicKey()
      const [payer] = yield* Effect.all(
        Array.from({ length: 20 }, () => facilitator.account()),
        { concurrency: "unbounded" }
      )
      expect(yield* fastReadings(facilitator, { payer: payer!, payTo }, 22)).toBeGreaterThan(5)
    }).pipe(Effect.scoped),
  240_000
)

// The burst's close times run ahead of the clock, and the ledgers after it take twice as long until the clock has
// caught up: a client reads one second each from them, and the clock shows two.
it.live(
  "accepts a client that reads close times ahead of the clock",
  () =>
    Effect.gen(function* () {
      const facilitator = yield* startFacilitator({ closeMillis: 1_120, channels: 1 })
      const payTo = (yield* facilitator.account()).publicKey()
      const payer = yield* facilitator.account()
      yield* fastReadings(facilitator, { payer, payTo }, 45)
      yield* Effect.all(
        Array.from({ length: 8 }, () => facilitator.account()),
        { concurrency: "unbounded" }
      )
      expect(yield* fastReadings(facilitator, { payer, payTo }, 26)).toBeGreaterThan(5)
    }).pipe(Effect.scoped),
  240_000
)
