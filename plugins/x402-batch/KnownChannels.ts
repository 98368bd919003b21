// The channels that this process has in use, as of the newest ledger that it read, for operators: also those of
// sellers that keep their records themselves. It is a reading of a cache: a channel without a request since the start
// is not in it.
import { Context, Layer } from "effect"
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
    /** Sets the reading, once the scheme is offered. */
    readonly readBy: (read: () => ReadonlyArray<KnownChannel>) => void
  }
>()("tollkeeper/x402-batch/KnownChannels") {
  static readonly layer = Layer.sync(KnownChannels, () => {
    let reading: () => ReadonlyArray<KnownChannel> = () => []
    return KnownChannels.of({ all: () => reading(), readBy: (read) => void (reading = read) })
  })
}
