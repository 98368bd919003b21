// Names the parts of a conformance run and groups them by day.

/** All parts, in running order. */
export const conformanceParts = [
  "official",
  "resend",
  "neutral",
  "attacks",
  "malformed",
  "catalog",
  "upto",
  "batch",
  "mcp",
  "agents",
  "receipts",
  "reach",
  "restart"
] as const

export type ConformancePart = (typeof conformanceParts)[number]

/** Parts that run daily: the official clients, and the start. */
export const everyDay: ReadonlyArray<ConformancePart> = ["official", "restart"]

/** One group of the other parts runs each day. */
export const dailyGroups: ReadonlyArray<ReadonlyArray<ConformancePart>> = [
  ["mcp", "malformed"],
  ["batch", "resend"],
  ["reach", "upto", "neutral"],
  ["receipts", "attacks"],
  ["agents", "catalog"]
]
