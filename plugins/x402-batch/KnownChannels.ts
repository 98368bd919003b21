// The channels that this process uses, as of the newest ledger that it read, for operators. This includes channels of
// sellers that keep their own records. It reads a cache: a channel without a request since the start is not in it.
import { Context, Effect, Layer } from "effect"
import type { LedgerUnavailable } from "../../kernel/ledger/LedgerRpc.ts"
import type { ChannelConfig, ChannelState } from "./batchCodec.ts"

export interface KnownChannel {
  readonly channelId: string
  readonly config: ChannelConfig
  readonly state: ChannelState
}

export class KnownChannels extends Context.Service<
  KnownChannels,
  {
    /** Empty if the scheme is not offered. */
    readonly all: () => ReadonlyArray<KnownChannel>
    /** The last reading of a channel; undefined if the cache has evicted it, or the ledger does not show it. */
    readonly stateOf: (channelId: string) => ChannelState | undefined
    /** The amount that was claimed for a receiver but not paid out, read now; atomic units. */
    readonly owed: (receiver: string, token: string) => Effect.Effect<bigint, LedgerUnavailable>
    /** Sets the readings, once the scheme is offered. */
    readonly readBy: (
      read: () => ReadonlyArray<KnownChannel>,
      owed: (receiver: string, token: string) => Effect.Effect<bigint, LedgerUnavailable>,
      stateOf: (channelId: string) => ChannelState | undefined
    ) => void
  }
>()("tollkeeper/x402-batch/KnownChannels") {
  static readonly layer = Layer.sync(KnownChannels, () => {
    let reading: () => ReadonlyArray<KnownChannel> = () => []
    let owing: (receiver: string, token: string) => Effect.Effect<bigint, LedgerUnavailable> = () => Effect.succeed(0n)
    let stateOf: (channelId: string) => ChannelState | undefined = () => undefined
    return KnownChannels.of({
      all: () => reading(),
      stateOf: (channelId) => stateOf(channelId),
      owed: (...asked) => owing(...asked),
      readBy: (...readings) => void ([reading, owing, stateOf] = readings)
    })
  })
}
