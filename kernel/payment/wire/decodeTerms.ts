// The terms of a payment that is not signed yet, read by the decoder of /verify itself: one reading of terms, however
// they come.
import type { Payment } from "../Payment.ts"
import { type DecodeOptions, decodePayment, type Undecodable } from "./Wire.ts"

/** Reads `{x402Version, paymentRequirements}`: the payload is empty, and what it accepts is what is required. */
export const decodeTerms = (body: Readonly<Record<string, unknown>>, options: DecodeOptions): Payment | Undecodable => {
  const { paymentRequirements, x402Version } = body
  const paymentPayload = { x402Version, accepted: paymentRequirements, payload: {} }
  return decodePayment({ x402Version, paymentRequirements, paymentPayload }, options)
}
