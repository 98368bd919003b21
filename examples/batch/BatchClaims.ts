// Claims of a seller that keeps its own channels: what was charged and not claimed is claimed, many channels in one
// transaction, and what was claimed is settled to the receiver. `start` does both on an interval, short enough that any
// withdrawal of a payer is answered before its delay ends. A claim that lands twice changes nothing, so a failure is
// only repeated.
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
}

const claimOf = ({ channelConfig, chargedCumulativeAmount, signature, signedMaxClaimable }: Channel): WireClaim => ({
  voucher: { channel: channelConfig, maxClaimableAmount: signedMaxClaimable },
  signature,
  totalClaimed: chargedCumulativeAmount
})

/** That number of channels does not fit one transaction, or one transaction's fee. */
const tooLarge = /_(too_many_claims|fee_exceeds_maximum)$/

export class BatchClaims {
  readonly #options: BatchClaimsOptions
  #timer: ReturnType<typeof setInterval> | undefined

  constructor(options: BatchClaimsOptions) {
    this.#options = options
  }

  /** Claims what is charged, of channels that `select` admits; the transactions. */
  async claim(select: (channel: Channel) => boolean = () => true): Promise<ReadonlyArray<string>> {
    const { network, server, token } = this.#options
    const sign = server.authorizer.signClaims
    if (sign === undefined) throw new Error("another claims for this seller")
    const contract = await this.#contract()
    const due = (await server.channels.list()).filter(
      (one) =>
        one.channelConfig.token === token &&
        BigInt(one.chargedCumulativeAmount) > BigInt(one.totalClaimed) &&
        select(one)
    )
    const size = this.#options.claimsPerTransaction ?? 40
    const transactions: Array<string> = []
    const parts = Array.from({ length: Math.ceil(due.length / size) }, (_, at) => due.slice(at * size, (at + 1) * size))
    for (let batch = parts.shift(); batch !== undefined; batch = parts.shift()) {
      const claims = batch.map(claimOf)
      const payload = { type: "claim", claims, claimAuthorizerSignature: sign(network, contract, claims) }
      const receipt = await this.#settle(payload, (reason) => claims.length > 1 && tooLarge.test(reason))
      if (receipt.success !== true) {
        const half = Math.ceil(batch.length / 2)
        parts.unshift(batch.slice(0, half), batch.slice(half))
        continue
      }
      transactions.push(receipt.transaction)
      for (const one of batch) {
        const { channelId, chargedCumulativeAmount } = one
        const now = (await server.channels.get(channelId)) ?? one
        await server.channels.sync(channelId, { ...stateIn(now)!, totalClaimed: chargedCumulativeAmount })
      }
    }
    return transactions
  }

  /** Pays out what was claimed; the transaction. */
  async settle(): Promise<string> {
    const { server, token } = this.#options
    return (await this.#settle({ type: "settle", receiver: server.receiver, token })).transaction
  }

  /**
   * Claims and settles each `seconds`, at most half the withdraw delay; `report` gets what went wrong, and the next
   * turn repeats it.
   */
  start(seconds: number, report: (error: unknown) => void): void {
    const most = this.#options.server.withdrawDelay / 2
    if (seconds > most) throw new Error(`an interval above ${most} s may miss a withdrawal`)
    const turn = async () => {
      if ((await this.claim()).length > 0) await this.settle()
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
  async #settle(payload: unknown, isExpected: (reason: string) => boolean = () => false): Promise<any> {
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
    const receipt: any = await client.settle({ x402Version: 2, accepted: terms, payload }, terms)
    if (receipt.success !== true && !isExpected(String(receipt.errorReason)))
      throw new Error(`${receipt.errorReason}: ${receipt.errorMessage ?? ""}`)
    return receipt
  }
}
