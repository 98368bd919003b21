// Figures formatted with their units. Amounts and fees are whole numbers as decimal text and stay exact, as bigints;
// nothing is added up here. Times are in the viewer's zone and in UTC. Pure.

/** Stroops in one XLM, and the decimals of its amounts. */
const xlmDecimals = 7

const grouped = new Intl.NumberFormat("en-GB")

/** `12345` → `12,345`. */
export const count = (text: string | number | bigint): string => grouped.format(BigInt(text))

/** `1 payer`, `2 payers`. */
export const counted = (number: string | number, thing: string): string =>
  `${count(number)} ${thing}${BigInt(number) === 1n ? "" : "s"}`

/** Atomic units as an amount: exact, without trailing zeros, with at least two decimals. */
export const decimal = (units: string | bigint, decimals: number): string => {
  const value = BigInt(units)
  const digits = (value < 0n ? -value : value).toString().padStart(decimals + 1, "0")
  const whole = digits.slice(0, digits.length - decimals)
  const part = digits.slice(digits.length - decimals).replace(/0+$/, "")
  return `${value < 0n ? "−" : ""}${grouped.format(BigInt(whole))}.${part.padEnd(2, "0")}`
}

/** An untrusted URL with its host in ASCII form, so that homoglyphs are visible. Any other text is unchanged. */
export const address = (text: string): string => {
  const [before = "", authority = ""] = /^https?:\/\/([^/?#]*)/i.exec(text) ?? []
  if (/^[\x20-\x7e]*$/.test(authority) || !URL.canParse(text)) return text
  const { host, protocol } = new URL(text)
  return `${protocol}//${host}${text.slice(before.length)}`
}

/** An asset with its display settings, in every report. */
export interface Denomination {
  readonly asset: string | null
  readonly asset_symbol: string | null
  readonly asset_decimals: number | null
}

/** `1.50 USDC`. Shows atomic units if the asset is not configured. */
export const amount = (units: string | null, of: Denomination): string => {
  if (units === null) return "not known yet"
  if (of.asset_decimals === null || of.asset_symbol === null)
    return of.asset === null ? count(units) : `${count(units)} units of ${short(of.asset)}`
  return `${decimal(units, of.asset_decimals)} ${of.asset_symbol}`
}

/** Decimals of a headline figure of one and more. Its title and the tables have the exact amount. */
const headlineDecimals = 2

/** Atomic units for a headline: rounded down to two decimals from one upwards, exact below one. */
export const rounded = (units: string | bigint, decimals: number): string => {
  const value = BigInt(units)
  const step = 10n ** BigInt(Math.max(0, decimals - headlineDecimals))
  const isSmall = (value < 0n ? -value : value) < 10n ** BigInt(decimals)
  return decimal(isSmall ? value : (value / step) * step, decimals)
}

/** `1,234.56 USDC` for a headline. */
export const roundedAmount = (units: string, of: Denomination): string =>
  of.asset_decimals === null || of.asset_symbol === null
    ? amount(units, of)
    : `${rounded(units, of.asset_decimals)} ${of.asset_symbol}`

export const roundedStroops = (text: string | bigint): string => `${rounded(text, xlmDecimals)} XLM`

export const stroops = (text: string | bigint): string => `${decimal(text, xlmDecimals)} XLM`

const byteSteps = ["B", "kB", "MB", "GB", "TB"] as const

/** Bytes in the decimal unit that fits: `1.2 GB`. */
export const bytes = (size: string | number): string => {
  let [value, step] = [Number(size), 0]
  for (; value >= 1_000 && step < byteSteps.length - 1; step++) value /= 1_000
  return `${value >= 100 || step === 0 ? Math.round(value) : Number(value.toFixed(1))} ${byteSteps[step]}`
}

/**
 * A share in percent; a dash if the whole is zero. Never rounds a smaller share up to 100 %, nor a positive one down to
 * 0 %.
 */
export const percent = (part: string | number, of: string | number): string => {
  const whole = Number(of)
  if (whole === 0) return "–"
  const share = (Number(part) / whole) * 100
  if (share > 0 && share < 0.05) return "< 0.1 %"
  return `${(share < 100 ? Math.min(share, 99.9) : share).toFixed(1).replace(/\.0$/, "")} %`
}

/** An address or a hash, shortened. */
export const short = (text: string): string => (text.length <= 16 ? text : `${text.slice(0, 6)}…${text.slice(-6)}`)

/**
 * Title of the browser's tab: a URL unshortened up to 80 characters, an address or a hash by its ends. A name with
 * characters outside printable ASCII is left out, because it could imitate another.
 */
export const tabTitle = (label: string, name: string): string => {
  const shown = /^[\x21-\x7e]+$/.test(name) ? [/^https?:/.test(name) ? name.slice(0, 80) : short(name)] : []
  return `${[label, ...shown].join(" ")} · Tollkeeper`
}

const dayTime = { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", hourCycle: "h23" } as const
const own = new Intl.DateTimeFormat(undefined, { ...dayTime, second: "2-digit" })
const ownOfAnotherYear = new Intl.DateTimeFormat(undefined, { ...dayTime, year: "numeric" })

/** A moment in the viewer's own time and in UTC. A moment of another year has the year instead of the seconds. */
export const moment = (iso: string): { readonly own: string; readonly utc: string } => {
  const at = new Date(iso)
  return {
    own: (at.getFullYear() === new Date().getFullYear() ? own : ownOfAnotherYear).format(at),
    utc: `${iso.slice(0, 19).replace("T", " ")} UTC`
  }
}

const steps: ReadonlyArray<readonly [seconds: number, unit: string]> = [
  [86_400, "d"],
  [3_600, "h"],
  [60, "min"]
]

/** A duration in its largest unit: `4 min`. */
export const duration = (seconds: number): string => {
  for (const [size, unit] of steps) if (seconds >= size) return `${Math.floor(seconds / size)} ${unit}`
  return seconds < 10 ? `${Math.max(0, seconds).toFixed(1)} s` : `${Math.round(seconds)} s`
}

/** Milliseconds as seconds with two decimals; a dash without a measurement. */
export const seconds = (millis: number | null): string => (millis === null ? "–" : `${(millis / 1_000).toFixed(2)} s`)

/** How long ago a moment is, or how far ahead: `4 min ago`. */
export const relative = (iso: string, nowMillis: number): string => {
  const seconds = (nowMillis - Date.parse(iso)) / 1_000
  return seconds >= 0 ? `${duration(seconds)} ago` : `in ${duration(-seconds)}`
}

/** The parts of an amount, so that a column can align on the decimal point. */
export const amountParts = (
  units: string,
  { asset_decimals, asset_symbol }: Denomination
): { readonly whole: string; readonly part: string; readonly symbol: string } | undefined => {
  if (asset_decimals === null || asset_symbol === null) return undefined
  const [whole = "", part = ""] = decimal(units, asset_decimals).split(".")
  return { whole, part, symbol: asset_symbol }
}

/**
 * Parses an amount as a person writes it, in atomic units. Undefined if it is not an amount of this asset. Commas may
 * only separate thousands, as on the pages: `1,5` would be ambiguous.
 */
export const atomic = (text: string, decimals: number): string | undefined => {
  const form = /^([0-9]{1,24}|[0-9]{1,3}(?:,[0-9]{3}){1,7})?(?:[.]([0-9]*))?$/
  const [, whole = "", part = ""] = form.exec(text.trim()) ?? []
  return `${whole}${part}` === "" || part.length > decimals
    ? undefined
    : (
        BigInt(whole.replaceAll(",", "")) * 10n ** BigInt(decimals) +
        BigInt(part.padEnd(decimals, "0") || "0")
      ).toString()
}
