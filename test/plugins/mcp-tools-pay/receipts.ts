// Receipts as the transports write them and as observed sellers send them, for tests of delivery.
import type { Json } from "../mcp-tools/support.ts"
import { encode, type HttpReply } from "./httpSeller.ts"

/** A seller's receipt for an honest settlement, and the members that then mismatch. */
export type ReceiptShape<A> = readonly [
  what: string,
  change: (settled: Json) => A,
  mismatches: ReadonlyArray<string> | undefined
]

export const receipts: ReadonlyArray<ReceiptShape<unknown>> = [
  ["no payer", ({ payer: _, ...others }) => others, undefined],
  ["a payer that is null", (settled) => ({ ...settled, payer: null }), undefined],
  ["no amount", ({ amount: _, ...others }) => others, undefined],
  ["an amount that is a number", (settled) => ({ ...settled, amount: 5 }), ["amount"]],
  ["a hash with 0x", (settled) => ({ ...settled, transaction: `0x${settled["transaction"]}` }), ["transaction"]],
  ["no hash", (settled) => ({ ...settled, transaction: "" }), ["transaction"]],
  ["another's hash", (settled) => ({ ...settled, transaction: "a".repeat(64) }), ["transaction"]],
  ["no network", ({ network: _, ...others }) => others, ["network"]],
  ["the network's other spelling", (settled) => ({ ...settled, network: "stellar:testnet" }), undefined],
  ["another network", (settled) => ({ ...settled, network: "eip155:8453" }), ["network"]],
  ["another payer", (settled) => ({ ...settled, payer: "GELSE" }), ["payer"]],
  ["success as text", (settled) => ({ ...settled, success: "true" }), ["success"]],
  ["no success", (settled) => ({ ...settled, success: false, errorReason: "settlement_pending" }), ["success"]],
  ["a list", (settled) => [settled], ["receipt"]],
  ["nothing", () => undefined, ["receipt"]]
]

/** In a header: its text as sent; undefined sends none. */
export const httpReceipts: ReadonlyArray<ReceiptShape<string | undefined>> = [
  ...receipts.map(
    ([what, change, errors]) =>
      [
        what,
        (settled: Json) => {
          const receipt = change(settled)
          return receipt === undefined ? undefined : encode(receipt)
        },
        errors
      ] as const
  ),
  ["two receipts", (settled) => `${encode(settled)}, ${encode({})}`, ["receipt"]],
  ["a receipt that is no base64", () => "***", ["receipt"]]
]

/** The response with another receipt. */
export const withReceipt = (reply: HttpReply, receipt: string | undefined): HttpReply => {
  const { "payment-response": _, ...headers } = reply.headers
  return { ...reply, headers: receipt === undefined ? headers : { ...headers, "payment-response": receipt } }
}
