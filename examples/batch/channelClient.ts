// A facilitator's two calls with the seller's part of `batch-settlement` around them, in the order of the official
// resource server: verify also reserves the channel, settle also charges it. A seller without the official packages
// sells by channels as it sells by `exact`: `soldOnce` takes this client.
import type { Client } from "../seller/outcome.mjs"
import type { BatchStellarServer } from "./BatchStellarServer.ts"

/** Payments without a known outcome that one process continues. */
const openMax = 1_000

export const channelClient = (server: BatchStellarServer, client: Client): Client => {
  const hooks = server.schemeHooks
  /** By the key of their sale. A repetition of a pending payment continues with the reservation of the first. */
  const open = new Map<string, any>()

  /** The settlement's answer: the charge of a voucher, or the facilitator's receipt. */
  const settled = async (paymentPayload: any, requirements: any, key: string | undefined): Promise<any> => {
    const context = { paymentPayload, requirements }
    const charged = await hooks.onBeforeSettle(context)
    if (charged?.skip === true) return charged.result
    const { network } = requirements
    if (charged?.abort === true) return { success: false, errorReason: charged.reason, transaction: "", network }
    const added = await server.enrichSettlementPayload(context)
    const payload = { ...paymentPayload.payload, ...added }
    const receipt: any = await client.settle({ ...paymentPayload, payload }, requirements, key)
    await hooks.onAfterSettle({ ...context, result: receipt })
    const more = await server.enrichSettlementResponse(context)
    if (more === undefined || receipt.success !== true) return receipt
    const channelState = { ...receipt.extra?.channelState, ...more.channelState }
    return { ...receipt, extra: { ...receipt.extra, ...more, channelState } }
  }

  return {
    ...client,
    verify: async (paymentPayload, requirements, key): Promise<any> => {
      if (open.has(key ?? "")) return { isValid: true, payer: paymentPayload.payload.channelConfig.payer }
      const context = { paymentPayload, requirements }
      const before = await hooks.onBeforeVerify(context)
      if (before?.abort === true) return { isValid: false, invalidReason: before.reason }
      const result: any = before?.skip === true ? before.result : await client.verify(paymentPayload, requirements, key)
      if (result.isValid !== true) return result
      const after = await hooks.onAfterVerify({ ...context, result })
      return after?.abort === true ? { isValid: false, invalidReason: after.reason } : result
    },
    settle: async (asked, requirements, key) => {
      const payment = open.get(key ?? "") ?? asked
      const keep = () => {
        if (open.size >= openMax) open.delete(open.keys().next().value!)
        if (key !== undefined) open.set(key, payment)
      }
      const receipt = await settled(payment, requirements, key).catch((error) => {
        keep()
        throw error
      })
      if (receipt.errorReason === "settlement_pending") {
        keep()
        return receipt
      }
      open.delete(key ?? "")
      if (receipt.success !== true) await hooks.onSettleFailure({ paymentPayload: payment })
      return receipt
    }
  }
}
