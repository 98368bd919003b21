// Claims of a seller that keeps its own channels: what was charged and not claimed is claimed, many channels in one
// transaction, and what was claimed is settled to the receiver. `start` does both on an interval, short enough that any
// withdrawal of a payer is answered before its delay ends. A claim that lands twice changes nothing, so a failure is
// only repeated; a channel that cannot be claimed keeps no other, and rests like those of the store.
import { claimPauseSeconds } from "../../plugins/batch-store/contract.ts"
import { sha256 } from "../seller/outcome.mjs"
import { facilitatorClient } from "../seller-http.ts"
import type { BatchStellarServer } from "./BatchStellarServer.ts"
import { stateIn } from "./BatchStellarServer.ts"
import type { Channel } from "./channels.ts"
import type { WireClaim } from "./vouchers.ts"

export interface BatchClaimsOptions {
  readonly server: BatchStellarServer
  readonly facilitator: string
  readonly network: string
  readonly token: string
  /** The contract that the facilitator announces; read from its /supported when absent. */
  readonly contract?: string
  /** Default 40. */
  readonly claimsPerTransaction?: number
  readonly apiKey?: string
  /** Unix seconds from which a claim's signature counts. Default: this machine's clock. */
  readonly now?: () => number | Promise<number>
}

interface SignedClaim {
  readonly payload: { readonly type: "claim"; readonly claims: ReadonlyArray<WireClaim>; readonly expiresAt: number }
  readonly idempotencyKey: string
}

const claimOf = ({ channelConfig, chargedCumulativeAmount, signature, signedMaxClaimable }: Channel): WireClaim => ({
  voucher: { channel: channelConfig, maxClaimableAmount: signedMaxClaimable },
  signature,
  totalClaimed: chargedCumulativeAmount
})

/** How long a claim's signature counts, seconds. */
const claimSeconds = 600
/** All of it was claimed or paid out before, by a request whose answer was lost or by another's. */
const nothingLeft = /_(nothing_to_(claim|settle)|already_settled)$/
/** What the ledger's state or the fees say against a claim: another claim may hold. */
const refusedByScheme = /^invalid_batch_settlement_/

const newKey = (): string => sha256(`tollkeeper-claim-v1\n${crypto.randomUUID()}`)

export class BatchClaims {
  readonly #options: BatchClaimsOptions
  /** Channels whose claim failed by itself: when it did first, and until when they rest, Unix milliseconds. */
  readonly #failed = new Map<string, { readonly since: number; readonly until: number }>()
  /** Signed claims whose end is not known, by what they claim. They are sent again as they are. */
  readonly #signed = new Map<string, SignedClaim>()
  #timer: ReturnType<typeof setInterval> | undefined

  constructor(options: BatchClaimsOptions) {
    this.#options = options
  }

  /** Claims what is charged, of channels that `select` admits; the transactions, empty for what was claimed before. */
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
    // What failed before is claimed by itself: it must not have the others claimed in halves again.
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
        // It is too large, or one of it cannot be claimed, which must not keep the others.
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

  /** The claim of a batch: the one that was signed before, while its end is not known and it has not expired. */
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
      // The ledger was not read: a withdrawal may have been started since it was.
      await channels.sync(one.channelId, { ...state, onchainSyncedAt: now.onchainSyncedAt ?? 0 })
    }
  }

  /** Pays out what was claimed; the transaction, empty when nothing was left to pay. */
  async settle(): Promise<string> {
    const { server, token } = this.#options
    const payload = { type: "settle", receiver: server.receiver, token }
    return (await this.#settle(payload, (reason) => nothingLeft.test(reason))).transaction
  }

  /**
   * Claims and settles each `seconds`, at most half the withdraw delay; `report` gets what went wrong, and the next
   * turn repeats it.
   */
  start(seconds: number, report: (error: unknown) => void): void {
    const most = this.#options.server.withdrawDelay / 2
    if (seconds > most) throw new Error(`an interval above ${most} s may miss a withdrawal`)
    const turn = async () => {
      await this.claim().catch(report)
      // Also what an earlier claim raised whose settlement failed, or that another made.
      await this.settle()
    }
    this.#timer = setInterval(() => void turn().catch(report), seconds * 1_000)
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  async #contract(): Promise<string> {
    const { apiKey, contract, facilitator, network } = this.#options
    if (contract !== undefined) return contract
    const headers: Record<string, string> = apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }
    const { kinds }: any = await (await fetch(`${facilitator}/supported`, { headers })).json()
    const kind = kinds.find((one: any) => one.scheme === "batch-settlement" && one.network === network)
    if (kind === undefined) throw new Error(`${facilitator} does not offer batch-settlement on ${network}`)
    return kind.extra.batchContract
  }

  /** The settlement's answer; throws for a refusal unless `isExpected`. */
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
