// Parses the parameters of analytics: windows, pages, and the forms of filters. `days` never fails: any other value
// means 30 (S134, S135, S154, S329). Pure.
import { Option, Schema } from "effect"
import { readNetwork } from "../../../kernel/Dialect.ts"
import { type Form, inForm, isTime, parameter, type QueryReader } from "../../../kernel/http/readQuery.ts"
import { whole } from "../../../kernel/http/wireSchema.ts"
import type { AnalyticsValues } from "../Config.ts"

/** A time window that ends now. */
export interface Window {
  readonly days: number
  /** Start of the UTC day that many days ago; absent for all history. */
  readonly since: Date | undefined
}

const millisPerDay = 86_400_000
export const daysAllowed = [0, 1, 7, 14, 30] as const

/** Start of the UTC day that many days ago. */
export const firstDay = (nowMillis: number, days: number): Date =>
  new Date((Math.floor(nowMillis / millisPerDay) - days) * millisPerDay)

export interface Page {
  readonly limit: number
  readonly offset: number
}

export const forms = {
  address: {
    pattern: /^(?:[GC][A-Z2-7]{55}|M[A-Z2-7]{68}|p_[0-9a-f]{24})$/u,
    expected: "an address, or a pseudonym of one"
  },
  asset: { pattern: /^[A-Za-z0-9:._-]{1,128}$/u, expected: "the address of a token contract" },
  network: { pattern: /^[-a-z0-9]{3,8}:[-_a-zA-Z0-9]{1,32}$/u, expected: "a network such as ledger:testnet" },
  scheme: { pattern: /^[A-Za-z0-9._:-]{1,64}$/u, expected: "a scheme such as exact" },
  status: { pattern: /^(?:success|failed|unknown)$/u, expected: "success, failed or unknown" },
  bucket: { pattern: /^(?:hour|day)$/u, expected: "hour or day" },
  id: { pattern: /^[1-9][0-9]{0,17}$/u, expected: "the id of a resource" },
  hash: { pattern: /^[0-9a-fA-F]{64}$/u, expected: "a transaction hash of 64 hex digits" },
  reason: { pattern: /^[a-z0-9_]{1,80}$/u, expected: "the code of a reason" },
  principal: { pattern: /^[A-Za-z0-9.:_/-]{1,128}$/u, expected: "the label of a key, or anonymous" },
  origin: { pattern: /^https?:\/\/[^\s/?#]{1,255}$/u, expected: "an origin such as https://shop.example" },
  units: { pattern: /^(?:0|[1-9][0-9]{0,38})$/u, expected: "atomic units, a whole number of at most 39 digits" },
  time: {
    pattern: /^\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?Z)?$/u,
    expected: "a UTC time such as 2026-01-31 or 2026-01-31T10:00:00Z",
    isValid: isTime
  },
  sort: { pattern: /^(?:newest|oldest|largest|smallest)$/u, expected: "newest, oldest, largest or smallest" },
  cursor: {
    pattern: /^-?[0-9]{1,39}_[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/u,
    expected: "the cursor of a page"
  },
  place: {
    pattern: /^[0-9]{1,60}_[0-9]{1,18}_(?:[GC][A-Z2-7]{4,55}|M[A-Z2-7]{68}|p_[0-9a-f]{24})$/u,
    expected: "the cursor of a page"
  },
  group: {
    // Reasons contain underscores and no colon; a principal may contain both.
    pattern: /^([0-9]{1,18}):(verify|settle):([a-z0-9_]{1,80}):([A-Za-z0-9.:_/-]{1,140})$/u,
    expected: "the cursor of a page"
  },
  operation: { pattern: /^(?:verify|settle)$/u, expected: "verify or settle" },
  state: { pattern: /^(?:active|stale|quarantined|removed)$/u, expected: "active, stale, quarantined or removed" },
  grade: { pattern: /^(?:claimed|declared|origin)$/u, expected: "claimed, declared or origin" },
  type: { pattern: /^(?:http|mcp)$/u, expected: "http or mcp" },
  words: { pattern: /^[^\p{Cc}]{1,200}$/u, expected: "1 to 200 characters" },
  number: { pattern: /^(?:0|[1-9][0-9]{0,8})$/u, expected: "a whole number of at least 0" }
} as const satisfies Readonly<Record<string, Form>>

/** A report's window of days. */
export const daysParameter = {
  days: Schema.optionalKey(
    Schema.Literals(daysAllowed).annotate({
      description: "Whole UTC days back from today; 0 is all history. Any other value means 30."
    })
  )
}
export const pageParameters = {
  limit: Schema.optionalKey(parameter(forms.number, "Clamped to `analytics.max_page_size`.")),
  offset: Schema.optionalKey(inForm(whole("Items to skip."), forms.number))
}

/** `absent` is the window of a query without `days`: 30 for reports, 0 for lists and for one address or resource. */
export const readWindow = ({ raw }: Pick<QueryReader<"days">, "raw">, nowMillis: number, absent: 0 | 30): Window => {
  const given = raw("days")
  const days = given === null ? absent : daysAllowed.some((days) => String(days) === given) ? Number(given) : 30
  return {
    days,
    since: days === 0 ? undefined : firstDay(nowMillis, days)
  }
}

type Bounds = Pick<AnalyticsValues, "pageDefault" | "pageMax">

export const readLimit = ({ given }: Pick<QueryReader<"limit">, "given">, { pageDefault, pageMax }: Bounds): number =>
  Math.min(pageMax, Math.max(1, Number(given("limit") ?? pageDefault)))

export const readPage = (read: Pick<QueryReader<"limit" | "offset">, "given">, bounds: Bounds): Page => ({
  limit: readLimit(read, bounds),
  offset: Number(read.given("offset") ?? 0)
})

/** In neutral spelling. An unknown one stays unchanged and matches nothing. */
export const readNetworkFilter = ({ given }: Pick<QueryReader<"network">, "given">): string | undefined => {
  const value = given("network")
  return value === undefined
    ? undefined
    : Option.match(readNetwork(value), { onNone: () => value, onSome: ({ network }) => network })
}
