// A seller's channels in the facilitator's store, for sellers that keep no state: serverless ones, or several instances
// without a database. The store decides by one statement, so that no two instances accept one voucher; its claimer
// claims and settles by the seller's policy, with the store's key as the channels' authorizer.
import { type EnrichedRefund, type ReceiverAuthorizer, refundOf } from "./BatchStellarServer.ts"
import type { Channel, Charged, RefundHold, Reserved, SellerChannels } from "./channels.ts"
import type { WireClaim } from "./vouchers.ts"
import { type SignedClaim, writeWatchFile } from "./watchFile.ts"

export interface RemoteOptions {
  readonly facilitator: string
  readonly apiKey?: string
  readonly network: string
}

/** The facilitator's announcement of the scheme; undefined without one. */
export const supportedKind = async ({ apiKey, facilitator, network }: RemoteOptions): Promise<any> => {
  const headers: Record<string, string> = apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }
  const { kinds }: any = await (await fetch(`${facilitator}/supported`, { headers })).json()
  return kinds.find((one: any) => one.scheme === "batch-settlement" && one.network === network)
}

/** When a seller's channels of one token are claimed. */
export interface ClaimPolicy {
  readonly token: string
  readonly claimEverySeconds: number
  /** Claim as soon as one channel has this much unclaimed, atomic units. */
  readonly claimAt?: string
}

/** Maximum requests for one decision. They are identical, and the store decides once. */
const triesMax = 3
const pauseMillis = 200
const answerMillis = 10_000

const post = async ({ apiKey, facilitator, network }: RemoteOptions, path: string, body: object): Promise<Response> => {
  const headers = {
    "content-type": "application/json",
    ...(apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` })
  }
  const request = { method: "POST", redirect: "manual" as const, headers, body: JSON.stringify({ network, ...body }) }
  for (let attempt = 1; ; attempt++) {
    const signal = AbortSignal.timeout(answerMillis)
    const sent = fetch(`${facilitator}/batch/v1/${path}`, { ...request, signal })
    const response = attempt < triesMax ? await sent.catch(() => undefined) : await sent
    if (response !== undefined && (response.status !== 503 || attempt === triesMax)) return response
    await response?.body?.cancel()
    await new Promise((resolve) => setTimeout(resolve, pauseMillis * attempt))
  }
}

const ask = async (options: RemoteOptions, path: string, body: object): Promise<any> => {
  const response = await post(options, path, body)
  const answer: any = await response.json()
  if (!response.ok) throw new Error(`${path}: ${answer.error} ${(answer.details ?? []).join("; ")}`)
  return answer
}

/**
 * The store records the refund, and signs it if its key is the channel's authorizer. Repeating it has the same result.
 */
const askRefund = async (options: RemoteOptions, { amount, channelId, pendingId, voucher }: RefundHold) => {
  const asked = { payment: pendingId, channelId, voucher, ...(amount === undefined ? {} : { amount }) }
  const signed: EnrichedRefund = await ask(options, "channels/refund", asked)
  return { ...signed, pendingId, refundNonce: Number(signed.refundNonce) }
}

export const remoteChannels = (options: RemoteOptions): SellerChannels => ({
  get: async (channelId) => (await ask(options, "channels/read", { channelId })).channels[0],
  list: async () => {
    const channels: Array<Channel> = []
    for (let after: string | undefined; ;) {
      const page = await ask(options, "channels/read", after === undefined ? {} : { after })
      channels.push(...page.channels)
      after = page.after
      if (after === undefined) return channels
    }
  },
  reserve: async ({ pendingId, ttlMillis, ...rest }): Promise<Reserved> => {
    const asked = { payment: pendingId, ttlSeconds: Math.ceil(ttlMillis / 1_000), ...rest }
    const { channel, status } = await ask(options, "channels/reserve", asked)
    // A request that was already charged gets no second answer for one voucher.
    return { status: status === "charged" ? "stale" : status, channel }
  },
  charge: ({ amount, channelId, pendingId, state }): Promise<Charged> =>
    ask(options, "channels/charge", {
      payment: pendingId,
      channelId,
      amount,
      ...(state === undefined ? {} : { state })
    }),
  release: async (channelId, pendingId) => {
    await ask(options, "channels/release", { payment: pendingId, channelId })
  },
  holdRefund: ({ amount, channelId, pendingId, voucher }) =>
    askRefund(options, { channelId, pendingId, voucher, amount }),
  sync: async (channelId, state, pendingId) => {
    await ask(options, "channels/sync", {
      channelId,
      state,
      ...(pendingId === undefined ? {} : { payment: pendingId })
    })
  }
})

/**
 * The facilitator's key, as `/supported` announces it to this API key, for a seller that keeps its own channels: its
 * claims and refunds go unsigned to the facilitator, which signs them for the same API key.
 */
export const delegateAuthorizer = async (options: RemoteOptions): Promise<ReceiverAuthorizer> => {
  const receiverAuthorizer = (await supportedKind(options))?.extra.receiverAuthorizer
  if (receiverAuthorizer === undefined) throw new Error(`${options.facilitator} holds no authorizer for this API key`)
  return {
    address: receiverAuthorizer,
    signClaims: () => undefined,
    refund: async (asked) => refundOf(asked)
  }
}

/** The store's key as the channels' authorizer: it signs refunds, and its claimer claims. */
export const remoteAuthorizer = async (options: RemoteOptions): Promise<ReceiverAuthorizer> => {
  const { receiverAuthorizer } = await ask(options, "authorizer", {})
  return {
    address: receiverAuthorizer,
    refund: async ({ channel: { channelId }, held: { amount, pendingId }, voucher }) => {
      const { pendingId: _, ...signed } = await askRefund(options, { channelId, pendingId, voucher, amount })
      return { ...signed, refundNonce: String(signed.refundNonce) }
    }
  }
}

/** Claims in one request. */
const signedClaimsMax = 16

/** Claims from a seller's own records, signed for a watchtower by the facilitator that holds the authorizer's key. */
export const signForWatch = async (
  options: RemoteOptions,
  claims: ReadonlyArray<WireClaim>
): Promise<ReadonlyArray<SignedClaim>> => {
  const signed: Array<SignedClaim> = []
  for (let at = 0; at < claims.length; at += signedClaimsMax) {
    const part = { claims: claims.slice(at, at + signedClaimsMax) }
    signed.push(...(await ask(options, "channels/export", part)).claims)
  }
  return signed
}

/** The text of a file with the signed claims of all charges in the store, for a watchtower. */
export const exportForWatch = async (options: RemoteOptions): Promise<string> => {
  const claims: Array<SignedClaim> = []
  for (let after: string | undefined; ;) {
    const page = await ask(options, "channels/export", after === undefined ? {} : { after })
    claims.push(...page.claims)
    after = page.after
    if (after === undefined) break
  }
  return writeWatchFile(options.network, (await supportedKind(options)).extra.batchContract, claims)
}

export const setClaimPolicy = async (options: RemoteOptions, policy: ClaimPolicy): Promise<void> => {
  await ask(options, "policy", policy)
}
