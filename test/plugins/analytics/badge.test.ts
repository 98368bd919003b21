// Badges show a listing's public figures, and escape every text.
import { describe, expect, it } from "vitest"
import { badgeOf, badgeSvg } from "../../../plugins/analytics/badge.ts"

const listing = { status: "active", ownership: "proven", verification: "payment_observed", settlements: 12 }

describe("a badge", () => {
  it("is verified only for a paid listing whose origin names the recipient", () => {
    expect(badgeOf("listing", listing)).toMatchObject({ value: "verified", tone: "good" })
    expect(badgeOf("listing", { ...listing, ownership: "provisional" }).value).toBe("paid")
    expect(badgeOf("listing", { ...listing, verification: "unverified" }).value).toBe("listed")
  })

  it("says so where nothing is listed, or not any more", () => {
    for (const kind of ["listing", "calls", "uptime"] as const) {
      expect(badgeOf(kind, undefined).value).toBe("not listed")
      expect(badgeOf(kind, { ...listing, status: "quarantined" }).value).toBe("not listed")
    }
  })

  it("never rounds uptime up", () => {
    expect(badgeOf("uptime", { ...listing, uptime: 0.99999 })).toMatchObject({ value: "99.9 %", tone: "good" })
    expect(badgeOf("uptime", { ...listing, uptime: 1 }).value).toBe("100 %")
    expect(badgeOf("uptime", { ...listing, uptime: 0.89 }).tone).toBe("bad")
    expect(badgeOf("uptime", listing).value).toBe("not probed")
    expect(badgeOf("calls", listing)).toMatchObject({ value: "12 settled in 30 days", tone: "good" })
    expect(badgeOf("calls", { ...listing, settlements: 0 }).tone).toBe("plain")
    expect(badgeOf("calls", { ...listing, settlements: 12_345 }).value).toBe("12,345 settled in 30 days")
  })

  it("holds text as text", () => {
    const svg = badgeSvg({ label: `<script>"&`, value: "1", tone: "plain" })
    expect(svg).not.toContain("<script>")
    expect(svg).toContain("&lt;script&gt;&quot;&amp;")
  })
})
