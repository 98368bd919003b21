// Claims for a seller with its own channel records. It claims all unclaimed charges, many channels in one transaction,
// and settles the claimed amounts to the receiver. `start` does both on an interval that is short enough to answer
// every withdrawal of a payer before its delay ends. A claim that lands twice changes nothing, so failed claims are
// retried. A channel that cannot be claimed does not block the others; it backs off as in the channel store.
import { claimPauseSeconds } from "../../plugins/batch-store/contract.ts"
import { sha256 } from "../seller/outcome.mjs"
import { facilitatorClient } from "../seller-http.ts"
import type { BatchStellarServer } from "./BatchStellarServer.ts"
import { stateIn } from "./channels.ts"
import type { Channel } from "./channels.ts"
import type { WireClaim } from "./vouchers.ts"
import { signForWatch, supportedKind } from "./remoteChannels.ts"
import { claimOf, exportSeconds, type SignedClaim as WatchedClaim, writeWatchFile } from "./watchFile.ts"

export interface BatchClaimsOptions {
  readonly server: BatchStellarServer
  readonly facilitator: string
  readonly network: string
  readonly token: string
  /** The facilitator's contract; default: read from its /supported. */
  readonly contract?: string
  /** Default 40. */
  readonly claimsPerTransaction?: number
  readonly apiKey?: string
  /** Current time in Unix seconds, to date signatures. Default: this machine's clock. */
  readonly now?: () => number | Promise<number>
}

interface SignedClaim {
  readonly payload: { readonly type: "claim"; readonly claims: ReadonlyArray<WireClaim>; readonly expiresAt: number }
  readonly idempotencyKey: string
}

/** Lifetime of a claim's signature, seconds. */
const claimSeconds = 600
/** Another request, perhaps one with a lost answer, has claimed or paid out everything. */
const nothingLeft = /_(nothing_to_(claim|settle)|already_settled)$/
/** The ledger's state or the fees rule out this claim; another claim may succeed. */
const refusedByScheme = /^invalid_batch_settlement_/

const newKey = (): string => sha256(`tollkeeper-claim-v1\n${crypto.randomUUID()}`)

export class BatchClaims {
  readonly #options: BatchClaimsOptions
  /** Channels with a failed single claim: time of the first failure and end of the backoff, Unix milliseconds. */
  readonly #failed = new Map<string, { readonly since: number; readonly until: number }>()
  /** Signed claims without a known outcome, by their content. We resend them unchanged. */
  readonly #signed = new Map<string, SignedClaim>()
  #timer: ReturnType<typeof setInterval> | undefined

  constructor(options: BatchClaimsOptions) {
    this.#options = options
  }

  /** Claims the charges of the channels that `select` accepts. Returns the transactions; empty if all was claimed. */
  async claim(select: (channel: Channel) => boolean = () => true): Promise<ReadonlyArray<string>> {
    const { server, token } = this.#options
    const due = (await server.channels.list()).filter(
      (one) =>
        one.channelConfig.token === token &&
        (this.#failed.get(one.channelId)?.until ?? 0) <= Date.now() &&
        BigInt(one.chargedCumulativeAmount) > BigInt(one.totalClaimed) &&
        select(one)
    )
    const size = this.#options.claimsPerTransaction ?? 40
    const transactions: Array<string> = []
    const refused: Array<string> = []
    // A channel that failed before gets its own claim, so that the others are not split again.
    const [alone, together] = [true, false].map((is) => due.filter((one) => this.#failed.has(one.channelId) === is))
    const parts = Array.from({ length: Math.ceil(together!.length / size) }, (_, at) =>
      together!.slice(at * size, (at + 1) * size)
    )
    parts.push(...alone!.map((one) => [one]))
    for (let batch = parts.shift(); batch !== undefined; batch = parts.shift()) {
      const { idempotencyKey, payload } = await this.#sign(batch)
      const isExpected = (reason: string) => nothingLeft.test(reason) || refusedByScheme.test(reason)
      const receipt = await this.#settle(payload, isExpected, idempotencyKey)
      this.#signed.delete(JSON.stringify(payload.claims))
      const isDone = receipt.success === true || nothingLeft.test(String(receipt.errorReason))
      if (!isDone && batch.length > 1) {
        // The batch is too large, or one of its channels cannot be claimed and must not block the others.
        const half = Math.ceil(batch.length / 2)
        parts.unshift(batch.slice(0, half), batch.slice(half))
        continue
      }
      if (receipt.success === true) transactions.push(receipt.transaction)
      if (isDone) await this.#noteClaimed(batch)
      else this.#rest(batch[0]!)
      if (!isDone) refused.push(`${batch[0]!.channelId}: ${receipt.errorReason} ${receipt.errorMessage ?? ""}`)
    }
    if (refused.length > 0)
      throw new Error(`${refused.length} of ${due.length} channels are not claimed: ${refused.join("; ")}`)
    return transactions
  }

  /** The text of a file with the signed claims of all charges, for a watchtower. Export again after new charges. */
  async exportForWatch(): Promise<string> {
    const { network, now, server, token } = this.#options
    const contract = await this.#contract()
    const expiresAt = Math.floor((await now?.()) ?? Date.now() / 1_000) + exportSeconds
    const due = (await server.channels.list()).filter(
      (one) => one.channelConfig.token === token && BigInt(one.chargedCumulativeAmount) > BigInt(one.totalClaimed)
    )
    const sign = server.authorizer.signClaims
    if (sign === undefined) throw new Error("another holds the authorizer's key and exports")
    const claims = due.map((channel) => {
      const claim = claimOf(channel)
      return { ...claim, expiresAt, claimAuthorizerSignature: sign(network, contract, [claim], expiresAt) }
    })
    // Without the key here, the facilitator signs as it signs the seller's claims.
    const isSigned = claims.every((claim): claim is WatchedClaim => claim.claimAuthorizerSignature !== undefined)
    const signed = isSigned ? claims : await signForWatch(this.#options, due.map(claimOf))
    return writeWatchFile(network, contract, signed)
  }

  /** The signed claim of a batch. Reuses the earlier signature while its outcome is unknown and it has not expired. */
  async #sign(batch: ReadonlyArray<Channel>): Promise<SignedClaim> {
    const { network, now, server } = this.#options
    const sign = server.authorizer.signClaims
    if (sign === undefined) throw new Error("another claims for this seller")
    const claims = batch.map(claimOf)
    // The ledger's close times may be ahead of this machine's clock.
    const closes = batch.map(({ asOf = 0, withdrawRequestedAt }) => Math.max(asOf, withdrawRequestedAt))
    const seconds = Math.max(Math.floor((await now?.()) ?? Date.now() / 1_000), ...closes)
    for (const [id, { payload }] of this.#signed) if (payload.expiresAt <= seconds) this.#signed.delete(id)
    const id = JSON.stringify(claims)
    const open = this.#signed.get(id)
    if (open !== undefined) return open
    const expiresAt = seconds + claimSeconds
    const claimAuthorizerSignature = sign(network, await this.#contract(), claims, expiresAt)
    const payload = { type: "claim" as const, claims, expiresAt, claimAuthorizerSignature }
    const signed = { payload, idempotencyKey: newKey() }
    this.#signed.set(id, signed)
    return signed
  }

  #rest({ channelId, withdrawRequestedAt }: Channel): void {
    const now = Date.now()
    const { since } = this.#failed.get(channelId) ?? { since: now }
    const seconds = claimPauseSeconds(withdrawRequestedAt > 0, (now - since) / 1_000)
    this.#failed.set(channelId, { since, until: now + seconds * 1_000 })
  }

  async #noteClaimed(batch: ReadonlyArray<Channel>): Promise<void> {
    const { channels } = this.#options.server
    for (const one of batch) {
      this.#failed.delete(one.channelId)
      const now = (await channels.get(one.channelId)) ?? one
      const state = { ...stateIn(now)!, totalClaimed: one.chargedCumulativeAmount }
      // We did not read the ledger: a withdrawal may have started since the last reading.
      await channels.sync(one.channelId, { ...state, onchainSyncedAt: now.onchainSyncedAt ?? 0 })
    }
  }

  /** Pays out the claimed amounts. Returns the transaction; empty if nothing was left to pay. */
  async settle(): Promise<string> {
    const { server, token } = this.#options
    const payload = { type: "settle", receiver: server.receiver, token }
    return (await this.#settle(payload, (reason) => nothingLeft.test(reason))).transaction
  }

  /**
   * Claims and settles every `seconds`, at most half the withdraw delay. Errors go to `report`, and the next turn
   * retries.
   */
  start(seconds: number, report: (error: unknown) => void): void {
    const most = this.#options.server.withdrawDelay / 2
    if (seconds > most) throw new Error(`an interval above ${most} s may miss a withdrawal`)
    const turn = async () => {
      await this.claim().catch(report)
      // Includes earlier claims without a successful settlement, and claims by others.
      await this.settle()
    }
    this.#timer = setInterval(() => void turn().catch(report), seconds * 1_000)
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  async #contract(): Promise<string> {
    const { contract, facilitator, network } = this.#options
    if (contract !== undefined) return contract
    const kind = await supportedKind(this.#options)
    if (kind === undefined) throw new Error(`${facilitator} does not offer batch-settlement on ${network}`)
    return kind.extra.batchContract
  }

  /** The response of `/settle`; throws for a refusal unless `isExpected` accepts it. */
  async #settle(
    payload: unknown,
    isExpected: (reason: string) => boolean = () => false,
    idempotencyKey = newKey()
  ): Promise<any> {
    const { apiKey, facilitator, network, server, token } = this.#options
    const terms = {
      scheme: "batch-settlement",
      network,
      asset: token,
      amount: "0",
      payTo: server.receiver,
      maxTimeoutSeconds: 60,
      extra: {}
    }
    const client = facilitatorClient({ facilitator, ...(apiKey === undefined ? {} : { apiKey }) })
    const receipt: any = await client.settle({ x402Version: 2, accepted: terms, payload }, terms, idempotencyKey)
    if (receipt.success !== true && !isExpected(String(receipt.errorReason)))
      throw new Error(`${receipt.errorReason}: ${receipt.errorMessage ?? ""}`)
    return receipt
  }
}
