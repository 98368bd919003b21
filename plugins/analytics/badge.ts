// A badge as SVG: a label and a figure, in the usual shape of badges. Pure. All its text is ours, and its width is
// estimated from its letters, because a picture does not load fonts.

interface Badge {
  readonly label: string
  readonly value: string
  readonly tone: "good" | "plain" | "bad"
}

const letterWidth = 6.6
const padding = 12
const height = 20

const fills = { good: "#1c6b32", plain: "#40504c", bad: "#a3231f" } as const

const widthOf = (text: string): number => Math.round(text.length * letterWidth) + padding

const escaped = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;")

/** White text on each tone has a contrast above 4.5. */
export const badgeSvg = ({ label, tone, value }: Badge): string => {
  const [left, right] = [widthOf(label), widthOf(value)]
  const width = left + right
  const title = escaped(`${label}: ${value}`)
  const text = (at: number, words: string) => `<text x="${at}" y="14" text-anchor="middle">${escaped(words)}</text>`
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" role="img" aria-label="${title}">`,
    `<title>${title}</title>`,
    `<clipPath id="r"><rect width="${width}" height="${height}" rx="4"/></clipPath>`,
    `<g clip-path="url(#r)"><rect width="${left}" height="${height}" fill="#2b3532"/>`,
    `<rect x="${left}" width="${right}" height="${height}" fill="${fills[tone]}"/></g>`,
    `<g fill="#ffffff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">`,
    text(left / 2, label),
    text(left + right / 2, value),
    "</g></svg>"
  ].join("")
}

/** The public figures of a listing that badges show. */
interface Listing {
  readonly ownership?: string
  readonly verification?: string
  readonly status?: string
  readonly settlements?: number
  readonly uptime?: number
}

export const badgeKinds = ["listing", "calls", "uptime"] as const
export type BadgeKind = (typeof badgeKinds)[number]

const labels: Readonly<Record<BadgeKind, string>> = { listing: "x402 listing", calls: "x402 calls", uptime: "uptime" }

/** Uptime below this is shown as bad, as a fraction. */
const uptimeGood = 0.99
const uptimeBad = 0.9

export const badgeOf = (kind: BadgeKind, listing: Listing | undefined): Badge => {
  const label = labels[kind]
  if (listing === undefined || (listing.status !== undefined && listing.status !== "active"))
    return { label, value: "not listed", tone: "plain" }
  switch (kind) {
    case "listing":
      return listing.ownership === "proven" && listing.verification === "payment_observed"
        ? { label, value: "verified", tone: "good" }
        : { label, value: listing.verification === "payment_observed" ? "paid" : "listed", tone: "plain" }
    case "calls":
      return {
        label,
        value: `${(listing.settlements ?? 0).toLocaleString("en-GB")} settled in 30 days`,
        tone: (listing.settlements ?? 0) > 0 ? "good" : "plain"
      }
    case "uptime":
      return listing.uptime === undefined
        ? { label, value: "not probed", tone: "plain" }
        : {
            label,
            // Rounded down, so that it never shows more than the real uptime.
            value: `${(Math.floor(listing.uptime * 1_000) / 10).toFixed(1).replace(/\.0$/, "")} %`,
            tone: listing.uptime >= uptimeGood ? "good" : listing.uptime < uptimeBad ? "bad" : "plain"
          }
  }
}
