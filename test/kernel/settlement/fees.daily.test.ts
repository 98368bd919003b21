// The cost of a settlement to the sponsor: the ceilings of resource fee, bid and both together hold for every bid, and
// the reservation is the maximum possible charge.
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { parseFault } from "../../../plugins/ledger-local/node/parseFault.ts"
import { type Facilitator, startFacilitator } from "../../support/facilitator.ts"
import { eventually } from "../../support/eventually.ts"

const price = 10_000n

const settle = Effect.fnUntraced(function* (facilitator: Facilitator) {
  const payer = yield* facilitator.account()
  const payTo = (yield* facilitator.account(0n)).publicKey()
  const { body } = yield* facilitator.payment({ payer, payTo, amount: price, maxTimeoutSeconds: 300 })
  return (yield* facilitator.settle(body)).json
})

it.live(
  "bids stay within the total minus the resource fee, fully reserved [S245, S270]",
  () =>
    Effect.gen(function* () {
      const world = yield* startFacilitator({ channels: 1 })
      expect(yield* settle(world)).toMatchObject({ success: true })
      const [known] = yield* world.sql<{ fee: bigint }>`select resource_fee_stroops as fee from kernel_settlements`
      const fee = known!.fee
      const tight = yield* startFacilitator({
        ledgerUrl: world.ledgerUrl,
        channels: 1,
        set: [
          `networks.ledger:testnet.fees={"exact": {"max_total_fee_stroops": ${fee + 3_000n}}}`,
          "limits.settle_timeout_ms=1000"
        ]
      })
      yield* world.ledger.setFaults([parseFault("drop=1") as Exclude<ReturnType<typeof parseFault>, string>])
      expect(yield* settle(tight)).toMatchObject({ success: false })
      const bids = yield* eventually(
        tight.sql<{ bid: bigint }>`select inclusion_stroops as bid from kernel_attempts order by number`,
        ({ length }) => length > 2
      )
      expect(bids.map(({ bid }) => bid)).toEqual([200n, 2_000n, 3_000n])
      const [reserved] = yield* tight.sql<{ stroops: bigint }>`select sum(reserved_stroops)::int8 as stroops
        from kernel_sponsor_budget`
      const [open] = yield* tight.sql<{ fee: bigint }>`select resource_fee_stroops as fee from kernel_settlements`
      expect(reserved!.stroops).toBe(open!.fee + (fee + 3_000n - open!.fee))
    }).pipe(Effect.scoped),
  240_000
)
