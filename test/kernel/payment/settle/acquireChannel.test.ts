import { expect, it } from "@effect/vitest"
import { Effect, Layer, Option } from "effect"
import { describe } from "vitest"
import { makeAcquireChannel } from "../../../../kernel/payment/settle/acquireChannel.ts"
import { ChannelPool } from "../../../../kernel/settlement/channels/ChannelPool.ts"
import type { ChannelLease } from "../../../../kernel/settlement/channels/ChannelStore.ts"
import { layerTest } from "../../../support/layerTest.ts"

const lease: ChannelLease = { address: "channel-1", fence: 1n, sequence: 1n }

/** The addresses of the channels released at the end of a scope that acquired this lease. */
const released = (leased: Option.Option<ChannelLease>, isKept: boolean) =>
  Effect.gen(function* () {
    const addresses: Array<string> = []
    const pool = layerTest(ChannelPool, { release: ({ address }) => Effect.sync(() => void addresses.push(address)) })
    const layer = Layer.effectDiscard(
      Effect.gen(function* () {
        const acquire = yield* makeAcquireChannel
        const channel = yield* acquire({ _tag: "Place", lease: Effect.succeed(leased), leave: Effect.void })
        if (isKept) Option.getOrThrow(channel).keep()
      })
    )
    yield* Effect.scoped(Layer.build(Layer.provide(layer, pool)))
    return addresses
  })

describe("acquireChannel", () => {
  it.effect("releases a lease that was not kept", () =>
    Effect.gen(function* () {
      expect(yield* released(Option.some(lease), false)).toEqual(["channel-1"])
      expect(yield* released(Option.some(lease), true)).toEqual([])
      expect(yield* released(Option.none(), false)).toEqual([])
    })
  )
})
