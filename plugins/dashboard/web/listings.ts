// Names of listings and words for their evidence, the same on the public pages, the seller's and the operator's.
import { address } from "./format.ts"

/** A URL as a name: its host and path. The full URL is shown or copied beside it. */
export const bareUrl = (url: string): string => address(url).replace(/^https?:[/]{2}/, "")

/** A listing's name: its tool, its service, or its host and path. */
export const nameOf = (one: {
  readonly resource: string
  readonly toolName?: string | null
  readonly serviceName?: string | null
}): string => one.toolName ?? one.serviceName ?? bareUrl(one.resource)

/** Who stated a listing's terms, by its grade. */
export const grades: Readonly<Record<string, string>> = {
  origin: "Stated by its origin",
  declared: "Stated by its recipient",
  claimed: "Stated by a payment"
}
