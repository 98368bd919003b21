// A buyer's records of its channels by `batch-settlement`, and a store in memory.
import { cutsMax } from "../client/keptPayments.mjs"

/** A buyer's record of a channel. Amounts are atomic units. */
export interface ClientChannel {
  /** Total charged by the seller: the base of the next voucher. */
  readonly charged: string
  readonly balance: string
  /** The highest amount signed in a voucher, stored before that voucher is sent. Default `charged`. */
  readonly signed?: string
  /** Number of unanswered payments in a row. */
  readonly unanswered?: number
  /** Why the seller's last answer contradicts the voucher; while it is set, the buyer signs no payment here. */
  readonly disputed?: string
  /** An unanswered deposit: the signed transaction, and the last ledger that accepts it. */
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

export const larger = (a: bigint, b: bigint): bigint => (a > b ? a : b)

export const signedIn = ({ charged, signed = charged }: ClientChannel): bigint =>
  larger(BigInt(signed), BigInt(charged))

/** Throws after a contradicting answer, and after three lost ones in a row: each of them may have been charged. */
export const checkAnswers = (known: ClientChannel | undefined): void => {
  if (known?.disputed !== undefined)
    throw new Error(`the seller's answer contradicts the voucher: ${known.disputed}; withdraw, or see goOn`)
  if (known === undefined || (known.unanswered ?? 0) < cutsMax) return
  const charged = `${known.charged} charged by its answers, at most ${signedIn(known)} by what was signed`
  throw new Error(`${known.unanswered} answers of this channel in a row were lost: ${charged}; see goOn`)
}
