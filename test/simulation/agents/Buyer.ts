// An agent that repeats one call until it has its answer.
import type { ToolError } from "../../../plugins/mcp-tools/contract.ts"
import type { Invocation, Output } from "../../../plugins/mcp-tools-pay/call/Invocation.ts"
import type { PaymentOption } from "../../../plugins/mcp-tools-pay/seller/SellerWire.ts"
import type { AgentSeller } from "./AgentSeller.ts"

/** Amount of each payment in atomic units. */
export const amount = 2_000n

/** An answer that an agent received, and the payment in it. */
interface Delivered {
  readonly output: Output
  readonly atMillis: number
}

/** One agent's call, made until it has its answer. */
export class Buyer {
  readonly invocation: Invocation
  readonly seller: AgentSeller
  readonly answers: Array<Delivered> = []
  readonly errors: Array<{ readonly error: ToolError; readonly atMillis: number }> = []
  readonly maxTimeoutSeconds: number
  isAsking = 0

  constructor(name: string, seller: AgentSeller, maxTimeoutSeconds: number) {
    const { asset, payTo } = seller
    const option: PaymentOption = {
      scheme: "exact",
      network: "ledger:testnet",
      asset,
      amount,
      payTo,
      maxTimeoutSeconds,
      feesSponsored: true,
      extra: "{}",
      sent: { network: "ledger:testnet" }
    }
    this.seller = seller
    this.maxTimeoutSeconds = maxTimeoutSeconds
    this.invocation = {
      key: name,
      ref: `v1.${name}`,
      versionHash: "v",
      option,
      about: { kind: "mcp", origin: `https://${name}.example`, grade: "provisional" },
      bought: { title: name, action: name, arguments: {} }
    }
  }
}
