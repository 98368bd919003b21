// Why a resource is or is not listed, for people: the same rows as the reasons of refused payments.
import type { RefusalRow } from "../../../kernel/payment/Refusal.ts"
import type { PublicReason } from "./Declaration.ts"

const row = (
  reason: PublicReason | "payment_observed" | "origin_names_owner",
  check: string,
  sentence: string,
  remedy: string
): RefusalRow => ({ reason, check, status: 200, sentence, remedy })

const again = "Correct the declaration; the next payment lists it."

export const listingReasons: ReadonlyArray<RefusalRow> = [
  row("schema_invalid", "info fits its schema", "The declaration does not match its own schema.", again),
  row("metadata_too_large", "the declaration is bounded", "The declaration is larger than the catalog's limit.", again),
  row("missing_resource_url", "the payment names a URL", "The payment does not contain the resource's URL.", again),
  row("insecure_origin", "the origin is HTTPS", "The origin is not HTTPS.", "Serve the resource over HTTPS."),
  row("local_origin", "the origin is public", "The origin is on a private network.", "Serve it at a public address."),
  row("missing_tool_name", "an MCP resource names its tool", "An MCP resource needs the name of its tool.", again),
  row(
    "payto_conflict",
    "the origin names the recipient",
    "The origin names a different account than the paid one.",
    "Correct payTo at the origin, or in the terms of the payment."
  ),
  row(
    "catalog_unavailable",
    "the catalog can be written",
    "The catalog could not be written at that moment.",
    "Nothing to do: the next payment retries."
  ),
  row(
    "payment_observed",
    "a payment was seen",
    "A payment for it was observed.",
    "Nothing to do: this is the listing's evidence."
  ),
  row(
    "origin_names_owner",
    "the origin names the recipient",
    "Its origin names the account that is paid.",
    "Nothing to do: this is the listing's evidence."
  )
]
