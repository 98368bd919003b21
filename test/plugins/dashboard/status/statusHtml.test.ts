// The status page as text: ongoing incidents come first, no share is rounded up to 100%, and no text becomes a script.
import { expect, it } from "vitest"
import { pageOf } from "../../../../plugins/dashboard/status/statusHtml.ts"

const status = {
  days: 30,
  since: "2026-10-28T00:00:00.000Z",
  settlements: "1234567",
  verify_p95_ms: 41.4,
  settle_p95_ms: 5_432,
  ended_in_two_ledgers: 0.99999,
  confirmed_by_two_endpoints: 1,
  observed_from: "2026-10-28T00:00:00.000Z",
  availability: 1,
  checks: 43_200,
  checks_met: 43_200,
  daily: [
    { day: "2026-11-25", checks: 0, checks_met: 0 },
    { day: "2026-11-26", checks: 1_440, checks_met: 1_430 },
    { day: "2026-11-27", checks: 20, checks_met: 20 }
  ],
  items: [
    { cause: "ledger_stalled", summary: "No new ledger.", from: "2026-11-27T01:00:00.000Z", to: null },
    {
      cause: "interruption",
      summary: "No replica wrote.",
      from: "2026-11-20T01:00:00.000Z",
      to: "2026-11-20T03:07:00.000Z"
    }
  ]
} as const

it("the figures are in a person's units, and no share is rounded up", () => {
  const page = pageOf(status)
  for (const part of ["1,234,567", "41 ms", "5.43 s", "99.99 %", "100.00 %", "2 h 7 min", "ongoing"])
    expect(page).toContain(part)
  expect(page).not.toContain("<script")
})

it("what lasts is said first, and its absence too", () => {
  expect(pageOf(status)).toMatch(/notice error">No new ledger\. Since <time[^>]*>2026-11-27 01:00<\/time> UTC\./)
  const calm = pageOf({ ...status, items: [], verify_p95_ms: null })
  for (const part of ["No incident now.", ">None.<", "none yet"]) expect(calm).toContain(part)
})

it("the observed span and the number of checks are shown, with a bar for each observed day", () => {
  const young = pageOf({ ...status, observed_from: "2026-11-27T00:00:00.000Z", checks: 20, checks_met: 20 })
  expect(young).toContain("The last 20 minutes of this facilitator, since its first record at")
  expect(young).toContain("20 of 20 minutes checked")
  expect(young.match(/<li class="/g)).toHaveLength(2)
  expect(young).toContain('class="warn" title="2026-11-26: 99.30 %, 1,430 of 1,440 minutes checked"')
  expect(young).not.toContain("30 days")
  expect(pageOf(status)).toContain("The last 30 days of this facilitator")
  expect(pageOf({ ...status, observed_from: null, checks: 0, daily: [] })).toContain("first check is not over")
})
