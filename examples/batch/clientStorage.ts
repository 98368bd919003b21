// A buyer's records of its channels by `batch-settlement`, and a store in memory.

/** A buyer's record of a channel. Amounts are atomic units. */
export interface ClientChannel {
  /** Total charged by the seller: the base of the next voucher. */
  readonly charged: string
  readonly balance: string
  /** The highest amount signed in a voucher, stored before that voucher is sent. Default `charged`. */
  readonly signed?: string
  /** Number of unanswered payments in a row. */
  readonly unanswered?: number
  /** An unanswered deposit: the signed transaction, and the last ledger in which it can land. */
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
