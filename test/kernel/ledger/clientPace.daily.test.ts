// An official client reckons an end by the plain mean of the last twenty ledgers, in which a friendbot's burst counts.
// The ledger's own pace leaves it out, or has not seen it: a burst is at first a ledger far ahead, after which the pace
// is measured anew. The client's payment is an honest one all the same.
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

it.live(
  "a client that counts a burst of ledgers is not refused while the others have become slower",
  () =>
    Effect.gen(function* () {
      const facilitator = yield* startFacilitator({ closeMillis: 1_120, channels: 1 })
      const payTo = (yield* facilitator.account()).publicKey()
      const [payer] = yield* Effect.all(
        Array.from({ length: 20 }, () => facilitator.account()),
        { concurrency: "unbounded" }
      )
      let shortest = 0
      for (let ledger = 0; ledger < 22; ledger++) {
        const secondsPerLedger = yield* secondsOfClient(facilitator)
        const terms = { payer: payer!, payTo, amount: 10n, maxTimeoutSeconds: 300, secondsPerLedger }
        const { body } = yield* facilitator.payment(terms)
        expect((yield* facilitator.verify(body)).json).toMatchObject({ isValid: true })
        shortest += secondsPerLedger === 1 ? 1 : 0
        yield* Effect.sleep("1120 millis")
      }
      expect(shortest).toBeGreaterThan(5)
    }).pipe(Effect.scoped),
  240_000
)
