// Validation of the envelope against the settings, as a list of named checks before any scheme: the network is served,
// the scheme exists, the buyer accepted the seller's terms, the asset is listed, the timeout is within bounds. The
// scheme checks the relation of the accepted amount to the required one.
import type { NetworkValues } from "../config/Network.ts"
import type { Payment } from "./Payment.ts"
import { type Refusal, refusal, type CoreReason } from "./Refusal.ts"

interface Check {
  readonly name: string
  readonly reason: CoreReason
  readonly message: string
  readonly fails: (payment: Payment, context: CheckContext) => boolean
}

export interface CheckContext {
  readonly network: Pick<NetworkValues, "id" | "assets" | "timeoutSecondsMax">
  readonly hasScheme: (scheme: string) => boolean
  /** Whether no part of the payload expires by the timeout, which may then be 0; absent: false. */
  readonly isUntimed?: (payment: Payment) => boolean
}

export const checks: ReadonlyArray<Check> = [
  {
    name: "the network is served",
    reason: "unsupported_network",
    message: "the network is not enabled here",
    fails: ({ requirements }, { network }) => requirements.network !== network.id
  },
  {
    name: "the scheme is served",
    reason: "unsupported_scheme",
    message: "no such scheme is served here",
    fails: ({ requirements }, { hasScheme }) => !hasScheme(requirements.scheme)
  },
  {
    name: "both copies name the same scheme",
    reason: "unsupported_scheme",
    message: "the accepted scheme is not the required one",
    fails: ({ accepted, requirements }) => accepted.scheme !== requirements.scheme
  },
  {
    name: "the buyer accepted these terms",
    reason: "requirements_mismatch",
    message: "accepted and requirements differ in asset, payTo or maxTimeoutSeconds",
    fails: ({ accepted, requirements }) =>
      accepted.asset !== requirements.asset ||
      accepted.payTo !== requirements.payTo ||
      accepted.maxTimeoutSeconds !== requirements.maxTimeoutSeconds
  },
  {
    name: "the asset is listed",
    reason: "invalid_ledger_asset_not_allowed",
    message: "the asset is not on this facilitator's list",
    fails: ({ requirements }, { network }) => !network.assets.has(requirements.asset)
  },
  {
    name: "the timeout is within bounds",
    reason: "requirements_mismatch",
    message: "maxTimeoutSeconds is above this facilitator's bound",
    fails: ({ requirements }, { network }) => requirements.maxTimeoutSeconds > network.timeoutSecondsMax
  },
  {
    name: "there is a timeout where something expires by it",
    reason: "invalid_request",
    message: "paymentRequirements.maxTimeoutSeconds: a positive integer is required",
    fails: (payment, { isUntimed }) =>
      payment.requirements.maxTimeoutSeconds === 0 && (isUntimed === undefined || !isUntimed(payment))
  }
]

export const checkEnvelope = (payment: Payment, context: CheckContext): Refusal | undefined => {
  const failed = checks.find((check) => check.fails(payment, context))
  return failed === undefined ? undefined : refusal(failed.reason, failed.message)
}
