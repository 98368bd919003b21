// How a tool fails: one of eleven codes that agents branch on, a sentence for people, whether a retry may succeed, and
// optional details (S223–S234). An error never contains third-party text, a secret or a refused address.
import { Data } from "effect"
import type { FetchRefused } from "../../kernel/http/safeFetch.ts"

const schemaVersion = 1

/**
 * Every code, and whether the same call may succeed later. `SETTLEMENT_UNKNOWN`: ask again for its outcome, never pay
 * again.
 */
const retryable = {
  INVALID_ARGUMENT: false,
  NO_RESULTS: false,
  RESOURCE_STALE: true,
  RESOURCE_CHANGED: false,
  UNTRUSTED_REDIRECT: false,
  PAYMENT_REQUIRED: true,
  BUDGET_EXCEEDED: false,
  PAYMENT_REJECTED: false,
  SETTLEMENT_UNKNOWN: true,
  UPSTREAM_TIMEOUT: true,
  UPSTREAM_PROTOCOL_ERROR: false
} as const

export type ToolErrorCode = keyof typeof retryable

export class ToolError extends Data.TaggedError("ToolError")<{
  readonly code: ToolErrorCode
  readonly message: string
  readonly details?: unknown
  /** Overrides the code's default. */
  readonly isRetryable?: boolean
}> {}

export const toolError = (code: ToolErrorCode, message: string, details?: unknown): ToolError =>
  new ToolError({ code, message, ...(details === undefined ? {} : { details }) })

/** The same error, marked as retryable by the identical call. */
export const retryableError = ({ code, details, message }: ToolError): ToolError =>
  new ToolError({ code, message, details, isRetryable: true })

/** The error as agents see it. */
export const toolErrorBody = ({ code, details, isRetryable, message }: ToolError): Record<string, unknown> => ({
  schemaVersion,
  code,
  message,
  retryable: isRetryable ?? retryable[code],
  ...(details === undefined ? {} : { details })
})

/**
 * The member of `toolErrorBody` that a listed schema contains. The server's instructions describe the others once for
 * all tools.
 */
export const errorCodeSchema = { type: "string", description: "Of an error." } as const

/** The tool error for a failed fetch. `caller` names the side that was called: the facilitator or the seller. */
export const fetchError =
  (caller: string) =>
  ({ reason }: FetchRefused): ToolError => {
    switch (reason) {
      case "blocked":
      case "insecure":
        return toolError("UNTRUSTED_REDIRECT", `${caller} has an address that is not allowed`, { reason })
      case "redirected":
        return toolError("UNTRUSTED_REDIRECT", `${caller} redirects to another origin, or too often`, { reason })
      case "too_large":
        return toolError("UPSTREAM_PROTOCOL_ERROR", `${caller} sent an answer that is too large`, { reason })
      case "timeout":
      case "unreachable":
      case "unresolved":
        return toolError(
          "UPSTREAM_TIMEOUT",
          reason === "timeout" ? `${caller} did not answer in time` : `${caller} cannot be reached`,
          { reason }
        )
    }
  }
