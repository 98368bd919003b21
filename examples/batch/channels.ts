// A seller's record of each payment channel, and the three decisions over it: reserve a channel for a request, charge
// it, release it. Each is one atomic step, so two instances of a seller never accept two vouchers on one base; a
// reservation that is never charged expires. `channelsOver` makes the decisions on any storage of the official packages
// (in memory, in files, Redis), with their record, field by field. `remoteChannels.ts` leaves them to a facilitator.

/** The immutable terms of a channel. Addresses are strkeys, `payerAuthorizer` and `receiverAuthorizer` ed25519 keys. */
export interface ChannelConfig {
  readonly payer: string
  readonly payerAuthorizer: string
  readonly receiver: string
  readonly receiverAuthorizer: string
  readonly token: string
  /** Seconds between the start of a payer's withdrawal and its end. */
  readonly withdrawDelay: number
  /** 32 bytes, hex. */
  readonly salt: string
}

/** A signed maximum: the receiver may claim up to `maxClaimableAmount` in total, atomic units, from that channel. */
export interface Voucher {
  readonly channelId: string
  readonly maxClaimableAmount: string
  readonly signature: string
}

/** The ledger's state of a channel, as the facilitator reports it. Amounts are atomic units. */
export interface LedgerState {
  readonly balance: string
  readonly totalClaimed: string
  /** Unix seconds; 0 when no withdrawal has started. */
  readonly withdrawRequestedAt: number
  readonly refundNonce: number
  /** A close time of the ledger, Unix seconds, at or before that of the reading. */
  readonly asOf?: number | undefined
  /** Time of the reading, Unix milliseconds; default now. With an earlier one, `sync` updates only the total. */
  readonly onchainSyncedAt?: number | undefined
}

/** A signed refund. Anyone may pay it out until the channel's nonce has moved or it expires. */
export interface PendingRefund {
  readonly pendingId: string
  readonly amount: string
  readonly refundNonce: number
  /** Last close time at which it is valid, Unix seconds. */
  readonly expiresAt: number
}

/** A channel's record, as the official packages store it. */
export interface Channel extends LedgerState {
  readonly channelId: string
  readonly channelConfig: ChannelConfig
  /** Total charged by the seller: the base of the next voucher. */
  readonly chargedCumulativeAmount: string
  /** The newest accepted voucher. */
  readonly signedMaxClaimable: string
  readonly signature: string
  readonly lastRequestTimestamp: number
  readonly pendingRequest?:
    | { readonly pendingId: string; readonly signedMaxClaimable: string; readonly expiresAt: number }
    | undefined
  readonly pendingRefund?: PendingRefund | null | undefined
}

/** The storage interface of the official packages: `updateChannel` is atomic for a channel. */
export interface ChannelStorage {
  readonly get: (channelId: string) => Promise<Channel | undefined>
  readonly list: () => Promise<Array<Channel>>
  /** `undefined` deletes; the same object leaves unchanged. */
  readonly updateChannel: (
    channelId: string,
    update: (current: Channel | undefined) => Channel | undefined
  ) => Promise<{ readonly channel: Channel | undefined; readonly status: "updated" | "unchanged" | "deleted" }>
}

export interface Reservation {
  /** Random identity of the request: a buyer could send its own identifier to two instances concurrently. */
  readonly pendingId: string
  readonly channelConfig: ChannelConfig
  readonly voucher: Voucher
  /** The maximum charge of the request, atomic units; 0 for a refund. */
  readonly price: string
  /** The ledger's state, if it was read for this request. */
  readonly state?: LedgerState | undefined
  /** Milliseconds until the reservation expires. */
  readonly ttlMillis: number
}

/** `stale`: the voucher is not the base plus the price. The channel shows the base, if there is a record. */
export interface Reserved {
  readonly status: "reserved" | "busy" | "stale"
  readonly channel?: Channel | undefined
}

export interface Charge {
  readonly channelId: string
  readonly pendingId: string
  /** The charged amount, at most the price, atomic units. */
  readonly amount: string
  readonly voucher: Voucher
  /** The ledger's state after a deposit. */
  readonly state?: LedgerState | undefined
}

export interface Charged {
  readonly status: "charged" | "missing" | "busy" | "exceeded"
  readonly channel?: Channel | undefined
}

export interface RefundHold {
  readonly channelId: string
  /** The request that has reserved the channel. */
  readonly pendingId: string
  /** The voucher for the total charged. */
  readonly voucher: Voucher
  /** The amount that the buyer requests; default the whole rest. */
  readonly amount?: string | undefined
}

/** A seller's channels. Every method that changes a channel is atomic. */
export interface SellerChannels {
  readonly get: (channelId: string) => Promise<Channel | undefined>
  readonly list: () => Promise<ReadonlyArray<Channel>>
  readonly reserve: (reservation: Reservation) => Promise<Reserved>
  readonly charge: (charge: Charge) => Promise<Charged>
  /** Releases a reservation; without effect on another request's. */
  readonly release: (channelId: string, pendingId: string) => Promise<void>
  /**
   * Records a refund before it is signed. Until the ledger shows that its nonce has moved or it has expired, nothing is
   * sold from that amount, even if its transaction failed. Rejects if nothing is left or the request lost the channel.
   */
  readonly holdRefund: (hold: RefundHold) => Promise<PendingRefund>
  /** Stores the ledger's state after a claim or refund; releases the request's reservation. */
  readonly sync: (channelId: string, state: LedgerState, pendingId?: string) => Promise<void>
}

/** The state in a verify's or settle's `extra`; undefined if it is incomplete. */
export const stateIn = (extra: any): LedgerState | undefined => {
  const { asOf, balance, refundNonce, totalClaimed, withdrawRequestedAt } = extra ?? {}
  if (![balance, totalClaimed].every((one) => typeof one === "string" && /^\d{1,39}$/.test(one))) return undefined
  return {
    balance,
    totalClaimed,
    withdrawRequestedAt: Number(withdrawRequestedAt ?? 0),
    refundNonce: Number(refundNonce ?? 0),
    ...(Number.isSafeInteger(asOf) ? { asOf } : {})
  }
}

/** The base implied by the voucher of an unknown channel. The buyer sets it; the ledger's state is its lower bound. */
export const impliedBase = (maxClaimable: string, price: string): string => {
  const base = BigInt(maxClaimable) - BigInt(price)
  return String(base < 0n ? 0n : base)
}

const hasReservation = (channel: Channel | undefined, now: number): boolean =>
  channel?.pendingRequest !== undefined && channel.pendingRequest.expiresAt > now

const newChannel = ({ channelConfig, price, voucher }: Reservation, now: number): Channel => ({
  channelId: voucher.channelId,
  channelConfig,
  chargedCumulativeAmount: impliedBase(voucher.maxClaimableAmount, price),
  signedMaxClaimable: voucher.maxClaimableAmount,
  signature: voucher.signature,
  balance: "0",
  totalClaimed: "0",
  withdrawRequestedAt: 0,
  refundNonce: 0,
  lastRequestTimestamp: now
})

/** Whether a reading shows that a signed refund was paid out, or can no longer be. */
const isOver = ({ expiresAt, refundNonce }: PendingRefund, state: LedgerState): boolean =>
  state.refundNonce > refundNonce || (state.asOf ?? 0) > expiresAt

/** Whether a reading shows the channel before a refund or withdrawal that the record includes: its node is behind. */
const isBehind = ({ refundNonce }: Channel, state: LedgerState | undefined): boolean =>
  state !== undefined && state.refundNonce < refundNonce

const withState = (channel: Channel, state: LedgerState | undefined, now: number): Channel =>
  state === undefined || isBehind(channel, state)
    ? channel
    : {
        ...channel,
        balance: state.balance,
        totalClaimed: state.totalClaimed,
        withdrawRequestedAt: state.withdrawRequestedAt,
        refundNonce: state.refundNonce,
        asOf: state.asOf ?? channel.asOf,
        onchainSyncedAt: now,
        pendingRefund:
          channel.pendingRefund == null || isOver(channel.pendingRefund, state) ? undefined : channel.pendingRefund
      }

/** Whether a signed refund leaves too little for a request. Another refund waits until the first has ended. */
const isHeld = ({ balance, pendingRefund }: Channel, { price, voucher }: Reservation): boolean =>
  pendingRefund != null &&
  (price === "0" || BigInt(voucher.maxClaimableAmount) > BigInt(balance) - BigInt(pendingRefund.amount))

export const largest = (...amounts: ReadonlyArray<bigint>): bigint => amounts.reduce((a, b) => (a > b ? a : b))

/**
 * Whether the channel's balance covers a voucher's base. A deposit in the same request does not count, because it may
 * never be sent, and the contract refuses a claim above the balance.
 */
const isCovered = ({ price, voucher }: Reservation, balance: string): boolean =>
  BigInt(impliedBase(voucher.maxClaimableAmount, price)) <= BigInt(balance)

/** Whether a voucher's base is above the newest recorded voucher: the record is then older than the voucher. */
const isOld = ({ balance, signedMaxClaimable }: Channel, reservation: Reservation): boolean =>
  BigInt(reservation.voucher.maxClaimableAmount) - BigInt(reservation.price) > BigInt(signedMaxClaimable) &&
  isCovered(reservation, reservation.state?.balance ?? balance)

/**
 * The record before a request. The claimed amount was charged, even if a lost or restored record shows less. A verified
 * voucher with a higher base raises an old record, because keeping the old one would lose more.
 */
const brought = (channel: Channel, reservation: Reservation, now: number): Channel => {
  const { price, state, voucher } = reservation
  const { maxClaimableAmount, signature } = voucher
  const [charged, claimed] = [BigInt(channel.chargedCumulativeAmount), BigInt(state?.totalClaimed ?? 0)]
  const synced = withState(channel, state, now)
  if (!isOld(channel, reservation)) return { ...synced, chargedCumulativeAmount: String(largest(charged, claimed)) }
  const implied = BigInt(maxClaimableAmount) - BigInt(price)
  return {
    ...synced,
    chargedCumulativeAmount: String(largest(charged, claimed, implied)),
    signedMaxClaimable: maxClaimableAmount,
    signature
  }
}

/**
 * After a claim, update only the total: the other values were read before it, and a refund or withdrawal may have
 * happened since.
 */
const withClaimed = (channel: Channel, state: LedgerState): Channel =>
  BigInt(state.totalClaimed) > BigInt(channel.totalClaimed) ? { ...channel, totalClaimed: state.totalClaimed } : channel

const reserve = async (storage: ChannelStorage, reservation: Reservation): Promise<Reserved> => {
  const { pendingId, price, state, ttlMillis, voucher } = reservation
  const now = Date.now()
  let decided: Reserved | undefined
  await storage.updateChannel(voucher.channelId, (current) => {
    if (current === undefined && state !== undefined && !isCovered(reservation, state.balance)) {
      decided = { status: "stale" }
      return current
    }
    const base = current ?? newChannel(reservation, now)
    const decide = (status: Reserved["status"], channel: Channel) => {
      decided = { status, channel }
      return status === "reserved" ? channel : current
    }
    if (hasReservation(current, now) && current!.pendingRequest!.pendingId !== pendingId) return decide("busy", base)
    if (isBehind(base, state)) return decide("busy", base)
    const synced = brought(base, reservation, now)
    const charged = BigInt(synced.chargedCumulativeAmount)
    if (BigInt(voucher.maxClaimableAmount) !== charged + BigInt(price)) return decide("stale", base)
    if (isHeld(synced, reservation)) return decide("busy", synced)
    const pendingRequest = { pendingId, signedMaxClaimable: voucher.maxClaimableAmount, expiresAt: now + ttlMillis }
    const reserved = { lastRequestTimestamp: now, pendingRequest }
    return decide("reserved", { ...synced, ...reserved })
  })
  return decided!
}

const charge = async (storage: ChannelStorage, { amount, channelId, pendingId, state, voucher }: Charge) => {
  const now = Date.now()
  let decided: Charged = { status: "missing" }
  await storage.updateChannel(channelId, (current) => {
    if (current === undefined) return current
    const isOwn =
      current.pendingRequest?.pendingId === pendingId &&
      current.pendingRequest.signedMaxClaimable === voucher.maxClaimableAmount
    if (!isOwn) {
      decided = { status: "busy", channel: current }
      return current
    }
    const charged = BigInt(current.chargedCumulativeAmount) + BigInt(amount)
    if (charged > BigInt(voucher.maxClaimableAmount)) {
      decided = { status: "exceeded", channel: current }
      return { ...current, pendingRequest: undefined }
    }
    const channel: Channel = {
      ...withState(current, state, now),
      chargedCumulativeAmount: String(charged),
      // A voucher for a lower amount, after a call that used less than its price, proves nothing more.
      ...(BigInt(voucher.maxClaimableAmount) < BigInt(current.signedMaxClaimable)
        ? {}
        : { signedMaxClaimable: voucher.maxClaimableAmount, signature: voucher.signature }),
      lastRequestTimestamp: now,
      pendingRequest: undefined
    }
    decided = { status: "charged", channel }
    return channel
  })
  return decided
}

/** Lifetime of a refund, seconds of the ledger's close time. */
export const refundSeconds = 300

const holdRefund = async (storage: ChannelStorage, { amount, channelId, pendingId, voucher }: RefundHold) => {
  let held: PendingRefund | undefined
  let reason = "the request has not reserved the channel"
  await storage.updateChannel(channelId, (current) => {
    if (current?.pendingRequest?.pendingId !== pendingId) return current
    const { asOf = 0, balance, chargedCumulativeAmount, pendingRefund, refundNonce } = current
    if (pendingRefund != null) {
      if (pendingRefund.pendingId === pendingId) held = pendingRefund
      return current
    }
    const left = BigInt(balance) - BigInt(chargedCumulativeAmount)
    const asked = amount === undefined ? left : BigInt(amount)
    if (voucher.maxClaimableAmount !== chargedCumulativeAmount) reason = "the voucher does not match the charge"
    else if (asked <= 0n || asked > left) reason = `${left} is left to refund`
    else {
      const expiresAt = Math.max(asOf, Math.floor(Date.now() / 1_000)) + refundSeconds
      held = { pendingId, amount: String(asked), refundNonce, expiresAt }
    }
    return held === undefined ? current : { ...current, pendingRefund: held }
  })
  if (held === undefined) throw new Error(reason)
  return held
}

/** Whether a channel has no deposit and no charge: its buyer sent the voucher of a deposit that was not settled. */
const isEmpty = ({ balance, chargedCumulativeAmount }: Channel): boolean =>
  balance === "0" && chargedCumulativeAmount === "0"

/** The decisions over a storage of the official packages. */
export const channelsOver = (storage: ChannelStorage): SellerChannels => ({
  get: (channelId) => storage.get(channelId),
  list: () => storage.list(),
  reserve: (reservation) => reserve(storage, reservation),
  charge: (asked) => charge(storage, asked),
  release: async (channelId, pendingId) => {
    await storage.updateChannel(channelId, (current) => {
      if (current?.pendingRequest?.pendingId !== pendingId) return current
      return isEmpty(current) ? undefined : { ...current, pendingRequest: undefined }
    })
  },
  holdRefund: (hold) => holdRefund(storage, hold),
  sync: async (channelId, state, pendingId) => {
    await storage.updateChannel(channelId, (current) => {
      if (current === undefined) return current
      const isNew = state.onchainSyncedAt === undefined
      const synced = isNew ? withState(current, state, Date.now()) : withClaimed(current, state)
      return current.pendingRequest?.pendingId === pendingId ? { ...synced, pendingRequest: undefined } : synced
    })
  }
})

/** A storage in memory for one process; lost when it ends. */
export const memoryStorage = (): ChannelStorage => {
  const channels = new Map<string, Channel>()
  return {
    get: async (channelId) => channels.get(channelId),
    list: async () => [...channels.values()],
    updateChannel: async (channelId, update) => {
      const current = channels.get(channelId)
      const next = update(current)
      if (next === current) return { channel: current, status: "unchanged" }
      if (next === undefined) {
        channels.delete(channelId)
        return { channel: undefined, status: "deleted" }
      }
      channels.set(channelId, next)
      return { channel: next, status: "updated" }
    }
  }
}
