// Which requests a loopback listener attributes to its user, and which to a page of another site.
import { describe, expect, it } from "vitest"
import { checkHostAndOrigin, isListedHost } from "../../../kernel/http/hostValidation.ts"

const loopback = {
  host: "127.0.0.1",
  allowedHosts: ["pay.example"],
  allowedOrigins: ["http://localhost:3000"]
}
const own = { host: "127.0.0.1:4022" }
const refused = (headers: Record<string, string>, isPublic = false, admission = loopback) =>
  checkHostAndOrigin(admission, headers, () => isPublic)?.reason

describe("a listener on loopback", () => {
  it.each(["127.0.0.1:4022", "localhost:4022", "LOCALHOST", "[::1]:4022", "127.9.9.9", "pay.example", "Pay.Example"])(
    "answers the Host %s",
    (host) => {
      expect(refused({ host })).toBeUndefined()
    }
  )

  it.each(["evil.example", "evil.example:4022", "localhost.evil.example", "0.0.0.0:4022", "10.0.0.1", "", "a b"])(
    "refuses the Host %j, public paths too",
    (host) => {
      expect([refused({ host }), refused({ host }, true)]).toEqual(["forbidden_host", "forbidden_host"])
    }
  )

  it("refuses a request without a Host", () => {
    expect(refused({})).toBe("forbidden_host")
  })

  it.each(["http://evil.example", "null", "http://127.0.0.1:5000", "https://localhost.evil.example", "file://", ""])(
    "lets a page of %j read public routes only",
    (origin) => {
      expect([refused({ ...own, origin }), refused({ ...own, origin }, true)]).toEqual(["forbidden_origin", undefined])
    }
  )

  it("answers its own pages, allowed origins, and programs", () => {
    for (const headers of [
      own,
      { ...own, origin: "http://127.0.0.1:4022" },
      { ...own, origin: "http://localhost:3000" },
      { ...own, "sec-fetch-site": "same-origin" },
      { ...own, "sec-fetch-site": "none" }
    ])
      expect(refused(headers)).toBeUndefined()
  })

  it("refuses cross-site browser requests without an Origin, such as images", () => {
    expect(refused({ ...own, "sec-fetch-site": "cross-site" })).toBe("forbidden_origin")
  })
})

describe("a listener elsewhere", () => {
  it("a public listener accepts any Host and relies on keys", () => {
    const open = { ...loopback, host: "0.0.0.0" }
    expect(refused({ host: "evil.example", origin: "http://evil.example" }, false, open)).toBeUndefined()
    const listed = ["pay.example", "Pay.Example:8443", "evil.example", "", undefined]
    expect(listed.map((host) => isListedHost(host, ["pay.example"]))).toEqual([true, true, false, false, false])
    expect(isListedHost("evil.example", [])).toBe(false)
  })
})
