// The terms of an unsigned payment, read by the decoder of /verify itself, so that terms are always read in the same
// way.
import type { Payment } from "../Payment.ts"
import { type DecodeOptions, decodePayment, type Undecodable } from "./Wire.ts"

/** Reads `{x402Version, paymentRequirements}`: the payload is empty, and it accepts exactly the requirements. */
export const decodeTerms = (body: Readonly<Record<string, unknown>>, options: DecodeOptions): Payment | Undecodable => {
  const { paymentRequirements, x402Version } = body
  const paymentPayload = { x402Version, accepted: paymentRequirements, payload: {} }
  return decodePayment({ x402Version, paymentRequirements, paymentPayload }, options)
}
