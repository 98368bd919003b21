// What a buyer keeps of its channels by `batch-settlement`, and a store in memory.

/** What a buyer knows of a channel. Amounts are atomic units. */
export interface ClientChannel {
  /** What the seller charged in all: the base of the next voucher. */
  readonly charged: string
  readonly balance: string
  /** The most that a voucher was signed for, kept before that voucher is sent. Default `charged`. */
  readonly signed?: string
  /** Payments in a row whose answer has not come. */
  readonly unanswered?: number
  /** A deposit without an answer: what was signed, and the last ledger in which it can land. */
  readonly open?: { readonly amount: string; readonly transaction: string; readonly expires: number }
}

export interface ClientStorage {
  readonly get: (channelId: string) => Promise<ClientChannel | undefined>
  readonly set: (channelId: string, channel: ClientChannel) => Promise<void>
}

export const memoryClientStorage = (): ClientStorage => {
  const channels = new Map<string, ClientChannel>()
  return {
    get: async (channelId) => channels.get(channelId),
    set: async (channelId, channel) => void channels.set(channelId, channel)
  }
}
